"""The labeled memory: cells keyed by class label, written where the prediction was weak."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from labelmem import functional as F
from labelmem.config import MemoryConfig
from labelmem.errors import InputError
from labelmem.fast import Array, alone, array, compiled, row
from labelmem.fast_cells import Kept, OneStream
from labelmem.fast_mix import margin_lost
from labelmem.fast_read import read_one
from labelmem.index import CellIndex
from labelmem.index_near import NearRead
from labelmem.index_read import Some, read_some
from labelmem.kernels import FUSED_MOST, fused
from labelmem.lockstep_trust import believed, recording
from labelmem.narrow import UNIT, narrowed, narrowed_width, widened
from labelmem.reading import FADES, LabelPast, LoneRead, MemoryRead

if TYPE_CHECKING:
    from labelmem.compiled_cells import CompiledCells
    from labelmem.compiled_grouped import GroupedCells

__all__ = ["FADES", "LabelPast", "LabeledMemory", "MemoryRead"]

_FREE = -1  # the label of a position that holds no cell
_PATIENCE = 16  # writes on a device before it is asked how many positions are in use
_CELLS = ("v", "alpha", "label", "group", "written", "born", "writes", "rates")


class LabeledMemory:
    """Cells (label, v, alpha, time of last write) of ``n`` streams, addressed by label.

    A read compares ``h`` with each label's own cells only; a write touches the true label's cells
    only, and only when the margin loss is not zero. So a rare label cannot be washed out by
    frequent ones. Labels are whole numbers here; names are the streams' business.

    Memory grows with the cells written, by an eighth at a time, whatever the number of labels.

    Parameters
    ----------
    dim
        Length of the stored vectors; None takes that of the first one written.
    config
        How to read, write and forget.
    streams
        How many independent memories to hold side by side.
    blocks
        If given, reads also tell how each label came so far, with a cosine for each block of h:
        the blocks' lengths, one after another; ``()`` takes h as one block.
    fast
        Whether shorter ways with the same results are taken where there are: one stream on a CPU,
        and writes of many streams with one cell per label.

    Examples
    --------
    Few-shot: the memory alone is the classifier.

    >>> memory = LabeledMemory(dim=2, config=MemoryConfig(lam=5.0))
    >>> for h, y in [([1.0, 0.0], 3), ([0.0, 1.0], 8)]:
    ...     _ = memory.write(torch.tensor([h]), torch.tensor([y]))
    >>> memory.read(torch.tensor([[0.9, 0.1]])).scores(10).argmax().item()
    3

    References
    ----------
    Labeled Memory Networks (AAAI 2018), Eq. 2 and 3 and the write algorithm.
    """

    def __init__(
        self,
        dim: int | None = None,
        config: MemoryConfig | None = None,
        streams: int = 1,
        device: torch.device | str | None = None,
        dtype: torch.dtype = torch.float32,
        blocks: Sequence[int] | None = None,
        fast: bool = True,
    ) -> None:
        self.config = config or MemoryConfig()
        self.dim = dim
        self.blocks, self.fast = blocks, fast
        n = streams
        self._narrow = self.config.cell_bits == 16
        kind = torch.int16 if self._narrow else dtype
        self.v = torch.zeros(n, 0, self._width(dim or 0), device=device, dtype=kind)
        self.alpha = torch.zeros(n, 0, device=device, dtype=dtype)
        self.label = torch.zeros(n, 0, device=device, dtype=torch.int64)
        self.group = torch.zeros(n, 0, device=device, dtype=torch.int64)  # not for lone cells
        # Times count the stream's observations. `born` orders the cells of a stream: an overwritten
        # cell keeps its place in that order, a new one comes last.
        self.written = torch.zeros(n, 0, device=device, dtype=torch.int32)
        self.born = torch.zeros(n, 0, device=device, dtype=torch.int32)
        self.writes = torch.zeros(n, 0, device=device, dtype=torch.int32)
        fades = FADES if blocks is not None else ()  # nobody asks for the rates otherwise
        self.rates = torch.zeros(n, 0, len(fades), device=device, dtype=dtype)  # when last written
        self.used = torch.zeros(n, device=device, dtype=torch.int64)
        self.time = torch.zeros(n, device=device, dtype=torch.int32)
        self._fades = torch.tensor(fades, device=device, dtype=dtype)
        self._filled = 0  # the largest of `used`, or a little more: positions beyond it are spare
        self._guessed = 0  # writes since it was exact
        # What one stream on a CPU knows of its cells, in numpy or compiled.
        self._kept: Kept | CompiledCells | None = None
        indexed = self.config.index if fast and CellIndex.fits(self.v) else None
        self._index = CellIndex(indexed) if indexed else None

    def _width(self, dim: int) -> int:
        """How many columns vectors of that length are kept in."""
        return narrowed_width(dim) if self._narrow else dim

    def _contents(self, cells: Tensor) -> Tensor:
        """The vectors (…, d) that lie in these cells."""
        return widened(cells, self.alpha.dtype) if self._narrow else cells

    def _kept_as(self, v: Tensor, turn: Tensor) -> Tensor:
        """Vectors (…, d) as cells keep them that were written ``turn`` (…,) times before."""
        return narrowed(v, turn) if self._narrow else v

    @property
    def streams(self) -> int:
        """How many independent memories lie side by side."""
        return self.used.shape[0]

    def __len__(self) -> int:
        """The number of cells of all streams together."""
        return int(self.used.sum())

    def read(
        self, h: Tensor, lam: float | Tensor | None = None, delta: float | Tensor | None = None
    ) -> MemoryRead:
        """Score every label that owns cells against ``h`` (n, d): Eq. 2 and 3. Changes nothing.

        ``lam`` and ``delta`` replace the configured ones, e.g. with tensors that are being learned.
        """
        self._check(h)
        lam = self.config.lam if lam is None else lam
        delta = self.config.delta if delta is None else delta
        learned = isinstance(lam, Tensor) or isinstance(delta, Tensor)
        if self.dim and not learned and self._alone(h):
            if self._index is not None and self._index.covers(self._filled):
                return self._read_near(self._index, row(h), float(lam), float(delta))
            if self._lone(h):
                return self._compiled_cells().read(row(h), float(lam), float(delta))
            told = None if self._narrow else self._read_one(h, float(lam), float(delta))
            if told is not None:
                return told
        if self._filled and not learned and self._fused(h):
            return self._read_many(h, float(lam), float(delta))
        k = self._filled
        v = self._contents(self.v[:, :k]) if self.dim else h.new_zeros(len(h), 0, h.shape[1])
        if any(isinstance(x, Tensor) and x.requires_grad for x in (h, lam, delta)):
            v = v.clone()  # a later write must not change what the gradient was taken of
        alpha = self.alpha[:, :k].clone()
        label, group = self.label[:, :k].clone(), self._groups(k)
        alive = label != _FREE
        if self.config.cells_per_label == 1:  # M is the only cell, its weight is one
            weight, M, alpha_y, leads = alive.to(v.dtype), v, alpha, alive
        else:
            weight = F.within_label_weights(F.cosine(h, v), lam, group, alive)
            M, alpha_y = F.read(v, alpha, weight, group)
            leads = alive & (group == torch.arange(k, device=group.device))
        cosine = F.cosine(h, M)
        score = F.kernel_score(cosine, alpha_y, leads, lam, delta)
        age = self.time[:, None] - self.written[:, :k] + 1
        past = None if self.blocks is None else self._past(h, M, group, age)
        return MemoryRead(label, alpha, weight, score, group, alpha_y, cosine, age, past)

    def _fused(self, h: Tensor) -> bool:
        """Whether ``h`` is read and written by fused kernels: many streams on a GPU."""
        single = self.config.cells_per_label == 1 and self.fast and self.dim is not None
        single = single and not self._narrow
        fits = 0 < max(self.label.shape[1], self.v.shape[2]) <= FUSED_MOST
        return single and fits and fused(h, self.v) and not h.requires_grad

    def _read_one(self, h: Tensor, lam: float, delta: float) -> MemoryRead | None:
        """The read of one stream on a CPU; None if the specification's is faster."""
        grouped = compiled(self.config.cells_per_label != 1 and h.dtype == torch.float32)
        kept = self._kept if grouped and isinstance(self._kept, Kept) else None
        known = None if kept is None else kept.grouped
        if known is None or not known.are(self.v):
            one = self._one_stream()
            if not one.readable:
                return None
            if not grouped:
                watched = self.blocks is not None
                return read_one(one, array(h)[0], lam, delta, int(self.time), watched)
            known = self._grouped_cells(one)
        if not known.cells.readable:
            return None
        return known.read(row(h), self._filled, self.time, lam, delta)

    def _grouped_cells(self, one: OneStream) -> GroupedCells:
        """The cells as compiled kernels see them where a label may own several."""
        from labelmem.compiled_grouped import GroupedCells

        known = one.kept.grouped = GroupedCells(one, self.v, self.blocks is not None)
        return known

    def _read_many(self, h: Tensor, lam: float, delta: float) -> MemoryRead:
        """The read of many streams on a GPU."""
        from labelmem.kernels_memory import read_many
        from labelmem.kernels_past import block_cosines, past_of

        k, past = self._filled, None
        cells = self._cells() | {"used": self.used, "time": self.time}
        parts = () if self.blocks is None else tuple(self.blocks) or (h.shape[1],)
        cosine, own, size = block_cosines(self.v, self.used, k, h, parts)
        label, alpha, weight, score, age = read_many(cells, k, cosine, lam, delta)
        if self.blocks is not None:
            writes, first, rates = past_of(cells, self.time, self._fades, k)
            past = LabelPast(writes, age, first, rates, own, size)
        told = (self._groups(k), alpha, cosine, age, past)
        return LoneRead(label, alpha, weight, score, *told)

    def _read_near(self, index: CellIndex, h: Array, lam: float, delta: float) -> MemoryRead:
        """The read of the cells near ``h`` (d,) only."""
        own, cells = self.config.cells_per_label == 1, self._cells
        if own and self.blocks is None:
            pool = index.pool(cells, self._filled)
            if pool is not None:
                return NearRead(int(self.time), *pool.read(h, index.config.probes, lam, delta))
        at, cosine = index.near(cells(), self._filled, h)
        some = Some(cells(), at, cosine, own, int(self.time), self._fades, self.blocks)
        return read_some(some, h, lam, delta)

    def _follow(self, before: int) -> None:
        """Let the index know of the latest write of one stream, which had ``before`` cells."""
        if self._index is not None and self._index.covers(self._filled):
            written = array(self.written)[0, : self._filled] == int(self.time)
            grown = self._filled > before
            self._index.follow(self._cells(), self._filled, np.flatnonzero(written), grown)

    def _alone(self, h: Tensor) -> bool:
        """Whether ``h`` can take the short way of one stream on a CPU."""
        return self.fast and h.dtype == self.alpha.dtype and alone(h)

    def _compiled(self, h: Tensor) -> bool:
        """Whether compiled kernels do all there is to do for ``h``, which is alone."""
        return self._index is None and self._lone(h)

    def _lone(self, h: Tensor) -> bool:
        """Whether compiled kernels know the cells: each is the only one of its label."""
        return compiled(self.config.cells_per_label == 1 and h.dtype == torch.float32)

    def _compiled_cells(self) -> CompiledCells:
        """The cells as compiled kernels see them."""
        known = self._kept
        if known is None or isinstance(known, Kept) or not known.are(self.v):
            from labelmem.compiled_cells import CompiledCells

            before = known if isinstance(known, CompiledCells) else None  # the memory has grown
            own = (self.used, self.time, self.config, self._fades, self.blocks, before)
            known = self._kept = CompiledCells(self._cells(), *own)
        return known

    def _one_stream(self) -> OneStream:
        """The cells as one stream on a CPU has them."""
        cells, blocks = self._cells(), self.blocks or ()
        kept = self._kept if isinstance(self._kept, Kept) else None
        one = OneStream(cells, self._filled, self.config, self._fades, blocks, kept)
        self._kept = one.kept
        return one

    def _groups(self, k: int) -> Tensor:
        """(n, k) the positions of the leading cells: each cell's own where it is the only one."""
        if self.config.cells_per_label == 1:
            return torch.arange(k, device=self.label.device).expand(self.streams, -1)
        return self.group[:, :k].clone()

    def _cells(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in _CELLS}

    def _past(self, h: Tensor, M: Tensor, group: Tensor, age: Tensor) -> LabelPast:
        """How each label came so far; what its cells know, put together at the leading one."""
        k = self._filled
        writes, first = self.writes[:, :k].clone(), self.time[:, None] - self.born[:, :k] + 1
        rates = self.rates[:, :k] * self._fades ** (age - 1).clamp(min=0)[..., None]
        if self.config.cells_per_label != 1:
            held = self.label[:, :k] != _FREE
            writes = torch.zeros_like(writes).scatter_add(1, group, writes * held)
            rates = torch.zeros_like(rates).scatter_add(
                1, group[..., None].expand_as(rates), rates * held[..., None]
            )
            first = _over_groups(first.masked_fill(~held, 0), group, "amax")
            age = _over_groups(age.masked_fill(~held, torch.iinfo(age.dtype).max), group, "amin")
        cosine, size = F.block_cosine(h, M, self.blocks or (h.shape[1],))
        return LabelPast(writes, age, first, rates, cosine, size)

    def write(
        self, h: Tensor, y: Tensor, P: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Learn that the label of ``h`` (n, d) was ``y`` (n,), after predicting ``P`` (n, W).

        Parameters
        ----------
        P
            The mixed prediction before the label was known; None means there was none, so that
            everything is written.
        mask
            (n,) which streams observed something; the others stay exactly as they are.

        Returns
        -------
        written
            (n,) whether the stream wrote.
        """
        if mask is None and self._ordinary(h, y, P) and self._alone(h) and self._lone(h):
            written = self._write_compiled(h, int(y), P)
            if written is not None:
                return written
        with torch.no_grad():
            return self._write(h, y, P, mask)

    def _ordinary(self, h: Tensor, y: Tensor, P: Tensor | None) -> bool:
        """Whether nothing about a write must be looked at closely before it is compiled."""
        shaped = y.shape == (1,) and y.dtype == torch.int64 and h.shape == (1, self.dim)
        return shaped and (
            P is None
            or (len(P) == 1 and P.ndim == 2 and not P.requires_grad and P.dtype == h.dtype)
        )

    def _write_compiled(self, h: Tensor, y: int, P: Tensor | None) -> Tensor | None:
        """The write of one stream on a CPU, compiled; None if it must be refused."""
        if y < 0:
            return None
        self._grow(min(self._filled + 1, self.config.capacity or self._filled + 1))
        cells = self._compiled_cells()
        asked = P is not None and self.config.margin != math.inf
        place = cells.write(row(h), y, row(P) if P is not None and asked else None)
        if place < -1:
            return None
        grown, self._filled = place >= self._filled, max(self._filled, place + 1)
        if self._index is not None and place >= 0:
            told = cells.told_to_index()
            if not self._index.follow_one(told, self._filled, place, grown):
                self._index.follow(self._cells(), self._filled, np.array([place]), grown)
        return torch.full((1,), place >= 0)

    def _write(self, h: Tensor, y: Tensor, P: Tensor | None, mask: Tensor | None) -> Tensor:
        """The same for any number of streams, anywhere, after a close look."""
        self._check_write(h, y, P, mask)
        if self.dim is None:
            self.dim = h.shape[1]
            self.v = self.v.new_zeros(self.streams, 0, self._width(self.dim))
        if self._kept is not None:
            self._kept.settle()
        if self._alone(h) and not self._narrow:
            return self._write_one(h, y, P, mask)
        self._kept = None  # what follows is not kept up with
        if self._index is not None:
            self._index.forget_lists()
        seen = torch.ones_like(y, dtype=torch.bool) if mask is None else mask
        if self._fused(h):
            return self._write_many(h, y, P, seen)
        P = h.new_zeros(len(h), 0) if P is None else P
        self.time += seen.to(self.time.dtype)
        single = self.config.cells_per_label == 1 and self.fast
        if single and self.config.margin == math.inf:  # then P decides nothing
            writes = seen
        else:
            loss, wrong = F.margin_loss(P, y, self.config.margin)
            writes = seen & (loss > 0)
        if single:
            self._write_single(h.to(self.alpha.dtype), y, writes)
            return writes
        rows = writes.nonzero()[:, 0]
        if len(rows):
            self._write_rows(rows, h[rows].to(self.alpha.dtype), y[rows], wrong[rows])
        return writes

    def _write_one(self, h: Tensor, y: Tensor, P: Tensor | None, mask: Tensor | None) -> Tensor:
        """The write of one stream on a CPU."""
        if mask is not None and not bool(mask):
            return torch.zeros(1, dtype=torch.bool)
        self.time += 1
        label, lost, wrong = int(y), True, True
        if P is None:
            wrong = False  # nothing was believed, so nothing was wrong
        elif self.config.margin != math.inf or self.config.cells_per_label != 1:
            lost, wrong = margin_lost(array(P)[0], label, self.config.margin)
        if lost:
            self._grow(min(self._filled + 1, self.config.capacity or self._filled + 1))
            one = self._one_stream()
            one.write(array(h)[0], label, wrong, int(self.time))
            before, self._filled = self._filled, one.used
            self.used.fill_(one.used)
            self._follow(before)
        return torch.full((1,), lost)

    def _write_many(self, h: Tensor, y: Tensor, P: Tensor | None, seen: Tensor) -> Tensor:
        """The same for many streams on a GPU."""
        from labelmem.kernels_memory import write_many

        if not recording():
            self._make_positions()
        cells = self._cells() | {"used": self.used, "time": self.time}
        return write_many(cells, self._filled, h, y, P, seen, self.config, self._fades)

    def _write_single(self, h: Tensor, y: Tensor, writes: Tensor) -> None:
        """The write rules for one cell per label, for all streams at once: the fast path.

        Nothing here waits for the device: streams that do not write keep what they have.
        """
        if not recording():  # else :meth:`reserve` has made them
            self._make_positions()
        k = self._filled
        row = torch.arange(self.streams, device=y.device)
        own = self.label[:, :k] == y[:, None]
        known = own.any(dim=1)
        slot = self.used
        if self.config.capacity:
            alive = self.label[:, :k] != _FREE
            full = self.used >= self.config.capacity
            slot = torch.where(full, self._victim(alive, slice(None)), slot)
        slot = torch.where(known, own.to(torch.int8).argmax(dim=1), slot).clamp(max=k - 1)

        def put(name: str, new: Tensor) -> None:
            cells = getattr(self, name)
            old = cells[row, slot]
            keep = writes.view(-1, *[1] * (old.ndim - 1))
            cells[row, slot] = torch.where(keep, new.to(old.dtype), old)

        old = known.to(h.dtype)
        v = self._contents(self.v[row, slot]) * old[:, None] + h
        put("v", self._kept_as(v, self.writes[row, slot] * known))
        put("alpha", self.config.decay * self.alpha[row, slot] * old + 1)
        gone = (self.time - self.written[row, slot])[:, None]
        put("rates", self.rates[row, slot] * self._fades**gone * old[:, None] + 1)
        put("born", torch.where(known, self.born[row, slot], self.time))
        put("writes", self.writes[row, slot] * known + 1)
        put("written", self.time)
        put("label", y)
        self.used = torch.maximum(self.used, torch.where(writes, slot + 1, 0))
        if self.used.device.type == "cpu" and not recording():
            self._count()

    def _make_positions(self) -> None:
        """Make room for one more cell in each stream, without asking a device every time."""
        if self._guessed >= _PATIENCE:
            self._count()
        self._filled, self._guessed = self._filled + 1, self._guessed + 1
        if self.config.capacity:
            self._filled = min(self._filled, self.config.capacity)
        self._grow(self._filled)

    def reserve(self, spare: int) -> float:
        """Let all positions count as filled, at least ``spare`` of them free in every stream.

        Then reads and writes keep their shapes while a recorded step is repeated. Returns for how
        many writes that is so: at capacity, forever.
        """
        self._count()
        used, capacity = self._filled, self.config.capacity or math.inf
        self._grow(int(min(used + spare, capacity)))
        self._filled = self.label.shape[1]
        return math.inf if self._filled >= capacity else self._filled - used

    @property
    def spare_ahead(self) -> bool:
        """Whether there are positions that reads do not look at."""
        return self._filled < self.label.shape[1]

    def _count(self) -> None:
        """Find out how many positions are in use."""
        self._filled, self._guessed = int(self.used.max()) if self.streams else 0, 0

    def _write_rows(self, rows: Tensor, h: Tensor, y: Tensor, wrong: Tensor) -> None:
        """Write rules 2 to 5 for ``m`` streams, the ``rows``, whose loss is not zero."""
        config, k = self.config, self._filled
        own = self.label[rows, :k] == y[:, None]
        count = own.sum(dim=1)
        known = count > 0
        # Rule 3 picks the cell that may be replaced before anything changes.
        weakest = _first(own, self.alpha[rows, :k], self.born[rows, :k])
        self._merge(rows, own, h)
        below = self.used[rows] < config.capacity if config.capacity else torch.ones_like(known)
        fewer = count < config.cells_per_label if config.cells_per_label else torch.ones_like(known)
        append = below & (~known | (wrong & fewer))
        overwrite = known & wrong & ~append & (count > 1)
        evict = ~known & ~below
        slot = torch.where(append, self.used[rows], weakest)
        if bool(evict.any()):
            slot = torch.where(evict, self._make_room(rows, evict), slot)
        self._place(rows, slot, h, y, append | overwrite | evict, overwrite)

    def _merge(self, rows: Tensor, own: Tensor, h: Tensor) -> None:
        """Rule 3: move the true label's cells towards ``h``."""
        i, column = own.nonzero(as_tuple=True)
        row = rows[i]
        v = self._contents(self.v[row, column])
        cos = (F.normalise(h)[i] * F.normalise(v)).sum(dim=1)
        # All cells here that belong to one stream have one label: its first one leads the group.
        group = torch.searchsorted(i, i)[None]
        lam = self.config.lam if self.config.write_lam else 1.0
        w = F.within_label_weights(cos[None], lam, group, group >= 0)[0]
        v, self.alpha[row, column] = F.merge(v, self.alpha[row, column], h[i], w, self.config.decay)
        self.v[row, column] = self._kept_as(v, self.writes[row, column])
        gone = (self.time[row] - self.written[row, column])[:, None]
        self.rates[row, column] = self.rates[row, column] * self._fades**gone + w[:, None]
        self.written[row, column] = self.time[row]
        self.writes[row, column] += 1

    def _make_room(self, rows: Tensor, evict: Tensor) -> Tensor:
        """Rule 5: the position to give up in each of the ``rows`` that must ``evict``."""
        slot = self._victim(self.label[rows, : self._filled] != _FREE, rows)
        if self.config.cells_per_label != 1:
            self._hand_over(rows[evict], slot[evict])
        return slot

    def _victim(self, alive: Tensor, rows: Tensor | slice) -> Tensor:
        """The cell of each of the ``rows`` that counts for least."""
        k = self._filled
        oldest = (self.written[rows, :k],) if self.config.evict == "oldest" else ()
        return _first(alive, *oldest, self.alpha[rows, :k], self.born[rows, :k])

    def _hand_over(self, rows: Tensor, slot: Tensor) -> None:
        """Let another cell lead the group of the cell at ``slot``, which is about to go."""
        k = self._filled
        columns = torch.arange(k, device=slot.device)
        rest = (self.group[rows, :k] == slot[:, None]) & (columns != slot[:, None])
        heir = rest.to(torch.int8).argmax(dim=1, keepdim=True)
        self.group[rows, :k] = torch.where(rest, heir, self.group[rows, :k])

    def _place(
        self, rows: Tensor, slot: Tensor, h: Tensor, y: Tensor, placed: Tensor, overwrite: Tensor
    ) -> None:
        """Put a new cell (y, h, 1) at ``slot`` of the rows that are ``placed``."""
        rows, slot, h, y, overwrite = (x[placed] for x in (rows, slot, h, y, overwrite))
        if not len(rows):
            return
        self._grow(int(slot.max()) + 1)
        if self.config.cells_per_label != 1:  # join the label's group where it has one
            own = self.label[rows] == y[:, None]
            lead = torch.where(own.any(dim=1), own.to(torch.int8).argmax(dim=1), slot)
            lead = torch.where(own.any(dim=1), self.group[rows, lead], slot)
            self.group[rows, slot] = lead
        self.label[rows, slot] = y
        self.v[rows, slot] = self._kept_as(h, torch.zeros_like(slot))
        self.alpha[rows, slot] = 1.0
        self.rates[rows, slot] = 1.0
        self.writes[rows, slot] = 1
        self.written[rows, slot] = self.time[rows]
        self.born[rows, slot] = torch.where(overwrite, self.born[rows, slot], self.time[rows])
        self.used[rows] = torch.maximum(self.used[rows], slot + 1)
        self._filled = max(self._filled, int(slot.max()) + 1)

    def _grow(self, positions: int) -> None:
        """Make sure that ``positions`` exist, growing by an eighth so that little lies spare."""
        held = self.label.shape[1]
        if positions <= held:
            return
        more = max(4, held // 8, positions - held)
        if self.config.capacity:
            more = max(positions - held, min(more, self.config.capacity - held))
        for name, cells in self._cells().items():
            if name != "group" or self.config.cells_per_label != 1:
                setattr(self, name, _extended(cells, more, _FREE if name == "label" else 0))

    def _check(self, h: Tensor) -> None:
        dim = h.shape[-1] if self.dim is None else self.dim
        if tuple(h.shape) != (self.streams, dim):
            raise InputError(
                f"h has shape {tuple(h.shape)}; this memory takes ({self.streams}, {dim}): "
                "one vector for each stream"
            )

    def _check_write(self, h: Tensor, y: Tensor, P: Tensor | None, mask: Tensor | None) -> None:
        self._check(h)
        if not F.finite(h):
            raise InputError("h has NaN or infinite values; nothing was written")
        n = self.streams
        if y.shape != (n,) or y.is_floating_point() or not believed(lambda: y.min() >= 0):
            raise InputError(
                f"y has shape {tuple(y.shape)} and type {y.dtype}; expected {n} label ids from 0"
            )
        if P is not None and (P.ndim != 2 or P.shape[0] != n):
            raise InputError(f"P has shape {tuple(P.shape)}; expected {n} rows of probabilities")
        if mask is not None and (mask.shape != (n,) or mask.dtype != torch.bool):
            raise InputError(
                f"the mask has shape {tuple(mask.shape)} and type {mask.dtype}; "
                f"expected {n} booleans"
            )

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must be saved to continue bit for bit, without the spare positions."""
        self._count()
        k = self._filled
        saved = {name: cells[:, :k] for name, cells in self._cells().items()}
        saved["group"] = self._groups(k)
        saved |= {"used": self.used, "time": self.time}
        return saved if self._index is None else saved | self._index.tensors(self.v, k)

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what :meth:`tensors` gave; shapes must fit."""
        for name in (*_CELLS, "used", "time"):
            setattr(self, name, tensors[name].to(self.used.device).clone())
        if self._narrow != (self.v.dtype == torch.int16):  # saved with another choice of bits
            first, dtype = torch.zeros((), device=self.v.device), self.alpha.dtype
            self.v = narrowed(self.v, first) if self._narrow else widened(self.v, dtype)
        self.rates = self.rates[..., : len(self._fades)]
        if self.config.cells_per_label == 1:
            self.group = self.group[:, :0].clone()
        self._filled = self.label.shape[1]
        self.dim = self.v.shape[2] - UNIT * self._narrow or None
        self._kept = None
        if self._index is not None:
            self._index.restore(tensors)


def _first(valid: Tensor, *keys: Tensor) -> Tensor:
    """Position (m,) of the valid entry that comes first by the keys, then by position.

    Rows without a valid entry give position 0.
    """
    for key in keys:
        worst = torch.inf if key.is_floating_point() else torch.iinfo(key.dtype).max
        best = key.masked_fill(~valid, worst)
        valid = valid & (best == best.amin(dim=1, keepdim=True)) if best.shape[1] else valid
    if not valid.shape[1]:
        return torch.zeros(valid.shape[0], dtype=torch.int64, device=valid.device)
    return valid.to(torch.int8).argmax(dim=1)


def _over_groups(x: Tensor, group: Tensor, how: str) -> Tensor:
    """The largest or smallest value of each group (n, K), at the cell that leads it."""
    return x.scatter_reduce(1, group, x, how)


def _extended(x: Tensor, more: int, fill: float) -> Tensor:
    extra = x.new_full((x.shape[0], more, *x.shape[2:]), fill)
    return torch.cat([x, extra], dim=1)
