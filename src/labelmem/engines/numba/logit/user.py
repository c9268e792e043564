"""A user of the default form whose steps are compiled: arrays with room, and the two calls."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelmem.engines.numba.logit.belief import PLACED, belief_at, room_of
from labelmem.engines.numba.logit.believed import CompiledBelief, Heard
from labelmem.engines.numba.logit.fitting import fits
from labelmem.engines.numba.logit.layout import (
    ANSWERS,
    CELLS,
    COUNTS,
    PAIRS,
    ROOM,
    SLOTS,
    STALE,
    Constants,
    Memory,
)
from labelmem.engines.numba.logit.learn import learn
from labelmem.engines.numba.logit.predict import predict
from labelmem.fast import Array, addressable
from labelmem.logit_memory import caution, evidence, statistics, user, weights
from labelmem.logit_memory.options import LogitMemoryOptions
from labelmem.logit_memory.user import Belief, User

__all__ = ["CompiledUser", "fits"]

_FIRST = {SLOTS: 64, CELLS: 64, PAIRS: 64}
"""Room at the beginning."""
_ARRAYS = {
    SLOTS: {
        "label": "q",
        "count": "d",
        "square": "d",
        "sums": "dD",
        "rows": "dD",
        "centred": "dD",
        "pull": "d",
        "log_count": "f",
        "is_new": "f",
    },
    CELLS: {
        "key": "fD",
        "place": "fD",
        "slot": "q",
        "about": "qV",
        "vote": "fV",
        "listed": "qT",
        "value": "fT",
        "rest": "f",
        "total": "f",
        "across": "dD",
        "crossed": "q",
        "length": "f",
    },
    PAIRS: {
        "answer": "q",
        "pair_of": "q",
        "pair_slot": "q",
        "often": "d",
        "next": "q",
        "first": "q",
        "last": "q",
    },
}
"""Arrays that grow: whole numbers, 64 bits or 32, and the length of their rows."""
_TABLES = {SLOTS: "table", PAIRS: "answers"}
_SAVED = {
    "statistics.sums": "sums",
    "statistics.counts": "count",
    "statistics.squares": "square",
    "statistics.mean": "mean",
    "statistics.origin": "origin",
    "statistics.root": "root",
    "statistics.numbers": "tally",
    "cells.key": "key",
    "cells.place": "place",
    "cells.slot": "slot",
    "cells.about": "about",
    "cells.vote": "vote",
    "cells.label": "listed",
    "cells.value": "value",
    "cells.rest": "rest",
    "cells.total": "total",
    "corrections.rows": "rows",
    "weights.theta": "theta",
    "weights.held": "held",
    "caution.nats": "nats",
    "slot_labels": "label",
    "numbers": "numbers",
}
"""The arrays behind the tensors of a user; beside these, the scatter and the pairs."""
_GROUP = {name: group for group, names in _ARRAYS.items() for name in names}




def _constants(options: LogitMemoryOptions) -> Array:
    """The numbers behind :class:`.layout.Constants`."""
    o = options
    return np.array(
        Constants(
            gate=o.gate,
            forget=o.forget,
            strength=o.strength,
            sharpness=o.sharpness,
            revisits=o.revisits,
            rate=o.rate,
            kept=o.kept,
            certainty=o.certainty,
            pseudo_count=o.pseudo_count,
            row=o.row,
            noise=o.noise,
            believed=o.believed,
            harm=o.harm,
            capacity=o.capacity,
            clear=evidence._CLEAR,
            half=evidence._HALF,
            mix=user._MIX,
            pull=user._PULL,
            said=user._SAID,
            least_noise=user._LEAST,
            most_noise=user._LARGEST,
            early=user._EARLY,
            doubted=statistics._DOUBTED,
            relied=statistics._RELIED,
            steepest=statistics._STEEPEST,
            kappa_kept=statistics._KEPT,
            most_caution=caution._MOST,
            clearly=caution._CLEARLY,
            may_swap=caution._MAY_SWAP,
            relief=caution._RELIEF,
            wrong=caution._WRONG,
            soft=caution._SOFT,
            even=weights._EVEN,
        ),
        np.float64,
    )


class CompiledUser:
    """A :class:`labelmem.logit_memory.user.User` in arrays; there and back nothing is lost."""

    compiled = True

    def __init__(self, before: User) -> None:
        self.options, self.known = before.options, before.known
        saved = before.tensors()
        self.dim = len(saved["statistics.mean"])
        self.listed, self.votes = saved["cells.label"].shape[1], saved["cells.about"].shape[1]
        self.features = len(saved["weights.theta"])
        self.table = np.zeros(COUNTS + len(Memory._fields), np.int64)
        self.table[:5] = self.dim, self.listed, self.votes, self.features, self.known
        self.arrays: dict[str, Array] = {}
        self._put("constants", _constants(before.options))
        self.heard: Any = lambda: None
        self._load(saved, before.weights.start, before.weights.prior)

    def _load(self, saved: dict[str, Tensor], start: Tensor, prior: Tensor) -> None:
        scatter = saved["statistics.scatter"]
        self._hold(start=start, prior=prior, scatter=scatter)
        answers: dict[int, int] = {}
        rows = saved["rows"]
        of = [answers.setdefault(answer, len(answers)) for answer in rows[:, 0].long().tolist()]
        used = {SLOTS: len(saved["slot_labels"]), CELLS: len(saved["cells.key"]), PAIRS: len(rows)}
        for group, n in used.items():
            self.table[group] = 0
            self._grow(group, n)
            self.table[group] = n
        self.table[ANSWERS] = len(answers)
        for name, array in _SAVED.items():
            if array in _GROUP:
                self.arrays[array][: len(saved[name])] = saved[name].numpy()
            else:
                self._hold(**{array: saved[name]})
        n = len(rows)
        self.arrays["answer"][: len(answers)] = list(answers)
        self.arrays["pair_of"][:n] = of
        self.arrays["pair_slot"][:n], self.arrays["often"][:n] = rows[:, 1].long(), rows[:, 2]
        self._renew()

    def _hold(self, **tensors: Tensor) -> None:
        """Take over arrays that do not grow."""
        for name, tensor in tensors.items():
            self._put(name, tensor.detach().clone().contiguous().numpy())

    def _put(self, name: str, array: Array) -> None:
        self.arrays[name] = array
        self.table[COUNTS + Memory._fields.index(name)] = array.ctypes.data

    def _grow(self, group: int, needed: int) -> None:
        """Make room for so many, and for as many again."""
        room, used = max(_FIRST[group], 2 * needed), int(self.table[group])
        lengths = {"": (), "D": (self.dim,), "V": (self.votes,), "T": (self.listed,)}
        for name, (kind, *length) in _ARRAYS[group].items():
            larger = np.zeros((room, *lengths["".join(length)]), kind)
            if used:
                larger[:used] = self.arrays[name][:used]
            self._put(name, larger)
        self.table[ROOM + (SLOTS, CELLS, PAIRS).index(group)] = room
        if group in _TABLES:
            size = 2 << (room - 1).bit_length()
            self.table[ROOM + (3 if group == SLOTS else 4)] = size
            self._put(_TABLES[group], np.empty(size, np.int64))
        self.table[STALE] = 1

    def _renew(self) -> None:
        """Note that what follows must be made anew."""
        self.table[STALE] = 1
        self.arrays["crossed"][:] = 0
        labels = self.arrays["label"][: self.slots]
        self.widest = int(labels.max()) + 1 if self.slots else 0

    # ---------------------------------------------------------------- what is asked

    @property
    def slots(self) -> int:
        """Labels in memory."""
        return int(self.table[SLOTS])

    @property
    def cells(self) -> int:
        """Cells there are."""
        return int(self.table[CELLS])

    @property
    def theta(self) -> Tensor:
        """The weights."""
        return torch.from_numpy(self.arrays["theta"].copy())

    @property
    def noise(self) -> float:
        """The share of labels that are taken to be wrong."""
        return float(self.arrays["numbers"][5])

    def believe(self, x: Tensor, logits: Tensor, width: int) -> CompiledBelief | Belief:
        """Predict over ``width`` labels from a key x (1, d) and logits (1, L). Pure."""
        if x.shape[1] != self.dim or logits.shape[1] != self.known or self.widest > width:
            return self.plain().believe(x, logits, width)  # which says what is wrong
        x, logits = _addressable(x), _addressable(logits)
        sizes = (self.features, self.listed, self.dim, self.slots, self.cells)
        room, told = np.empty(room_of(*sizes)), torch.empty(3, 1, width)
        at = (x.data_ptr(), logits.data_ptr(), told.data_ptr())
        if not predict(self.table, room, *at, width, False):
            python = getattr(belief_at, "py_func", belief_at)
            b, largest = python(room, *sizes), logits[0].topk(self.listed)
            b.listed[:], b.value[:] = largest.indices.numpy(), largest.values.numpy()
            predict(self.table, room, *at, width, True)
        if self.heard() is None:
            heard = Heard()
            self.heard = weakref.ref(heard)
        return CompiledBelief(self, x, room, told)

    # ---------------------------------------------------------------- what is learned

    def observe(self, belief: CompiledBelief, label: int) -> None:
        """Learn the label of an input."""
        if label < 0 or belief.x.shape[1] != self.dim:
            raise ValueError(f"label {label} or a key of {belief.x.shape[1]} numbers")
        heard = self.heard()
        if heard is not None:
            heard.keep(self)
            self.heard = lambda: None
        o, table = self.options, self.table
        slots = self.slots + 1 + (o.revisits + 1) * o.votes
        if slots > table[ROOM]:
            self._grow(SLOTS, slots)
        if table[CELLS] >= table[ROOM + 1]:
            self._grow(CELLS, self.cells + 1)
        if table[PAIRS] >= table[ROOM + 2]:
            self._grow(PAIRS, int(table[PAIRS]) + 1)
        self.widest = max(self.widest, label + 1)
        tally = self.arrays["tally"]
        seen = tally[0] + 1
        due = seen <= statistics._FIRST or seen >= tally[5]
        sizes = (belief.slots, belief.cells)
        x = belief.x.data_ptr()
        belief.room[PLACED] = not due and belief.root is self.arrays["root"]
        learn(table, belief.room, x, label, *sizes, True, not due)
        if due:
            self._invert()
            learn(table, belief.room, x, label, *sizes, False, True)

    def _invert(self) -> None:
        """Let the reference make A anew, and move the places of all cells."""
        made = self.plain()
        made.statistics.renew()
        made.cells.place = made.statistics.placed(made.cells.key.double()).float()
        saved = made.tensors()
        for name in ("origin", "root", "numbers"):
            self._hold(**{_SAVED[f"statistics.{name}"]: saved[f"statistics.{name}"]})
        self.arrays["square"][: self.slots] = saved["statistics.squares"].numpy()
        self.arrays["place"][: self.cells] = saved["cells.place"].numpy()
        self._renew()

    # ---------------------------------------------------------------- there and back

    def tensors(self) -> dict[str, Tensor]:
        """All of it, by the names of the reference."""
        found = {}
        for name, array in _SAVED.items():
            held = self.arrays[array]
            held = held[: self.table[_GROUP[array]]] if array in _GROUP else held
            found[name] = torch.from_numpy(held.copy())
        upper = np.triu(self.arrays["scatter"])
        found["statistics.scatter"] = torch.from_numpy(upper + np.triu(upper, 1).T)
        n = int(self.table[PAIRS])
        of, slot, often = (self.arrays[name][:n] for name in ("pair_of", "pair_slot", "often"))
        order = np.argsort(of, kind="stable")
        rows = np.stack([self.arrays["answer"][of], slot, often], 1)[order]
        return found | {"rows": torch.from_numpy(rows)}

    def plain(self) -> User:
        """The same user as the reference has it."""
        made = User(self.known, self.dim, self.options, torch.zeros(1))
        made.restore(self.tensors())
        return made

    def __reduce__(self) -> Any:
        return CompiledUser, (self.plain(),)


def _addressable(x: Tensor) -> Tensor:
    """The same numbers, where kernels can look at them."""
    return x if addressable(x) else x.detach().resolve_neg().clone(memory_format=torch.contiguous_format)
