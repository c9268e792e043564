"""A classifier around a model: one stream of an adapter, asked many questions at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from labelmem.adapter import Adapter
from labelmem.config import MemoryConfig
from labelmem.interop.vectors import Array
from labelmem.labels import LabelSpace, plain

__all__ = ["Worn"]

_ROOM = 2**22  # numbers in the copies of the memory, one for each question asked at a time


class Worn:
    """One stream that can be asked about many inputs between two labels, copied and pickled.

    It steps exactly as :class:`labelmem.Stream` does.

    Parameters
    ----------
    model, head, labels, memory, key
        As for :class:`labelmem.Adapter`.
    theta
        The fixed weight of the memory; None is the default form of :class:`labelmem.Adapter`.

    Examples
    --------
    >>> model = nn.Linear(2, 2)
    >>> worn = Worn(model, None, ["cat", "dog"], None, theta=0.5)
    >>> worn.learn(np.array([1.0, 0.0]), "emu")
    >>> worn.space.names(3), worn.probs(np.eye(2)).shape
    (['cat', 'dog', 'emu'], (2, 3))
    """

    def __init__(
        self,
        model: nn.Module,
        head: str | None,
        labels: Iterable[Hashable] | None,
        memory: MemoryConfig | None,
        theta: float | None,
        key: Callable[[Any, Tensor], Tensor] | None = None,
    ) -> None:
        self.adapter = Adapter(model, head, labels, memory, theta, key)
        self.space = LabelSpace(self.adapter.known)
        self._state = self.adapter.initial_state(1)

    def probs(self, X: Array) -> Array:
        """Probabilities (n, L) of the labels of ``space`` for inputs (n, ...). Changes nothing."""
        size = sum(tensor.numel() for tensor in self.adapter.tensors(self._state).values())
        rows = max(1, _ROOM // max(1, size))
        parts = [self._probs(X[i : i + rows]) for i in range(0, len(X), rows)]
        P = np.concatenate([part.double().cpu().numpy() for part in parts])
        # In single precision a sum is one to seven digits; peers look closer.
        total = P.sum(axis=1, keepdims=True)
        return P / np.where(total > 0, total, 1.0)

    def learn(self, x: Array, y: Hashable) -> None:
        """Learn that the label of one input is ``y``, which may be new."""
        step = self.adapter.advance(self._state, self._tensor(x[None]), len(self.space))
        index = torch.tensor([self.space.add(plain(y))], device=self.adapter.device)
        self.adapter.commit(self._state, step, index, None)

    def _probs(self, X: Array) -> Tensor:
        state = self._state if len(X) == 1 else self.adapter.repeated(self._state, len(X))
        probs: Tensor = self.adapter.advance(state, self._tensor(X), len(self.space)).probs
        return probs

    def _tensor(self, X: Array) -> Tensor:
        return torch.tensor(X, device=self.adapter.device, dtype=self.adapter.dtype)
