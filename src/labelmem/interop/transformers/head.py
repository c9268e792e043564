"""The output layer of a causal language model, seen as a classifier of hidden vectors."""

from __future__ import annotations

import threading
from typing import Any, Self

import torch
from torch import Tensor, nn

from labelmem.adapter import Adapter
from labelmem.errors import ModelError, UnsupportedError
from labelmem.lmn import LMNState, LMNStep

__all__ = ["HeadAdapter", "HeadInput", "OutputLayer", "output_layer"]


def output_layer(model: nn.Module) -> nn.Linear:
    """The layer that turns h into logits over the vocabulary."""
    config = getattr(model, "config", None)
    if config is None or not hasattr(model, "get_output_embeddings"):
        raise ModelError(
            f"the model is a {type(model).__name__}; expected a causal language model of "
            "transformers, e.g. AutoModelForCausalLM.from_pretrained(...)"
        )
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(
            f"{type(model).__name__} has an encoder of its own; expected a causal language model, "
            "which continues the text that it is given"
        )
    layer = model.get_output_embeddings()  # type: ignore[operator]
    if not isinstance(layer, nn.Linear):
        raise ModelError(
            f"get_output_embeddings() of {type(model).__name__} is a {type(layer).__name__}; "
            "expected an nn.Linear from the hidden vector to the vocabulary"
        )
    return layer


class OutputLayer(nn.Module):
    """A language model of which only the output layer is run.

    The whole model is a part of it, so that whoever wears it puts all of it in eval mode, and back.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, h: Tensor) -> Tensor:
        """Logits (n, V) of hidden vectors (n, d)."""
        layer = output_layer(self.model)
        logits: Tensor = layer(h.to(layer.weight.dtype))
        return logits


class HeadAdapter(Adapter):
    """An adapter whose input is h itself and whose labels are token ids.

    Memory and combiner work in single precision at least: sums of sixteen-bit numbers stop growing
    after a few hundred terms, and a memory is made of such sums.
    """

    @property
    def output(self) -> nn.Linear:
        """The output layer."""
        assert self.backbone.head is not None
        return self.backbone.head

    @property
    def dtype(self) -> torch.dtype:  # type: ignore[override]  # as for every adapter
        """The model's floating point type, or single precision where that is coarser."""
        return torch.promote_types(self.backbone.dtype, torch.float32)

    def combine(
        self,
        state: LMNState,
        h: Tensor,
        key: Tensor,
        logits: Tensor | None,
        *rest: Any,
        **more: Any,
    ) -> LMNStep:
        """Eq. 1 to 5, in the precision of the memory."""
        h, key = h.to(self.dtype), key.to(self.dtype)
        logits = None if logits is None else logits.to(self.dtype)
        return super().combine(state, h, key, logits, *rest, **more)


class _Pass(threading.local):
    """What entered the output layer when the calling thread last ran the model."""

    h: Tensor | None = None
    used = 0


class HeadInput:
    """Catches what enters the output layer, for as long as the context is open.

    Other threads may run the model meanwhile: each sees its own passes.

    A pass over several positions may be asked about position by position, as assisted generation
    does: :meth:`next` hands them out in their order.
    """

    def __init__(self, layer: nn.Linear) -> None:
        self.layer, self._latest = layer, _Pass()

    @property
    def h(self) -> Tensor | None:
        """(rows, positions, d) of the latest pass."""
        return self._latest.h

    @property
    def used(self) -> int:
        """How many of its positions were handed out."""
        return self._latest.used

    def __enter__(self) -> Self:
        self._hook = self.layer.register_forward_pre_hook(self._catch)
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()
        self._latest = _Pass()

    def _catch(self, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._latest.h, self._latest.used = inputs[0].detach(), 0

    @property
    def waiting(self) -> bool:
        """Whether the latest pass has positions that were not asked for yet."""
        return self.h is not None and self.used < self.h.shape[1]

    def next(self, in_order: bool) -> Tensor:
        """Give h (rows, d) of the next position, or of the last where only that is asked for."""
        if self.h is None:
            raise UnsupportedError(
                "the model has not run since the memory was put to its logits; pass the processor "
                "to the generate method of the very model that the memory was made around"
            )
        if self.used >= (self.h.shape[1] if in_order else 1):
            raise UnsupportedError(
                "the logits are processed more often than the model runs; this way of generating "
                "is not supported with a memory"
            )
        self._latest.used += 1
        return self.h[:, self.used - 1] if in_order else self.h[:, -1]
