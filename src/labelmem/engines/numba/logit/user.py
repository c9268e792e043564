"""A user of the default form whose steps are compiled: arrays with room, and the two calls."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelmem.engines.numba.logit import belief as of
from labelmem.engines.numba.logit import layout as at
from labelmem.engines.numba.logit.believed import CompiledBelief, Heard
from labelmem.engines.numba.logit.fitting import fits
from labelmem.engines.numba.logit.learn import learn
from labelmem.engines.numba.logit.predict import predict
from labelmem.fast import Array, addressable
from labelmem.logit_memory.options import LogitMemoryOptions
from labelmem.logit_memory.statistics import _FIRST
from labelmem.logit_memory.user import Belief, User

__all__ = ["CompiledUser", "fits"]

# fmt: off
_GROWING = {
    at.SLOTS: {
        at.LABEL: "q", at.COUNT: "d", at.SQUARE: "d", at.SUMS: "dD", at.ROWS: "dD",
        at.CENTRED: "dD", at.PULL: "d", at.LOG_COUNT: "f", at.IS_NEW: "f",
    },
    at.CELLS: {
        at.KEY: "fD", at.PLACE: "fD", at.SLOT: "q", at.ABOUT: "qV", at.VOTE: "fV",
        at.LISTED: "qT", at.VALUE: "fT", at.REST: "f", at.TOTAL: "f",
        at.ACROSS: "dD", at.CROSSED: "q", at.LENGTH: "f",
    },
    at.PAIRS: {
        at.ANSWER: "q", at.PAIR_OF: "q", at.PAIR_SLOT: "q", at.OFTEN: "d",
        at.NEXT: "q", at.FIRST: "q", at.LAST: "q",
    },
}
"""Arrays with room for more: their type, and how long rows are if there are any."""
_TABLES = {at.SLOTS: at.TABLE, at.PAIRS: at.ANSWER_TABLE}
_SAVED = {
    "statistics.sums": at.SUMS, "statistics.counts": at.COUNT, "statistics.squares": at.SQUARE,
    "statistics.mean": at.MEAN, "statistics.origin": at.ORIGIN, "statistics.scatter": at.SCATTER,
    "statistics.root": at.ROOT, "statistics.numbers": at.TALLY,
    "cells.key": at.KEY, "cells.place": at.PLACE, "cells.slot": at.SLOT, "cells.about": at.ABOUT,
    "cells.vote": at.VOTE, "cells.label": at.LISTED, "cells.value": at.VALUE,
    "cells.rest": at.REST, "cells.total": at.TOTAL, "corrections.rows": at.ROWS,
    "weights.theta": at.THETA, "weights.held": at.HELD, "caution.nats": at.NATS,
    "slot_labels": at.LABEL, "numbers": at.NUMBERS,
}
"""The arrays behind the tensors of a user; beside them there are the pairs, as rows."""
# fmt: on
_GROUP = {array: group for group, arrays in _GROWING.items() for array in arrays}
_LEAST_ROOM = 64


def _options(o: LogitMemoryOptions) -> Array:
    """The constants, in the order of :mod:`.layout`."""
    # fmt: off
    return np.array([
        o.gate, o.forget, o.strength, o.sharpness, o.revisits, o.rate, o.kept, o.certainty,
        o.pseudo_count, o.row, o.noise, o.believed, o.harm, o.capacity,
    ], np.float64)
    # fmt: on


class CompiledUser:
    """A :class:`labelmem.logit_memory.user.User` in arrays; there and back nothing is lost."""

    compiled = True

    def __init__(self, user: User) -> None:
        saved, self.options, self.known = user.tensors(), user.options, user.known
        self.dim = user.statistics.dim
        self.listed, self.votes = saved["cells.label"].shape[1], saved["cells.about"].shape[1]
        self.features = len(user.theta)
        self.table = np.zeros((at.END, 3), np.int64)
        self.table[at.DIM, 0], self.table[at.KNOWN, 0] = self.dim, self.known
        self.arrays: dict[int, Array] = {}
        self.heard: Any = lambda: None
        votes = 1 + (self.options.revisits + 1) * self.votes
        self.more = (at.SLOTS, at.LABEL, votes), (at.CELLS, at.KEY, 1), (at.PAIRS, at.ANSWER, 1)
        """What a step may add at most, and an array that shows how much room there is."""
        self._hold(at.OPTIONS, _options(user.options))
        self._hold(at.START, user.weights.start.numpy().copy())
        self._hold(at.PRIOR, user.weights.prior.numpy().copy())
        for group, name in ((at.SLOTS, "slot_labels"), (at.CELLS, "cells.key"), (at.PAIRS, "rows")):
            self._grow(group, len(saved[name]))
            self.table[group, 0] = len(saved[name])
        for name, array in _SAVED.items():
            if array in _GROUP:
                self.arrays[array][: len(saved[name])] = saved[name].numpy()
            else:
                self._hold(array, saved[name].numpy().copy())
        self._load_pairs(saved["rows"])
        self.widest = 1 + int(saved["slot_labels"].max()) if self.slots else 0

    def _load_pairs(self, rows: Tensor) -> None:
        """Number the answers of the model in the order in which they come."""
        numbers: dict[int, int] = {}
        pair_of = [numbers.setdefault(a, len(numbers)) for a in rows[:, 0].long().tolist()]
        self.table[at.ANSWERS, 0], n = len(numbers), len(rows)
        self.arrays[at.ANSWER][: len(numbers)] = list(numbers)
        self.arrays[at.PAIR_OF][:n], self.arrays[at.PAIR_SLOT][:n] = pair_of, rows[:, 1].long()
        self.arrays[at.OFTEN][:n] = rows[:, 2]

    def _hold(self, array: int, held: Array) -> None:
        self.arrays[array] = held
        self.table[array] = held.ctypes.data, len(held), held.shape[-1]

    def _grow(self, group: int, needed: int) -> None:
        """Make room for so many and as many again."""
        room, used = max(_LEAST_ROOM, 2 * needed), int(self.table[group, 0])
        length = {"D": (self.dim,), "V": (self.votes,), "T": (self.listed,)}
        for array, kind in _GROWING[group].items():
            larger = np.zeros((room, *length.get(kind[1:], ())), kind[0])
            if used:
                larger[:used] = self.arrays[array][:used]
            self._hold(array, larger)
        if group in _TABLES:
            self._hold(_TABLES[group], np.empty(2 << (room - 1).bit_length(), np.int64))
        self.table[at.STALE, 0] = 1

    # ---------------------------------------------------------------- what is asked

    @property
    def slots(self) -> int:
        """Labels in memory."""
        return int(self.table[at.SLOTS, 0])

    @property
    def examples(self) -> int:
        """Cells there are."""
        return int(self.table[at.CELLS, 0])

    @property
    def theta(self) -> Tensor:
        """(k,) the weights."""
        return torch.from_numpy(self.arrays[at.THETA].copy())

    @property
    def noise(self) -> float:
        """The share of labels that are taken to be wrong."""
        return float(self.arrays[at.NUMBERS][5])

    def believe(self, x: Tensor, logits: Tensor, width: int) -> CompiledBelief | Belief:
        """Predict over ``width`` labels from a key x (1, d) and logits (1, L). Pure."""
        if x.shape[1] != self.dim or logits.shape[1] != self.known or self.widest > width:
            return self.plain().believe(x, logits, width)  # which says what is wrong
        x, logits = _addressable(x), _addressable(logits)
        size = of.room_of(self.features, self.listed, self.dim, self.examples, self.slots)
        room, told = np.empty(size), torch.empty(3, 1, width)
        places = (x.data_ptr(), logits.data_ptr(), told.data_ptr())
        if not predict(self.table, room, *places, width, False):
            value, label = logits[0].topk(self.listed)
            of.piece_of(room, of.LISTED)[:] = label.numpy()
            of.piece_of(room, of.VALUE)[:] = value.numpy()
            predict(self.table, room, *places, width, True)
        return CompiledBelief(self, x, room, told, self._now())

    def _now(self) -> Heard:
        """The votes of all cells as they are until a label is learned."""
        heard: Heard | None = self.heard()
        if heard is None:
            heard = Heard(self)
            self.heard = weakref.ref(heard)
        return heard

    # ---------------------------------------------------------------- what is learned

    def observe(self, belief: CompiledBelief, label: int) -> None:
        """Learn the label of an input."""
        if label < 0 or belief.x.shape[1] != self.dim:
            raise ValueError(f"label {label}, or a key of {belief.x.shape[1]} numbers")
        heard = self.heard()
        if heard is not None:
            heard.keep()
            self.heard = lambda: None
        table, x = self.table, belief.x.data_ptr()
        for group, first, more in self.more:
            if table[group, 0] + more > table[first, 1]:
                self._grow(group, int(table[group, 0]) + more)
        tally = self.arrays[at.TALLY]
        due = tally[0] < _FIRST or tally[0] + 1 >= tally[5]
        belief.room[of.PLACED] = not due and belief.root is self.arrays[at.ROOT]
        learn(table, belief.room, x, label, True, not due)
        if due:
            self._invert()
            learn(table, belief.room, x, label, False, True)
        self.widest = max(self.widest, label + 1)

    def _invert(self) -> None:
        """Let the reference make A anew, and move the places of all cells."""
        user = self.plain()
        user.statistics.renew()
        user.cells.place = user.statistics.placed(user.cells.key.double()).float()
        saved = user.tensors()
        for name in ("statistics.origin", "statistics.root", "statistics.numbers"):
            self._hold(_SAVED[name], saved[name].contiguous().numpy().copy())
        self.arrays[at.SQUARE][: self.slots] = saved["statistics.squares"]
        self.arrays[at.PLACE][: self.examples] = saved["cells.place"]
        self.arrays[at.CROSSED][:] = 0
        self.table[at.STALE, 0] = 1

    # ---------------------------------------------------------------- there and back

    def tensors(self) -> dict[str, Tensor]:
        """All of it, by the names of the reference."""
        found = {}
        for name, array in _SAVED.items():
            end = self.table[_GROUP[array], 0] if array in _GROUP else None
            found[name] = torch.from_numpy(self.arrays[array][:end].copy())
        upper = found["statistics.scatter"].triu()
        found["statistics.scatter"] = upper + upper.triu(1).T
        n, held = self.table[at.PAIRS, 0], self.arrays
        pair_of = held[at.PAIR_OF][:n]
        parts = held[at.ANSWER][pair_of], held[at.PAIR_SLOT][:n], held[at.OFTEN][:n]
        rows = np.stack(parts, 1)[pair_of.argsort(kind="stable")]
        return found | {"rows": torch.from_numpy(rows)}

    def plain(self) -> User:
        """The same user as the reference has it."""
        user = User(self.known, self.dim, self.options, torch.zeros(1))
        user.restore(self.tensors())
        return user

    def __reduce__(self) -> Any:
        # As arrays: a pickle of tensors would say where their bytes happen to lie.
        saved = {name: tensor.numpy() for name, tensor in self.tensors().items()}
        return _restored, (self.known, self.dim, self.options, saved)


def _restored(
    known: int, dim: int, options: LogitMemoryOptions, saved: dict[str, Array]
) -> CompiledUser:
    user = User(known, dim, options, torch.zeros(1))
    user.restore({name: torch.from_numpy(array) for name, array in saved.items()})
    return CompiledUser(user)


def _addressable(x: Tensor) -> Tensor:
    """The same numbers, where kernels can look at them."""
    return x if addressable(x) else x.detach().resolve_neg().clone().contiguous()
