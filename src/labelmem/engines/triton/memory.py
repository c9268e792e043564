# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""Reads and writes of many streams' memories with one cell per label, each in a kernel or two."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from labelmem.config import MemoryConfig
from labelmem.engines.triton.runtime import tl, triton

__all__ = ["Cells", "read_many", "write_many"]

_SCAN = 8192  # probabilities at a time; few turns, since each waits for what it asked for
Cells = dict[str, Tensor]
"""The memory's tensors by name."""


def read_many(
    cells: Cells, k: int, cosine: Tensor, lam: float, delta: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Eq. 3 over the first ``k`` positions: label, alpha, weight, score and age, (n, k) each.

    They are copies: a later write does not change them.
    """
    n, held = cells["label"].shape
    alpha, weight, score = (cosine.new_empty(n, k) for _ in range(3))
    label, age = cells["label"].new_empty(n, k), cells["written"].new_empty(n, k)
    told = (label, alpha, weight, score, age)
    stored = (cells["label"], cells["alpha"], cells["written"], cells["time"])
    tiny = torch.finfo(cosine.dtype).tiny
    padded = triton.next_power_of_2(k)
    _scores[(n,)](*stored, cosine, *told, held, k, lam, delta, tiny, BLOCK=padded)
    return told


def write_many(
    cells: Cells,
    k: int,
    h: Tensor,
    y: Tensor,
    P: Tensor | None,
    seen: Tensor,
    config: MemoryConfig,
    fades: Tensor,
    highest: Tensor | None = None,
) -> Tensor:
    """The write rules for one cell per label, in place; (n,) whether the stream wrote.

    Parameters
    ----------
    P
        (n, W); None where everything is written.
    seen
        (n,) which streams observed something.
    highest
        (n, 2) the two highest of each row of P, where they are known; else all is looked at.
    """
    n, held, dim = cells["v"].shape
    wrote = torch.empty_like(seen)
    names = ("v", "alpha", "label", "written", "born", "writes", "rates", "used", "time")
    capacity = config.capacity or 2**31 - 1
    always = P is None or config.margin == math.inf
    P = h if P is None else P.contiguous()
    known = highest is not None
    _write[(n,)](
        h.contiguous(), y.contiguous(), P, highest if known else P, seen, wrote, fades,
        *(cells[name] for name in names),
        held, k, P.shape[1], capacity, 0.0 if always else config.margin, config.decay,
        ALWAYS=always, KNOWN=known, OLDEST=config.evict == "oldest", FADES=len(fades),
        D=dim, WIDE=triton.next_power_of_2(dim), BLOCK=triton.next_power_of_2(k), SCAN=_SCAN,
        num_warps=4 if always or known else 8,
    )  # fmt: skip
    return wrote


@triton.jit
def _scores(
    label, alpha, written, time, cosine, label_out, alpha_out, weight_out, score_out, age_out,
    held, k, lam, delta, tiny, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    cell = tl.arange(0, BLOCK)
    there = cell < k
    name = tl.load(label + row * held + cell, mask=there, other=-1)
    weight = tl.load(alpha + row * held + cell, mask=there, other=0.0)
    cos = tl.load(cosine + row * k + cell, mask=there, other=0.0)
    last = tl.load(written + row * held + cell, mask=there, other=0)
    alive = name >= 0
    logit = delta * tl.log(tl.maximum(weight, tiny)) + lam * cos
    logit = tl.where(alive, logit, -float("inf"))
    top = tl.max(logit, axis=0)
    e = tl.where(alive, tl.exp(logit - tl.where(top > -float("inf"), top, 0.0)), 0.0)
    total = tl.sum(e, axis=0)
    out = row * k + cell
    tl.store(score_out + out, e / tl.where(total > 0, total, 1.0), mask=there)
    tl.store(label_out + out, name, mask=there)
    tl.store(alpha_out + out, weight, mask=there)
    tl.store(weight_out + out, tl.where(alive, 1.0, 0.0), mask=there)
    tl.store(age_out + out, tl.load(time + row) - last + 1, mask=there)


@triton.jit
def _loses(P, highest, row, y, width, margin, KNOWN: tl.constexpr, SCAN: tl.constexpr):
    """Whether the label's lead over the best other one is less than the margin."""
    p_y = tl.load(P + row * width + y, mask=y < width, other=0.0)
    if KNOWN:
        first, second = tl.load(highest + row * 2), tl.load(highest + row * 2 + 1)
        rival = tl.where(p_y < first, first, second)
    else:
        place = tl.arange(0, SCAN)
        others = tl.zeros((SCAN,), tl.float32)
        for first in range(0, width, SCAN):
            other = first + place
            there = (other < width) & (other != y)
            others = tl.maximum(others, tl.load(P + row * width + other, mask=there, other=0.0))
        rival = tl.max(others, axis=0)
    lead = tl.log(tl.maximum(p_y, 1e-45)) - tl.log(tl.maximum(rival, 1e-45))
    # Without a rival any lead is enough; without a probability none is.
    return (p_y <= 0) | ((rival > 0) & (margin - lead > 0))


@triton.jit
def _write(
    h, y, P, highest, seen, wrote, fades,
    v, alpha, label, written, born, writes, rates, used, time,
    held, k, width, capacity, margin, decay,
    ALWAYS: tl.constexpr, KNOWN: tl.constexpr, OLDEST: tl.constexpr, FADES: tl.constexpr,
    D: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr, SCAN: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    if tl.load(seen + row) == 0:
        tl.store(wrote + row, False)
        return
    now = tl.load(time + row) + 1
    tl.store(time + row, now)
    own = tl.load(y + row)
    if not ALWAYS:
        if not _loses(P, highest, row, own, width, margin, KNOWN, SCAN):
            tl.store(wrote + row, False)
            return
    tl.store(wrote + row, True)
    cell = tl.arange(0, BLOCK)
    there = cell < k
    base = row * held
    name = tl.load(label + base + cell, mask=there, other=-1)
    first = tl.min(tl.where(name == own, cell, BLOCK), axis=0)
    known = first < BLOCK
    count = tl.load(used + row)
    # Rule 5: the oldest, then the lightest, then the earliest cell gives way.
    valid = name >= 0
    if OLDEST:
        last = tl.load(written + base + cell, mask=there, other=0)
        last = tl.where(valid, last, 2147483647)
        valid = valid & (last == tl.min(last, axis=0))
    weight = tl.load(alpha + base + cell, mask=there, other=0.0)
    weight = tl.where(valid, weight, float("inf"))
    valid = valid & (weight == tl.min(weight, axis=0))
    came = tl.load(born + base + cell, mask=there, other=0)
    came = tl.where(valid, came, 2147483647)
    valid = valid & (came == tl.min(came, axis=0))
    victim = tl.min(tl.where(valid, cell, BLOCK - 1), axis=0)
    slot = tl.where(count >= capacity, victim.to(tl.int64), count)
    slot = tl.minimum(tl.where(known, first.to(tl.int64), slot), k - 1)
    at = base + slot
    part = tl.arange(0, WIDE)
    x = tl.load(h + row * D + part, mask=part < D, other=0.0)
    stored = tl.load(v + at * D + part, mask=part < D, other=0.0)
    tl.store(v + at * D + part, tl.where(known, stored, 0.0) + x, mask=part < D)
    tl.store(alpha + at, tl.where(known, decay * tl.load(alpha + at), 0.0) + 1)
    gone = (now - tl.load(written + at)).to(tl.float32)
    for fade in tl.static_range(FADES):
        rate = tl.load(rates + at * FADES + fade)
        rate = rate * tl.exp(gone * tl.log(tl.load(fades + fade)))
        tl.store(rates + at * FADES + fade, tl.where(known, rate, 0.0) + 1)
    tl.store(born + at, tl.where(known, tl.load(born + at), now))
    tl.store(writes + at, tl.where(known, tl.load(writes + at), 0) + 1)
    tl.store(written + at, now)
    tl.store(label + at, own)
    tl.store(used + row, tl.maximum(count, slot + 1))
