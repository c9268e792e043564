"""What a labeled memory network remembers of its streams, and what it finds in a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labelmem.combiner import CombinerState, CombinerStep, View
from labelmem.memory import LabeledMemory, MemoryRead
from labelmem.online import Step
from labelmem.trees import leaves, rebuild

__all__ = ["LMNState", "LMNStep", "Recurrent"]

Recurrent = tuple[Any, Any]
"""The states of the model and of the key."""


@dataclass
class LMNState:
    """All that ``n`` streams remember."""

    memory: LabeledMemory
    combiner: CombinerState | None
    recurrent: Recurrent
    form: Any = "fixed"
    """The form of the combiner that the streams began with."""

    @property
    def streams(self) -> int:
        """How many there are."""
        return self.memory.streams

    @property
    def cells(self) -> int:
        """How many examples they remember together."""
        return len(self.memory)

    def tensors(self) -> dict[str, Tensor]:
        """All of it, by name."""
        saved = {f"memory.{name}": t for name, t in self.memory.tensors().items()}
        if self.combiner is not None:
            saved |= {f"combiner.{name}": t for name, t in self.combiner.tensors().items()}
        return saved | {f"model.{i}": t for i, t in enumerate(leaves(self.recurrent))}

    def restore(self, tensors: dict[str, Tensor], device: torch.device) -> None:
        """Take over what :meth:`tensors` gave, in a state of the same form."""
        self.memory.restore(_part(tensors, "memory."))
        if self.combiner is not None:
            parts = {k: t.to(device) for k, t in _part(tensors, "combiner.").items()}
            self.combiner = type(self.combiner)(**parts)
        saved = (tensors[f"model.{i}"].to(device) for i in range(len(tensors)))
        self.recurrent = rebuild(self.recurrent, saved)


@dataclass(frozen=True, repr=False)
class LMNStep(Step):
    """A step of the adapter, with what its commit needs."""

    h: Tensor | None = None
    key: Tensor | None = None
    read: MemoryRead | None = None
    combined: CombinerStep | None = None
    recurrent: Recurrent = (None, None)
    highest: Tensor | None = None
    """(n, 2) the two highest of P; None if they were not looked for."""

    def view(self) -> View:
        """What the combiner looked at."""
        assert self.h is not None and self.read is not None
        assert self.model_probs is not None and self.memory_probs is not None
        return View(self.h, self.model_probs, self.memory_probs, self.read)


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}
