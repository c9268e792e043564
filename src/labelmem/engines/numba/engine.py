"""The engine of streams on a CPU: compiled kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from labelmem.combiner import Combiner
from labelmem.engines.base import Engine
from labelmem.engines.numba import numba
from labelmem.engines.numba.many import observe_many, predict_many, unsupported_many
from labelmem.engines.numba.tokens import TokenStep, TokenSteps
from labelmem.fast import allowed
from labelmem.lmn.state import LMNStep

if TYPE_CHECKING:
    from labelmem.lmn import LMN
    from labelmem.stepping import Step

__all__ = ["Numba"]


class Numba(Engine):
    """One stream or many in 32 bits on a CPU.

    The model runs in torch, and what comes after it in kernels. One stream of a model that reads
    tokens and offers its arrays is taken by kernels from the token to the prediction.
    """

    name = "numba"

    def __init__(self, method: LMN) -> None:
        super().__init__(method)
        self._tokens = TokenSteps.of(method)

    @classmethod
    def unsupported(cls, method: LMN, streams: int) -> str | None:
        """Whether there is a kernel for every part but the model."""
        if numba is None:
            return "numba is not installed: pip install 'labelmem[fast]'"
        if not allowed():
            return "kernels are switched off here"
        if method.device.type != "cpu":
            return f"the model is on {method.device}; its kernels run on the CPU"
        if method.dtype != torch.float32:
            return f"the model is in {method.dtype}; its kernels are in torch.float32"
        if method.online is not None:
            return None
        return _without_kernel(method) or (unsupported_many(method) if streams > 1 else None)

    def current(self) -> bool:
        """Whether neither the adapter nor what its kernels look at has changed."""
        fresh = self._tokens is None or self._tokens.current()
        return fresh and super().current()

    def predict(self, state: Any, x: Any, width: int) -> Step:
        """Model, memory, combiner, mixture."""
        if state.streams > 1 and self.method.online is None:
            return predict_many(self.method, state, x, width)
        if self._tokens is not None:
            step = self._tokens.predict(state, x, width)
            if step is not None:
                return step
        return self.method.forward(state, x, width)

    def observe(self, state: Any, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Write, and move the states on."""
        if state.streams > 1 and isinstance(step, LMNStep) and observe_many(state, step, y, mask):
            return
        if isinstance(step, TokenStep) and step.opened.fits(state):
            if mask is None or bool(mask):
                step.opened.learn(state, y)
            return
        self.method.update(state, step, y, mask)


def _without_kernel(method: LMN) -> str | None:
    """What the adapter has that kernels do not do."""
    combiner, memory = method.combiner, method.memory
    if memory.cells_per_label != 1 and memory.cell_bits == 16:
        return "cells of 16 bits are read by kernels only where each label has one"
    if not isinstance(combiner, Combiner):
        return None
    if combiner.training:
        return "the combiner is in training mode"
    if getattr(combiner, "active_threshold", 0):
        return "a label combiner with an active_threshold has no kernels"
    if memory.cells_per_label != 1 and len(method.blocks()) > 1:
        return "a key in several parts is read by kernels only where each label has one cell"
    if next(combiner.parameters()).dtype != torch.float32:
        return "the combiner is not in torch.float32"
    return None
