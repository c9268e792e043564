"""Many streams on a CPU: what comes after the model, by compiled kernels on several threads.

Streams know nothing of each other. So each kernel goes through a range of them, one by one, with
the arithmetic of one stream.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from labelmem.combiner import Combiner
from labelmem.engines.numba.combiner import weights_of
from labelmem.engines.numba.row_cells import RowRead
from labelmem.engines.numba.rows import Mixture, mix_rows
from labelmem.engines.numba.stream_rows import follow_rows, weigh_rows
from labelmem.engines.numba.threads import spread
from labelmem.engines.numba.worth import worth_rows
from labelmem.fast import Array, array
from labelmem.lmn import ways
from labelmem.lmn.state import LMNState, LMNStep
from labelmem.scoring import Worth
from labelmem.stream_combiner import RATES_32, StreamCombiner, StreamState
from labelmem.stream_combiner.state import StreamStep

if TYPE_CHECKING:
    from labelmem.lmn import LMN

__all__ = ["ManyStep", "observe_many", "predict_many", "unsupported_many"]

_OWN = ["forward", "combine", "update", "learn", "share_of_model", "_read", "_model_score"]
_OWN += ["_memory_score", "_weigh", "_mix"]
"""What kernels do instead; a subclass with one of its own is taken at its word."""


class Weighed(NamedTuple):
    """What a stream combiner found for n streams."""

    guess: Array
    """(n, K) the labels' first scores."""
    final: Array
    """(n, K) their scores in the end."""
    theta: Array
    """(n,)."""
    mu: Array
    best: Array
    """(n,) the model's own best labels, -1 for none."""


class ManyStep(LMNStep):
    """A step of many streams by kernels; rows of all labels are made when they are asked for."""

    read: RowRead
    logits: Array
    width: int
    partition: bool
    weighed: Weighed

    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)  # past the guard that makes steps unchangeable

    lazy = True
    highest = None
    combined = cached_property(lambda self: self._combined())

    @property
    def mixture(self) -> Mixture:
        """What the prediction is made of."""
        seen, moment = self.weighed, self.read.moment
        names = moment.view_of("label")
        return Mixture(self.logits, names, moment.used, seen.final, seen.theta, self.partition)

    @property
    def made(self) -> Array:
        """The prediction (n, W) if somebody has asked for it, else an array without rows."""
        probs = self.__dict__.get("probs")
        return np.empty((0, self.width), np.float32) if probs is None else array(probs)

    @cached_property
    def probs(self) -> Tensor:
        """(n, W)."""
        P = np.empty((len(self.logits), self.width), np.float32)
        spread(mix_rows, len(P), 8 * self.width, self.mixture, P)
        return torch.from_numpy(P)

    def worth(self, y: Tensor, widths: Tensor | None = None, top: int = 0) -> Worth:
        """What the prediction is worth: see :class:`labelmem.stepping.Step`."""
        n, count = len(self.logits), min(top, self.width)
        each = np.full(n, self.width) if widths is None else array(widths.contiguous())
        figures, probs = (np.empty((n, k), np.float32) for k in (4, count))
        told = (
            array(y.to(torch.int64).contiguous()),
            each,
            figures,
            np.empty((n, count), np.int64),
            probs,
        )
        spread(worth_rows, n, 8 * self.width, self.mixture, self.made, *told)
        return Worth(*map(torch.from_numpy, (figures.T, *told[3:])))

    @cached_property
    def theta(self) -> Tensor:
        """(n, W)."""
        return torch.from_numpy(self.weighed.theta)[:, None].expand(-1, self.width)

    @cached_property
    def model_probs(self) -> Tensor:
        """(n, W)."""
        r = torch.from_numpy(self.logits).softmax(1)
        return pad(r, (0, self.width - r.shape[1]))

    @cached_property
    def memory_probs(self) -> Tensor:
        """(n, W)."""
        return self.read.spread(torch.from_numpy(self.weighed.final), self.width)

    def _combined(self) -> StreamStep | None:
        """The combiner's step."""
        seen = self.weighed
        if not seen.mu.size:
            return None
        guess, mu = torch.from_numpy(seen.guess), torch.from_numpy(seen.mu)
        return StreamStep(self.theta, mu, guess=guess)


def unsupported_many(method: LMN) -> str | None:
    """Why kernels cannot take many streams of an adapter; None where they can."""
    from labelmem.lmn import LMN

    memory, combiner = method.memory, method.combiner
    if any(getattr(type(method), name) is not getattr(LMN, name) for name in _OWN):
        return "the adapter's class has steps of its own"
    if method.backbone.head is None:
        return "with labels=() several streams have no kernels"
    if memory.cells_per_label != 1:
        return "several streams are taken by kernels only where each label has one cell"
    if memory.index is not None:
        return "an index serves one stream, not several"
    if method.learns_kernel:
        return "lam and delta are being trained"
    if isinstance(combiner, Combiner) and type(combiner) is not StreamCombiner:
        return f"of several streams a {type(combiner).__name__} has no kernels"
    return None


def predict_many(method: LMN, state: LMNState, x: Any, width: int) -> LMNStep:
    """Eq. 1 to 5; plainly where the first cell is still to come, or a key has an odd type."""
    with torch.no_grad():
        h, key, logits, recurrent = method.encode(x, state.recurrent, state.streams)
        key = key.contiguous()
        cells = state.memory.rows(key)
        if cells is None or logits is None or logits.dtype != torch.float32:
            return method.combine(state, h, key, logits, width, x, recurrent)
    width = max(width, logits.shape[1])
    read = state.memory.read_rows(cells, key)
    own = {"x": x, "h": h, "key": key, "recurrent": recurrent, "read": read, "width": width}
    seen = array(logits.contiguous())
    weighed = _weighed(method.combiner, state, cells.rows, read, seen, h, width)
    return ManyStep(**own, logits=seen, partition=method.partition, weighed=weighed)


def _weighed(
    combiner: Any, state: LMNState, rows: Any, read: RowRead, logits: Array, h: Tensor, width: int
) -> Weighed:
    """Eq. 4."""
    n, score = len(logits), read.scores_of_cells
    if not isinstance(combiner, StreamCombiner):
        none = np.empty((n, 0), np.float32)
        return Weighed(none, score, np.full(n, combiner, np.float32), none, none)
    found = Weighed(
        np.empty_like(score),
        np.empty_like(score),
        np.empty(n, np.float32),
        np.empty((n, combiner.hidden), np.float32),
        np.empty(n, np.int64),
    )
    own = _arrays(cast(StreamState, state.combiner))
    told = (read.cosines, read.parts, score)
    h_seen = array(h.contiguous() if combiner.sees_h else h.new_empty(n, 0))
    given = (weights_of(combiner), rows, told, logits, h_seen, own, combiner.correct, width)
    spread(weigh_rows, n, 8 * width, *given, *found)
    return found


def observe_many(state: LMNState, step: LMNStep, y: Tensor, mask: Tensor | None) -> bool:
    """Write, and move the states on; False if it is not the step to be taken from here."""
    memory = state.memory
    if not isinstance(step, ManyStep) or step.key is None:
        return False
    cells = memory.rows(step.key)
    if cells is None or not cells.still(step.read.moment):
        return False
    memory.check_write(step.key, y, None, mask)
    y = y.to(torch.int64).contiguous()
    seen = np.ones(len(y), np.bool_) if mask is None else array(mask.contiguous())
    combiner = state.combiner
    if isinstance(combiner, StreamState):
        combiner = _followed(combiner, cells.rows, step.weighed, array(y), seen)
    memory.write_rows(cells, step.key, y, seen, step.mixture, step.made)
    state.combiner = combiner
    state.recurrent = ways.moved(mask, step.recurrent, state.recurrent)
    return True


def _followed(state: StreamState, rows: Any, seen: Weighed, y: Array, mask: Array) -> StreamState:
    """The state once the labels are known."""
    old = _arrays(state)
    new = tuple(np.empty_like(part) for part in old)
    each = sum(part.shape[1] for part in (*old, seen.guess))
    told = (rows, y, mask, seen.guess, seen.best, seen.mu, RATES_32)
    spread(follow_rows, len(y), each, *told, old, new)
    return StreamState(*map(torch.from_numpy, new))


def _arrays(state: StreamState) -> tuple[Array, ...]:
    """Mu, echo and past as kernels take them."""
    return tuple(array(part.contiguous()) for part in (state.mu, state.echo, state.past))
