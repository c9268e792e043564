"""The labeled memory with as much room for every label: what 4,000-way few-shot runs on.

When the labels are known beforehand and each has room for its T cells, nothing is ever evicted and
cells lie in a table, label by label. A write touches one label only. So many queries are compared
with all labels at once, and after a write only that label's column is computed again: exactly the
labeled memory without a model (:class:`labelmem.Adapter` with ``labels=()``), many times faster.
Nothing is changed in place, so that networks can be trained through the memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelmem import functional as F
from labelmem.config import MemoryConfig
from labelmem.errors import ConfigError

__all__ = ["LabelCells", "replay"]

Array = npt.NDArray[np.float32]

_CHUNK = 256  # queries that are compared with all labels at once


@dataclass(frozen=True)
class LabelCells:
    """T places for each of L labels, of which the first ``count`` hold cells."""

    v: Tensor
    """(L, T, d) contents."""
    alpha: Tensor
    """(L, T) weights."""
    count: Tensor
    """(L,) cells in use."""
    config: MemoryConfig

    @staticmethod
    def empty(labels: int, dim: int, config: MemoryConfig, device: torch.device) -> LabelCells:
        """No label has a cell."""
        cells = config.cells_per_label
        if cells is None or config.capacity is not None or not config.write_lam:
            raise ConfigError(
                f"cells_per_label is {cells}, capacity is {config.capacity}, write_lam is "
                f"{config.write_lam}; this form needs a number of cells, no capacity, and write_lam"
            )
        return LabelCells(
            torch.zeros(labels, cells, dim, device=device),
            torch.zeros(labels, cells, device=device),
            torch.zeros(labels, dtype=torch.int64, device=device),
            config,
        )

    def of(self, labels: Tensor | slice) -> LabelCells:
        """The cells of some labels."""
        return replace(self, v=self.v[labels], alpha=self.alpha[labels], count=self.count[labels])

    @property
    def alive(self) -> Tensor:
        """(L, T) which places hold a cell."""
        return torch.arange(self.v.shape[1], device=self.v.device) < self.count[:, None]

    def scores(self, h: Tensor) -> Tensor:
        """Logarithm (n, L) of Eq. 3's score, not normalised, of h (n, d); -inf without cells."""
        lam, delta = self.config.lam, self.config.delta
        # Cells come first: then everything runs over long rows, even where labels have few cells.
        dot = torch.einsum("nd,ltd->tnl", F.normalise(h), self.v)
        w = _shares(lam * dot / _size(self.v).T[:, None], self.alive.T[:, None])
        # The length of M = sum w v follows from the products of a label's own cells.
        gram = torch.einsum("ltd,lsd->tsl", self.v, self.v)
        length = torch.stack([(row[:, None] * w).sum(dim=0) for row in gram])
        length = (length * w).sum(dim=0).clamp(min=0)
        length = torch.where(length > 0, length, torch.ones_like(length)).sqrt()
        found = lam * (w * dot).sum(dim=0) / length
        if delta:
            strength = (w * self.alpha.T[:, None]).sum(dim=0)
            found = found + delta * torch.where(strength > 0, strength, 1.0).log()
        return found.masked_fill(self.count == 0, -torch.inf)

    def written(self, h: Tensor, wrong: Tensor, writes: Tensor | None = None) -> LabelCells:
        """After one write of h (L, d) under each label, where it ``writes`` (L,).

        ``wrong`` (L,) tells whether the prediction was: only then a label gets one more cell.
        """
        config, alive = self.config, self.alive
        cos = (F.normalise(h)[:, None] * self.v).sum(dim=2) / _size(self.v)
        w = _shares(config.lam * cos.T, alive.T).T
        weakest = self.alpha.masked_fill(~alive, torch.inf).argmin(dim=1)
        v = self.v + w[..., None] * h[:, None]
        alpha = torch.where(alive, config.decay * self.alpha + w, self.alpha)
        room = self.count < self.v.shape[1]
        fresh = self.count == 0
        append = fresh | (wrong & room)
        place = torch.where(append, self.count, weakest)
        placed = append | (wrong & ~room & (self.count > 1))
        here = placed[:, None] & (torch.arange(self.v.shape[1], device=h.device) == place[:, None])
        v = torch.where(here[..., None], h[:, None], v)
        alpha = torch.where(here, torch.ones_like(alpha), alpha)
        count = self.count + append.to(self.count.dtype)
        if writes is not None:
            v = torch.where(writes[:, None, None], v, self.v)
            alpha = torch.where(writes[:, None], alpha, self.alpha)
            count = torch.where(writes, count, self.count)
        return replace(self, v=v, alpha=alpha, count=count)


@torch.no_grad()
def replay(cells: LabelCells, h: Tensor, y: Tensor) -> Tensor:
    """Answer and learn one example after the other; the answers (n,), -1 from an empty memory.

    Chunks of queries are compared with all labels where ``h`` lies; single steps are taken on the
    processor, by plain numbers, since each of them is far too small for a device.

    Examples
    --------
    >>> cells = LabelCells.empty(9, 2, MemoryConfig(cells_per_label=2), torch.device("cpu"))
    >>> h, y = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]]), torch.tensor([3, 8, 3])
    >>> replay(cells, h, y)
    tensor([-1,  3,  3])
    """
    held = _Held(cells)
    answers: list[int] = []
    for start in range(0, len(y), _CHUNK):
        x = h[start : start + _CHUNK]
        scores = held.cells(x.device).scores(x).cpu().numpy()
        steps, unit = x.cpu().numpy(), F.normalise(x).cpu().numpy()
        for t, label in enumerate(y[start : start + _CHUNK].tolist()):
            row = scores[t]
            found = int(row.argmax())
            answers.append(found if row[found] > -math.inf else -1)
            own, row[label] = row[label], -math.inf
            other = row.max()
            # A label without a cell has an infinite loss; so has one in an empty memory.
            lead = own - other if own > -math.inf else -math.inf
            if cells.config.margin - lead > 0:
                held.write(label, steps[t], unit[t], bool(own < other))
                scores[t + 1 :, label] = held.scores(label, unit[t + 1 :])
    return torch.tensor(answers)


class _Held:
    """The same cells as arrays that are changed in place, a label at a time."""

    def __init__(self, cells: LabelCells) -> None:
        self.config = cells.config
        self.v: Array = cells.v.cpu().numpy().copy()
        self.alpha: Array = cells.alpha.cpu().numpy().copy()
        self.count: list[int] = cells.count.tolist()

    def cells(self, device: torch.device) -> LabelCells:
        """All of them, on a device."""
        v, alpha = torch.from_numpy(self.v), torch.from_numpy(self.alpha)
        count = torch.tensor(self.count)
        return LabelCells(v.to(device), alpha.to(device), count.to(device), self.config)

    def scores(self, label: int, unit: Array) -> Array:
        """One column of :meth:`LabelCells.scores`, for h of length one."""
        lam, delta, k = self.config.lam, self.config.delta, self.count[label]
        v, alpha = self.v[label, :k], self.alpha[label, :k]
        dot = unit @ v.T
        w = _weights(lam * dot / _lengths(v))
        length = np.sqrt(np.maximum(((w @ (v @ v.T)) * w).sum(axis=1), 0))
        found = lam * (w * dot).sum(axis=1) / np.where(length > 0, length, 1)
        return np.asarray(found + delta * np.log(w @ alpha) if delta else found)

    def write(self, label: int, h: Array, unit: Array, wrong: bool) -> None:
        """One row of :meth:`LabelCells.written`."""
        k, room = self.count[label], self.v.shape[1]
        v, alpha = self.v[label], self.alpha[label]
        place = int(alpha[:k].argmin()) if k else 0
        if k:
            w = _weights((self.config.lam * (v[:k] @ unit) / _lengths(v[:k]))[None])[0]
            v[:k] += w[:, None] * h
            alpha[:k] = self.config.decay * alpha[:k] + w
        if k == 0 or (wrong and k < room):
            place, self.count[label] = k, k + 1
        elif not wrong or k == 1:
            return
        v[place], alpha[place] = h, 1.0


def _weights(x: Array) -> Array:
    """Softmax of each row."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def _lengths(v: Array) -> Array:
    size = np.sqrt((v * v).sum(axis=1))
    return np.where(size > 0, size, 1)


def _size(v: Tensor) -> Tensor:
    """Lengths of the cells; 1 in place of 0, so that a cosine with nothing is 0."""
    size = v.norm(dim=-1)
    return torch.where(size > 0, size, torch.ones_like(size))


def _shares(x: Tensor, alive: Tensor) -> Tensor:
    """Softmax of x (T, …) over the cells of each label; 0 where there are none."""
    if len(x) == 1:
        return alive.to(x.dtype).expand_as(x)
    x = x.masked_fill(~alive, -torch.inf)
    top = x.detach().amax(dim=0)
    e = torch.exp(x - torch.where(top > -torch.inf, top, torch.zeros_like(top)))
    total = e.sum(dim=0)
    return e / torch.where(total > 0, total, torch.ones_like(total))
