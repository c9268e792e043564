"""What a labeled memory network remembers of its streams, and what it finds in a step."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import torch
from torch import Tensor

from labelmem.combiner import CombinerState, CombinerStep, View
from labelmem.memory import LabeledMemory, MemoryRead
from labelmem.online import Step
from labelmem.trees import leaves, rebuild

__all__ = ["LMNState", "LMNStep", "Recurrent"]

Recurrent = tuple[Any, Any]
"""The states of the model and of the key."""


class Arrays(Protocol):
    """What an engine keeps in place of the tensors of combiner, model and key."""

    def tensors(self, recurrent: Recurrent) -> tuple[CombinerState, Recurrent]:
        """The state of the combiner, and those of model and key in the form of ``recurrent``."""


class LMNState:
    """All that ``n`` streams remember.

    Parameters
    ----------
    form
        The form of the combiner that the streams began with.
    """

    def __init__(
        self,
        memory: LabeledMemory,
        combiner: CombinerState | None,
        recurrent: Recurrent,
        form: Any = "fixed",
    ) -> None:
        self.memory, self.form = memory, form
        self._combiner, self._recurrent = combiner, recurrent
        self._arrays: Any = None
        self._behind = False

    @property
    def arrays(self) -> Any:
        """What an engine put here in place of tensors; None if they were set since."""
        return self._arrays

    def put(self, arrays: Arrays, moved: bool) -> None:
        """Let an engine's arrays say what is remembered; tensors are made when asked for."""
        self._arrays, self._behind = arrays, moved or self._behind

    def _catch_up(self) -> None:
        """Make the tensors that the arrays stand for."""
        if self._behind:
            self._combiner, self._recurrent = self._arrays.tensors(self._recurrent)
            self._behind = False

    @property
    def recurrent_form(self) -> Recurrent:
        """A tree of the form that the states of model and key have; not their values."""
        return self._recurrent

    @property
    def combiner(self) -> CombinerState | None:
        """The combiner's state; None where theta is fixed."""
        self._catch_up()
        return self._combiner

    @combiner.setter
    def combiner(self, combiner: CombinerState | None) -> None:
        self._catch_up()
        self._combiner, self._arrays = combiner, None

    @property
    def recurrent(self) -> Recurrent:
        """The states of model and key."""
        self._catch_up()
        return self._recurrent

    @recurrent.setter
    def recurrent(self, recurrent: Recurrent) -> None:
        self._catch_up()
        self._recurrent, self._arrays = recurrent, None

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

    def moved(self, now: LMNStep) -> LMNStep:
        """The same prediction, with the next states that a later one leads to."""
        own = {field.name: getattr(self, field.name) for field in fields(LMNStep)}
        return LMNStep(**own | {"combined": now.combined, "recurrent": now.recurrent})

    def view(self) -> View:
        """What the combiner looked at."""
        assert self.h is not None and self.read is not None
        assert self.model_probs is not None and self.memory_probs is not None
        return View(self.h, self.model_probs, self.memory_probs, self.read)


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}
