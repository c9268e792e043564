"""One stream on a CPU, predicted and learned with few calls between the kernels.

Each part of a step is short where a stream is alone; what is left is the way from one part to the
next, through hooks, checks and tensors. Where model, key and combiner allow it, arrays are passed
on instead, and tensors are made of them when someone looks at the state.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelmem.batch import StreamBatch
from labelmem.fast import Array, array, compiled, tensor
from labelmem.lmn import LMN, LMNState
from labelmem.locks import one_at_a_time
from labelmem.online import OnlineMethod, Step
from labelmem.stream_combiner import RATES_32, StreamState
from labelmem.trees import leaves, rebuild

if TYPE_CHECKING:
    from labelmem.engines.numba.stream import Cells
    from labelmem.one_parts import Parts

__all__ = ["OneStreamBatch", "one_stream"]

_ANY = torch.zeros(1, 1)  # one stream on a CPU, to ask whether short ways are taken at all
_ROOM = 32  # cells that a full memory is made larger by
_STEPS = ("advance", "encode", "combine", "commit", "learn")  # what is done here instead


def one_stream(method: OnlineMethod[Any]) -> StreamBatch:
    """A single stream of any method, its steps as short as they can be.

    Examples
    --------
    >>> from labelmem import Adapter
    >>> one_stream(Adapter(torch.nn.Linear(2, 3))).predict(torch.zeros(1, 2)).shape
    torch.Size([1, 3])
    """
    if isinstance(method, LMN) and compiled(narrow=True) and method.device.type == "cpu":
        from labelmem.one_parts import parts_of

        kind = type(method)
        own = all(getattr(kind, name) is getattr(LMN, name) for name in _STEPS)
        if own and parts_of(method) is not None:
            return OneStreamBatch(method)
    return method.streams(1)


class _Held(NamedTuple):
    """What model, key and combiner remember, as arrays."""

    recurrent: tuple[Array, Array, Array]
    """Sums, weights and the tokens before."""
    mu: Array
    echo: Array
    past: Array


class _Open(NamedTuple):
    """A prediction that waits for its label."""

    parts: Parts
    token: int
    told: Array
    """(4, W) P, theta, r and s."""
    P: Tensor
    key: Array
    recurrent: tuple[Array, Array, Array]
    mu: Array
    guess: Array
    cells: Cells
    time: int


class OneStreamBatch(StreamBatch):
    """One stream of an LMN, its whole steps taken by kernels where the inputs are tokens."""

    method: LMN
    _tensors: LMNState
    _held: _Held | None

    def __init__(self, method: LMN) -> None:
        self._parts: Parts | None = None
        self._last: Step | None = None
        self._open: _Open | None = None
        super().__init__(method, 1)

    @property
    def _now(self) -> LMNState:
        """The committed state; whoever asks for it gets tensors."""
        if self._held is not None:
            recurrent, *own = self._held
            state, flat = self._tensors, (tensor(part) for part in recurrent)
            state.recurrent = rebuild(state.recurrent, flat)
            state.combiner = StreamState(*(tensor(part) for part in own))
            self._held = None
        return self._tensors

    @_now.setter
    def _now(self, state: LMNState) -> None:
        self._tensors, self._held = state, None

    @property
    @one_at_a_time
    def last(self) -> Step | None:
        """The prediction that waits for its labels."""
        if self._last is None and self._open is not None:
            told = (tensor(part) for part in self._open.told[1:])
            self._last = Step(torch.full((1,), self._open.token), self._open.P, *told)
        return self._last

    @last.setter
    def last(self, step: Step | None) -> None:
        self._last, self._open = step, None

    @one_at_a_time
    def predict(self, X: Any) -> Tensor:
        """Predict for one input; (1, L) probabilities. Pure."""
        found = self._predicted(X)
        if found is None:
            return super().predict(X)
        self._last, self._open = None, found
        return found.P

    @one_at_a_time
    def observe_ids(self, y: Tensor, mask: Tensor | None = None) -> None:
        """Reveal a label by its id."""
        if self._open is None or mask is not None or torch.is_inference_mode_enabled():
            return super().observe_ids(y, mask)
        self._learn(self._open, y)
        self.last = None
        if int(y) >= len(self._shared):
            self._number(y)

    def _commit(self, step: Step, y: Tensor, mask: Tensor | None) -> bool:
        if self._open is None:
            return super()._commit(step, y, mask)
        if mask is None or bool(mask):
            self._learn(self._open, y)
        self.last = None
        return False

    def _predicted(self, x: Any) -> _Open | None:
        """Model, memory, combiner, mixture; None where the method must be asked."""
        parts, memory = self._ready(), self._tensors.memory
        if parts is None or type(x) is not Tensor or x.dtype != torch.int64 or x.shape != (1,):
            return None
        if not memory.dim or not memory.fast or not memory._compiled(_ANY):
            return None
        token, held = int(x), self._held or self._loaded()
        sums, weights, before = held.recurrent
        if not 0 <= token <= parts.labels or parts.length(len(before)) != memory.dim:
            return None
        after = (np.empty_like(sums), np.empty_like(weights), np.empty_like(before))
        h, logits = np.empty(parts.dim, np.float32), np.empty(parts.labels, np.float32)
        key, mu = np.empty(memory.dim, np.float32), np.empty(parts.hidden, np.float32)
        if not parts.encode(parts.model, parts.key, token, held.recurrent, after, h, logits, key):
            return None
        config = memory.config
        read = memory._compiled_cells().read(key, float(config.lam), float(config.delta))
        cells, time, fades = parts.cells_of(read)
        told = np.empty((4, self.width if self._spaces else parts.labels), np.float32)
        guess = np.empty_like(cells.score)
        seen = (cells, logits, h if parts.sees_h else h[:0], held[1:], time, fades)
        how = (parts.correct, self.method.partition)
        parts.stream_step(parts.weights, *seen, *how, told, guess, mu)
        return _Open(parts, token, told, tensor(told[0]), key, after, mu, guess, cells, time)

    def _learn(self, opened: _Open, y: Tensor) -> None:
        """Move the states on and write."""
        held, cells = self._held or self._loaded(), opened.cells
        past, echo = np.empty_like(held.past), np.empty_like(held.echo)
        seen = (opened.guess, cells.names, cells.written, opened.time, opened.told[2], int(y))
        opened.parts.remember(*seen, held.past, RATES_32, past, echo)
        memory = self._tensors.memory
        if not memory.spare_ahead:  # to make room takes as long as several steps
            memory._grow(min(len(cells.names) + _ROOM, memory.config.capacity or sys.maxsize))
        memory.write(tensor(opened.key), y, opened.P)
        self._held = _Held(opened.recurrent, opened.mu, echo, past)

    def _ready(self) -> Parts | None:
        """What kernels need to know, if they can take the next step."""
        if not compiled(narrow=True) or torch.is_inference_mode_enabled():
            return None
        if self._tensors.form is not self.method._form:
            return None
        if self._parts is None or not self._parts.current():
            from labelmem.one_parts import parts_of

            self._parts = parts_of(self.method)
        return self._parts

    def _loaded(self) -> _Held:
        """The state as arrays."""
        own = self._tensors.combiner
        assert isinstance(own, StreamState)
        sums, weights, before = (array(leaf)[0] for leaf in leaves(self._tensors.recurrent))
        self._held = _Held(
            (sums, weights, before), *(array(x)[0] for x in (own.mu, own.echo, own.past))
        )
        return self._held
