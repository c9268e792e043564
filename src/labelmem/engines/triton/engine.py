"""The engine of many streams on a GPU: fused kernels for memory, combiner and mixture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from labelmem.engines.base import Engine
from labelmem.engines.triton import fused_on

if TYPE_CHECKING:
    from labelmem.lmn import LMN
    from labelmem.stepping import Step

__all__ = ["Triton"]


class Triton(Engine):
    """Streams in 32 bits on a GPU. What has no kernel is done in plain torch."""

    name = "triton"

    @classmethod
    def unsupported(cls, method: LMN, streams: int) -> str | None:
        """Whether there are a GPU, Triton and 32 bits."""
        if method.online is not None:
            return "the default form has no kernels for a GPU"
        if method.dtype != torch.float32:
            return f"the model is in {method.dtype}; kernels for a GPU are in torch.float32"
        if not fused_on(method.device):
            return f"Triton's kernels do not run on {method.device}, or Triton is not installed"
        return None

    def predict(self, state: Any, x: Any, width: int) -> Step:
        """Model, memory, combiner, mixture."""
        return self.method.forward(state, x, width)

    def observe(self, state: Any, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Write, and move the states on."""
        self.method.update(state, step, y, mask)
