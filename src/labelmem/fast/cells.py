"""One stream's cells on the CPU: what a read needs of them is kept beside them.

The specification passes over the cells once for their lengths and once for their products with h.
Here the lengths, and the logarithms of the weights, are brought up to date by the write that
changes them, so that a read is one pass over the cells and a few operations over as many numbers
as there are cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from labelmem.config import MemoryConfig
from labelmem.fast import TINY, Array, array, softmax
from labelmem.fast.groups import Groups

if TYPE_CHECKING:
    from labelmem.compiled.grouped import GroupedCells

__all__ = ["Kept", "OneStream", "Past", "Seen"]

_GROUPED = ("v", "alpha", "label", "group")
_IN_CACHE = 2**24  # bytes of cells up to which a blocked product is faster than a streaming one


@dataclass(frozen=True)
class Seen:
    """What a read saw: of the cells (K,), and of the labels (Y,) that own them."""

    weight: Array | None
    """(K,) Eq. 2's share of the cell among the cells of its label; None where all are one."""
    lead: Array | None
    """(Y,) the labels' leading cells; None where each cell is a label's only one, so Y = K."""
    score: Array
    """(Y,) Eq. 3's s."""
    strength: Array
    """(Y,) Eq. 2's alpha."""
    cosine: Array
    """(Y,) of h with M."""
    block_cosine: Array
    """(Y, B) of each block of h with that block of M."""
    block_size: Array
    """(Y, B) the length of that block of M; it may change with the next write."""

    def at_cells(self, values: Array) -> Array:
        """Values (Y, …) of the labels at their leading cells, (K, …)."""
        if self.lead is None or self.weight is None:
            return values
        spread = np.zeros((len(self.weight), *values.shape[1:]), values.dtype)
        spread[self.lead] = values
        return spread


@dataclass(frozen=True)
class Past:
    """How the labels (Y, …) came so far."""

    writes: Array
    age: Array
    since_first: Array
    rates: Array


@dataclass(slots=True)
class Kept:
    """What is kept of one stream's cells from one step to the next."""

    size: Array
    """(B, K) the lengths of the cells' blocks."""
    groups: Groups | None = None
    """The cells by label, where a label may own several."""
    grouped: GroupedCells | None = None
    """These as kernels read them, once they have."""

    def settle(self) -> None:
        """Something is about to change the cells."""
        if self.grouped is not None:
            self.grouped.settle()


class OneStream:
    """The cells of one stream, as arrays over the bytes of the memory's tensors.

    Made for a single call: what outlives it is in :class:`Kept`.

    Parameters
    ----------
    cells
        The memory's tensors by name, (1, K, …), spare positions included.
    used
        How many positions hold a cell.
    fades
        The factors by which the rates of writes fade.
    blocks
        Lengths of the blocks of h that are compared for themselves; ``()`` for one.
    kept
        What is known of these cells already; None finds it out.
    """

    v: Array
    alpha: Array
    label: Array
    group: Array
    written: Array
    born: Array
    writes: Array
    rates: Array

    def __init__(
        self,
        cells: Mapping[str, Tensor],
        used: int,
        config: MemoryConfig,
        fades: Tensor,
        blocks: Sequence[int] = (),
        kept: Kept | None = None,
    ) -> None:
        self._cells, self.config, self.used = cells, config, used
        self._log_fades = np.log(array(fades))
        self._blocks = blocks or (self.v.shape[1],)
        if kept is None:
            kept = Kept(np.zeros((len(self._blocks), len(self.label)), self.alpha.dtype))
            self.kept = kept
            if used:
                self._refresh(np.arange(used))
            if config.cells_per_label != 1:
                kept.groups = Groups(*(getattr(self, name)[:used] for name in _GROUPED))
        self.kept = kept

    def __getattr__(self, name: str) -> Array:
        """Look at a kind of number when it is first asked for: a read needs few of them."""
        if name not in self._cells:
            raise AttributeError(f"a stream's cells have no {name!r}")
        view: Array = array(self._cells[name])[0]
        self.__dict__[name] = view
        return view

    @property
    def readable(self) -> bool:
        """Whether a read is faster here than it is in the specification."""
        return self.kept.groups is None or (self.whole and not self.kept.groups.crowds)

    @property
    def whole(self) -> bool:
        """Whether h is compared as a whole, not in blocks."""
        return len(self._blocks) == 1

    def _refresh(self, cells: Array) -> None:
        """Find the lengths of the cells at these positions anew."""
        more = len(self.label) - self.kept.size.shape[1]
        if more > 0:
            self.kept.size = np.pad(self.kept.size, ((0, 0), (0, more)))
        v = self.v[cells]
        for size, (own, _) in zip(self.kept.size, self._parts(v, v[0]), strict=True):
            size[cells] = np.sqrt(np.einsum("kd,kd->k", own, own))

    def _length(self, cells: Array | slice) -> Array:
        """(K,) the lengths of these cells, above zero: products with a zero cell are zero."""
        size = self.kept.size[:, cells]
        length = size[0] if len(size) == 1 else np.sqrt(np.einsum("bk,bk->k", size, size))
        above: Array = np.maximum(length, TINY[length.dtype])
        return above

    def read(self, h: Array, lam: float, delta: float) -> Seen:
        """Eq. 2 and 3 for ``h`` (d,)."""
        k = self.used
        size, length = self.kept.size[:, :k].T, np.sqrt(h @ h)
        dots = self._dots(h / length if length > 0 else h)
        dot = dots[0] if len(dots) == 1 else dots.sum(axis=0)
        if self.kept.groups is not None:
            return self._read_groups(self.kept.groups, dot, lam, delta)
        cosine = self._length(slice(k))
        np.divide(dot, cosine, out=cosine)  # in place where it can be: new pages cost as much
        strength = self.alpha[:k].copy()
        x = _log(strength)
        x *= delta
        x += np.multiply(cosine, lam, out=dot)
        by_block = cosine[:, None] if len(dots) == 1 else self._by_block(h, length * dots.T, size)
        return Seen(None, None, softmax(x), strength, cosine, by_block, size)

    def _dots(self, h: Array) -> Array:
        """(B, K) the products of each block of ``h`` with that block of the cells."""
        v = self.v[: self.used]
        if len(self._blocks) > 1:
            return np.stack([own.dot(h_own) for own, h_own in self._parts(v, h)])
        # Blocked products are made for matrices in the cache; from memory they are slower than
        # row by row.
        with np.errstate(invalid="ignore"):  # libraries may look at bytes beside those they use
            product: Array = v.dot(h) if v.nbytes <= _IN_CACHE else np.einsum("kd,d->k", v, h)
        return product[None]

    def _parts(self, v: Array, h: Array) -> Iterator[tuple[Array, Array]]:
        first = 0
        for size in self._blocks:
            yield v[:, first : first + size], h[first : first + size]
            first += size

    def _by_block(self, h: Array, dots: Array, size: Array) -> Array:
        """(K, B) the cosines of the blocks, 0 where either is zero."""
        length = np.array([np.sqrt(own @ own) for _, own in self._parts(self.v, h)], h.dtype)
        both = size * length
        cosine: Array = np.divide(dots, both, out=np.zeros_like(both), where=both > 0)
        return cosine

    def _read_groups(self, groups: Groups, dot: Array, lam: float, delta: float) -> Seen:
        k = self.used
        read = groups.read(self.v, dot, lam)
        cosine = read.dot / np.where(read.size > 0, read.size, np.inf)
        x = lam * cosine + delta * _log(read.strength)
        # Added up in the order of the cells: that of the columns is forgotten by a saved stream.
        at_cells = np.full(k, -np.inf, x.dtype)
        at_cells[groups.lead] = x
        score = softmax(at_cells)[groups.lead]
        weight = np.empty(k + 1, score.dtype)  # where there is no cell the last place is meant
        weight[groups.member] = read.weight
        of_labels = (score, read.strength, cosine, cosine[:, None], read.size[:, None])
        return Seen(weight[:k], groups.lead.copy(), *of_labels)

    def past(self, time: int) -> Past:
        """How the labels came so far, at the ``time`` of the latest observation."""
        k = self.used
        age, first = time + 1 - self.written[:k], time + 1 - self.born[:k]
        gone = np.maximum(age - 1, 0).astype(self.rates.dtype)
        rates = np.exp(self._log_fades * gone[:, None]) * self.rates[:k]
        writes = self.writes[:k].copy()
        if self.kept.groups is None:
            return Past(writes, age, first, rates)
        member, there = self.kept.groups.member, self.kept.groups.there
        past = Past(
            (writes[member] * there).sum(axis=0, dtype=writes.dtype),
            np.where(there, age[member], np.iinfo(age.dtype).max).min(axis=0),
            np.where(there, first[member], 0).max(axis=0),
            (rates[member] * there[..., None]).sum(axis=0),
        )
        crowds = self.kept.groups.crowds
        if crowds:
            crowded = np.flatnonzero(crowds.of_cell[:k] >= 0)
            columns = crowds.columns[crowds.of_cell[crowded]]
            np.add.at(past.writes, columns, writes[crowded])
            np.minimum.at(past.age, columns, age[crowded])
            np.maximum.at(past.since_first, columns, first[crowded])
            np.add.at(past.rates, columns, rates[crowded])
        return past

    def write(self, h: Array, y: int, wrong: bool, time: int) -> None:
        """Write rules 2 to 5, for a loss that is not zero; there is room for one more cell."""
        own = np.flatnonzero(self.label[: self.used] == y)
        if not len(own):
            slot = self._free()
            self._place(slot, h, y, slot, time)
            changed = np.array([slot])
        else:
            weakest = _first(own, self.alpha, self.born)
            self._merge(own, h, time)
            changed = own
            if wrong and self._may_add(len(own)):
                slot, self.used = self.used, self.used + 1
                self._place(slot, h, y, int(self.group[own[0]]), time)
                changed = np.append(own, slot)
            elif wrong and len(own) > 1:
                born = self.born[weakest]
                self._place(weakest, h, y, int(self.group[weakest]), time)
                self.born[weakest] = born  # an overwritten cell keeps its place in the order
        self._refresh(changed)
        if self.kept.groups is not None:
            self.kept.groups.update(y, changed, self.v, self.alpha, self.group)

    def _may_add(self, count: int) -> bool:
        most, capacity = self.config.cells_per_label, self.config.capacity
        return (not most or count < most) and (not capacity or self.used < capacity)

    def _merge(self, own: Array, h: Array, time: int) -> None:
        """Rule 3: move the true label's cells towards ``h``."""
        if len(own) == 1:
            self._merge_one(int(own[0]), h, time)
            return
        length = np.sqrt(h @ h)
        # Not @, which now and then warns of invalid values where all are fine: some libraries touch
        # what lies beside a small array.
        cosine = self.v[own].dot(h / length if length > 0 else h) / self._length(own)
        w = softmax((self.config.lam if self.config.write_lam else 1.0) * cosine)
        self.v[own] += w[:, None] * h
        self.alpha[own] = self.config.decay * self.alpha[own] + w
        faded = np.exp(self._log_fades * (time - self.written[own])[:, None])
        self.rates[own] = self.rates[own] * faded + w[:, None]
        self.written[own] = time
        self.writes[own] += 1

    def _merge_one(self, cell: int, h: Array, time: int) -> None:
        """The same for a label's only cell, whose share is one."""
        self.v[cell] += h
        self.alpha[cell] = self.config.decay * self.alpha[cell] + 1
        if len(self._log_fades):
            faded = np.exp(self._log_fades * (time - int(self.written[cell])))
            self.rates[cell] = self.rates[cell] * faded + 1
        self.written[cell] = time
        self.writes[cell] += 1

    def _free(self) -> int:
        """Rule 5: the position for a new label's cell, giving one up at capacity."""
        if not self.config.capacity or self.used < self.config.capacity:
            self.used += 1
            return self.used - 1
        oldest = (self.written,) if self.config.evict == "oldest" else ()
        slot = _first(np.arange(self.used), *oldest, self.alpha, self.born)
        if self.kept.groups is not None:
            label = int(self.label[slot])
            rest = np.flatnonzero(self.label[: self.used] == label)
            rest = rest[rest != slot]
            if len(rest) and self.group[slot] == slot:  # another cell leads from now on
                self.group[rest] = rest[0]
            self.kept.groups.update(label, rest, self.v, self.alpha, self.group)
        return slot

    def _place(self, slot: int, h: Array, y: int, lead: int, time: int) -> None:
        """Put a new cell (y, h, 1) at ``slot``."""
        self.v[slot], self.alpha[slot], self.rates[slot], self.writes[slot] = h, 1, 1, 1
        self.label[slot] = y
        if self.kept.groups is not None:
            self.group[slot] = lead
        self.written[slot] = self.born[slot] = time


def _log(alpha: Array) -> Array:
    """Logarithms of weights; one that decayed to zero counts for next to nothing."""
    logs: Array = np.maximum(alpha, TINY[alpha.dtype])
    return np.log(logs, out=logs)


def _first(cells: Array, *keys: Array) -> int:
    """The one of the cells that comes first by the keys, then by position."""
    for key in keys:
        values = key[cells]
        cells = cells[values == values.min()]
    return int(cells[0])
