"""One stream of tokens: a step from the token to the prediction with few calls between kernels.

Each part of a step is short where a stream is alone; what is left is the way from one part to the
next, through hooks, checks and tensors. Where model, key and combiner allow it, arrays are passed
on instead, and tensors are made of them when someone looks.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from labelmem.backbone import Hooks
from labelmem.engines.numba.combiner import cells_of, weights_of
from labelmem.engines.numba.encode import HistoryArrays, TokenArrays, encode
from labelmem.engines.numba.stream import Cells, remember, stream_step
from labelmem.engines.numba.told import CompiledRead
from labelmem.fast import Array, array, tensor
from labelmem.keys import Key
from labelmem.lmn.state import LMNState, LMNStep
from labelmem.stream_combiner import RATES_32, StreamCombiner, StreamState
from labelmem.stream_combiner.state import StreamStep
from labelmem.trees import leaves, rebuild

if TYPE_CHECKING:
    from labelmem.lmn import LMN

__all__ = ["TokenStep", "TokenSteps"]

_ROOM = 32  # cells that a full memory is made larger by
_OWN = ("forward", "encode", "combine", "update", "learn")
"""What kernels do instead; a subclass with one of its own is taken at its word."""


class Arrays(NamedTuple):
    """What model, key and combiner remember of a stream, as arrays."""

    recurrent: tuple[Array, Array, Array]
    """Sums, weights and the tokens before."""
    mu: Array
    echo: Array
    past: Array

    @classmethod
    def of(cls, state: LMNState) -> Arrays:
        """Those of a state, which keeps them until somebody asks it for tensors."""
        if state.arrays is None:
            own = cast(StreamState, state.combiner)
            sums, weights, before = (array(leaf)[0] for leaf in leaves(state.recurrent))
            memories = (array(x)[0] for x in (own.mu, own.echo, own.past))
            state.put(cls((sums, weights, before), *memories), moved=False)
        found: Arrays = state.arrays
        return found

    def tensors(self, recurrent: Any) -> tuple[StreamState, Any]:
        """The combiner's state, and those of model and key, in the form of ``recurrent``."""
        moved = rebuild(recurrent, (tensor(part) for part in self.recurrent))
        return StreamState(*(tensor(part) for part in self[1:])), moved


class Opened(NamedTuple):
    """A prediction that waits for its label."""

    steps: TokenSteps
    before: Arrays
    """What the stream remembered when it was predicted."""
    token: int
    rows: Array
    """(4, W) P, theta, r and s."""
    P: Tensor
    h: Array
    key: Array
    recurrent: tuple[Array, Array, Array]
    mu: Array
    guess: Array
    cells: Cells
    read: CompiledRead

    def fits(self, state: LMNState) -> bool:
        """Whether the stream is still where it was when this was predicted."""
        return state.arrays is self.before

    def learn(self, state: LMNState, y: Tensor) -> None:
        """Write, and move the states on."""
        held, cells, memory = self.before, self.cells, state.memory
        past, echo = np.empty_like(held.past), np.empty_like(held.echo)
        time = self.read.moment.time
        seen = (self.guess, cells.names, cells.written, time, self.rows[2], int(y))
        remember(*seen, held.past, RATES_32, past, echo)
        if not memory.spare_ahead:  # to make room takes as long as several steps
            memory.make_room(min(len(cells.names) + _ROOM, memory.config.capacity or sys.maxsize))
        memory.write(tensor(self.key), y, self.P)
        state.put(Arrays(self.recurrent, self.mu, echo, past), moved=True)


class TokenStep(LMNStep):
    """A step by kernels; its tensors are made when they are asked for."""

    opened: Opened
    recurrent_form: Any

    def __init__(self, opened: Opened, form: Any) -> None:
        # Past the guard that makes steps unchangeable.
        own = self.__dict__
        own["opened"], own["probs"], own["recurrent_form"] = opened, opened.P, form

    def __reduce__(self) -> Any:
        """In copies the bytes that kernels look at lie elsewhere: a step in tensors."""
        return LMNStep, tuple(getattr(self, field.name) for field in fields(LMNStep))

    x = cached_property(lambda self: torch.full((1,), self.opened.token))
    theta = cached_property(lambda self: tensor(self.opened.rows[1]))
    model_probs = cached_property(lambda self: tensor(self.opened.rows[2]))
    memory_probs = cached_property(lambda self: tensor(self.opened.rows[3]))
    h = cached_property(lambda self: tensor(self.opened.h))
    key = cached_property(lambda self: tensor(self.opened.key))
    read = cached_property(lambda self: self.opened.read)
    highest = None

    @cached_property
    def combined(self) -> StreamStep:
        """The combiner's step."""
        guess = self.opened.read.at_cells(self.opened.guess)
        return StreamStep(self.theta, tensor(self.opened.mu), guess=guess)

    @cached_property
    def recurrent(self) -> Any:
        """The next states of model and key."""
        return rebuild(self.recurrent_form, (tensor(part) for part in self.opened.recurrent))


class TokenSteps:
    """Model, key and combiner as arrays over their bytes, and whether they still are there."""

    def __init__(
        self, method: LMN, combiner: StreamCombiner, model: HistoryArrays, key: TokenArrays
    ) -> None:
        self.model, self.key, self.weights = model, key, weights_of(combiner)
        self.combiner, self.method = combiner, method
        self.labels, self.dim = model.table.shape
        whole = method.backbone.model
        parts = (whole, *whole.children())
        self._hooks = [hooks for m in parts for hooks in (m._forward_hooks, m._forward_pre_hooks)]
        owners = (*parts, combiner, combiner.gru)
        kept = [held for m in owners for held in (m._parameters, m._buffers) if held]
        self._kept = cast(list[dict[str, Tensor | None]], kept)
        self._stamp = self._seen()

    @classmethod
    def of(cls, method: LMN) -> TokenSteps | None:
        """Those of an adapter, if kernels can take all of its steps."""
        from labelmem.lmn import LMN

        model, key, combiner = method.backbone.model, method.key, method.combiner
        kind = type(method)
        if not all(getattr(kind, name) is getattr(LMN, name) for name in _OWN):
            return None
        if not isinstance(combiner, StreamCombiner) or not isinstance(key, Key):
            return None
        offered = getattr(model, "for_kernels", None)
        if offered is None or method.backbone.closed or Hooks(model.modules()).of_user():
            return None
        if method.backbone.head is not getattr(model, "head", None) or method.learns_kernel:
            return None
        seen: HistoryArrays | None = offered()
        if seen is None or method.memory.cells_per_label != 1 or method.memory.index:
            return None
        tokens = key.for_kernels(len(seen.table) + 1)  # the labels, and the start of a stream
        return None if tokens is None else cls(method, combiner, seen, tokens)

    def current(self) -> bool:
        """Whether the adapter is as it was; training changes weights in place."""
        method = self.method
        return (
            not method.learns_kernel and not method.backbone.closed and self._stamp == self._seen()
        )

    def predict(self, state: LMNState, x: Any, width: int) -> TokenStep | None:
        """Eq. 1 to 5; None where the first cell is still to come, or the token is no token."""
        dim = state.memory.dim
        if type(x) is not Tensor or x.dtype != torch.int64 or x.shape != (1,) or not dim:
            return None
        held, token, hidden = Arrays.of(state), int(x), self.combiner.hidden
        sums, weights, before = held.recurrent
        if not 0 <= token <= self.labels or self._length(len(before)) != dim:
            return None
        after = (np.empty_like(sums), np.empty_like(weights), np.empty_like(before))
        h, logits = np.empty(self.dim, np.float32), np.empty(self.labels, np.float32)
        key, mu = np.empty(dim, np.float32), np.empty(hidden, np.float32)
        if not encode(self.model, self.key, token, held.recurrent, after, h, logits, key):
            return None
        read = state.memory.read_one(key)
        cells, time, fades = cells_of(read)
        rows = np.empty((4, max(width, self.labels)), np.float32)
        guess = np.empty_like(cells.score)
        seen = (cells, logits, h if self.combiner.sees_h else h[:0], held[1:], time, fades)
        how = (self.combiner.correct, self.method.partition)
        stream_step(self.weights, *seen, *how, rows, guess, mu)
        made = (tensor(rows[0]), h, key, after, mu, guess, cells, read)
        return TokenStep(Opened(self, held, token, rows, *made), state.recurrent_form)

    def _length(self, before: int) -> int:
        """Of a key, with so many tokens before the present one."""
        tokens = before + 2 if self.key.pair else before + 1
        width: int = tokens * self.key.directions.shape[1]
        return width + self.dim if self.key.share else width

    def _seen(self) -> list[int]:
        """Where the weights lie, whether they are trained, and who wants to see the model run."""
        found = [x.data_ptr() for held in self._kept for x in held.values() if x is not None]
        return [*found, *map(len, self._hooks), self.method.backbone.model.training]
