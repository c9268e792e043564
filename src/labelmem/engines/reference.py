"""The reference engine: every step in plain torch, as the paper has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from labelmem.engines.base import Engine
from labelmem.fast import plainly

if TYPE_CHECKING:
    from labelmem.lmn import LMN
    from labelmem.stepping import Step

__all__ = ["Reference"]


class Reference(Engine):
    """Any number of streams, on any device, in any precision; no kernel takes part."""

    name = "reference"

    @classmethod
    def unsupported(cls, method: LMN, streams: int) -> str | None:
        """It fits everything."""
        return None

    def predict(self, state: Any, x: Any, width: int) -> Step:
        """Model, memory, combiner, mixture."""
        with plainly():
            return self.method.forward(state, x, width)

    def observe(self, state: Any, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Write, and move the states on."""
        with plainly():
            self.method.update(state, step, y, mask)
