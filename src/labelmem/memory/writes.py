"""The write rules of the labeled memory, as the specification has them."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem import functional as F
from labelmem.errors import InputError
from labelmem.memory.cells import FREE, CellStore
from labelmem.trust import believed, recording

__all__ = ["WriteRules"]


class WriteRules(CellStore):
    """What a write changes, once it is known which streams write."""

    def _check(self, h: Tensor) -> None:
        dim = h.shape[-1] if self.dim is None else self.dim
        if tuple(h.shape) != (self.streams, dim):
            raise InputError(
                f"h has shape {tuple(h.shape)}; this memory takes ({self.streams}, {dim}): "
                "one vector for each stream"
            )

    def check_write(self, h: Tensor, y: Tensor, P: Tensor | None, mask: Tensor | None) -> None:
        """Refuse what cannot be written."""
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
        slot = self._victim(self.label[rows, : self._filled] != FREE, rows)
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
            alive = self.label[:, :k] != FREE
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
