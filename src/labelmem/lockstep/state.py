"""Where the state of an LMN's streams lies, and whether its steps can be recorded for a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from labelmem.backbone import Hooks
from labelmem.combiner import Combiner, CombinerState
from labelmem.config import MemoryConfig
from labelmem.keys import Joined
from labelmem.label_combiner import LabelCombiner, LabelState
from labelmem.memory import LabeledMemory
from labelmem.trees import leaves, rebuild

__all__ = ["Held", "Holder", "can_record", "hooks_of"]

DEVICES = ("cuda",)
"""Where steps are recorded."""
_OWN = ("torch.nn.modules.", "labelmem.models.", "labelmem.keys")
_SPARE = 256  # positions made at a time: what a short stream needs, so that it is recorded once
_MOST = 2**28  # bytes of them
_MEMORY = ("v", "alpha", "label", "written", "born", "writes", "rates", "used", "time")
_NAMED = [(f"memory.{name}", name) for name in _MEMORY]


def can_record(
    device: torch.device,
    memory: MemoryConfig,
    combiner: float | Combiner,
    model: nn.Module,
    key: object,
) -> bool:
    """Whether no part of a step waits for the device, or has a shape that depends on its data.

    Models and keys are taken at their word where they say ``recordable = True``; torch's and this
    package's own are known to be. The user's hooks would not be called, so none may be there.

    Examples
    --------
    >>> cpu = torch.device("cpu")
    >>> can_record(cpu, MemoryConfig(), 0.5, nn.Linear(2, 2), None)
    False
    """
    sparse = isinstance(combiner, LabelCombiner) and combiner.active_threshold > 0
    parts = [*model.modules(), *parts_of(key)]
    return (
        device.type in DEVICES
        and memory.cells_per_label == 1
        and not sparse
        and all(_known(part) for part in parts)
        and not hooks_of(combiner, model, key).of_user()
    )


def parts_of(key: object) -> Iterator[object]:
    """A key and all that it consists of, however deep."""
    if isinstance(key, nn.Module):
        yield from key.modules()
    elif key is not None:
        yield key
        for part in key.keys if isinstance(key, Joined) else ():
            yield from parts_of(part)


def hooks_of(combiner: float | Combiner, model: nn.Module, key: object) -> Hooks:
    """The hooks of all modules that a recorded step does not call."""
    parts = (*model.modules(), combiner, *parts_of(key))
    return Hooks(part for part in parts if isinstance(part, nn.Module))


def _known(part: object) -> bool:
    return type(part).__module__.startswith(_OWN) or getattr(part, "recordable", False) is True


class Holder(Protocol):
    """What has the parts of an LMN's state."""

    memory: LabeledMemory
    combiner: CombinerState | None
    recurrent: Any


class Held:
    """The tensors of a state, by name: a recorded step reads and writes these very bytes.

    Parameters
    ----------
    state
        The streams' state. It stays the state: a step that is not recorded may go on from it.
    usable
        Whether recorded steps still do what the method would.
    """

    def __init__(self, state: Holder, usable: Callable[[], bool]) -> None:
        self.state, self.usable = state, usable
        self._writes_left = 0.0
        # Asked for in every step, so they are found once.
        names = () if state.combiner is None else fields(state.combiner)
        self._fields = [(f"combiner.{field.name}", field.name) for field in names]

    def make_room(self, width: int) -> None:
        """Make sure that the next step, over ``width`` labels, needs no new positions."""
        memory = self.state.memory
        if self._writes_left < 1 or memory.spare_ahead:
            bytes_each = max(1, memory.streams * memory.v.shape[2] * memory.v.element_size())
            spare = max(1, min(_SPARE, _MOST // bytes_each))
            left, least = memory.reserve(0), max(1, spare // 8)
            if left < least:  # else it is not worth a new recording
                used = memory.label.shape[1] - int(left)
                # Whole parts: kernels work on powers of two, and one more would double them.
                left = memory.reserve((used + least + spare - 1) // spare * spare - used)
            self._writes_left = left
        if isinstance(self.state.combiner, LabelState):
            self.state.combiner = self.state.combiner.with_spare(1 + width)

    def wrote(self) -> None:
        """Every stream may have taken one position more."""
        self._writes_left -= 1

    def disturbed(self) -> None:
        """A step that was not recorded came between: look again how much room there is."""
        self._writes_left = 0

    def tensors(self) -> dict[str, Tensor]:
        """All of the state."""
        memory, combiner = self.state.memory, self.state.combiner
        found = {label: getattr(memory, name) for label, name in _NAMED}
        if combiner is not None:
            for label, name in self._fields:
                x = getattr(combiner, name)
                if x is not None:
                    found[label] = x
        for i, x in enumerate(leaves(self.state.recurrent)):
            found[f"model.{i}"] = x
        return found

    def put(self, tensors: dict[str, Tensor]) -> None:
        """Let the state consist of these."""
        for label, name in _NAMED:
            setattr(self.state.memory, name, tensors[label])
        if self.state.combiner is not None:
            own = {k.removeprefix("combiner."): t for k, t in tensors.items() if "combiner." in k}
            self.state.combiner = replace(self.state.combiner, **own)
        flat = (tensors[f"model.{i}"] for i in range(len(tensors)))
        self.state.recurrent = rebuild(self.state.recurrent, flat)
