"""What methods around a trained model share: the model itself, its labels, and giving it back."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Self

import torch
from torch import nn

from labelmem.backbone import Backbone
from labelmem.errors import ModelError
from labelmem.labels import KnownLabels

__all__ = ["AroundModel"]


class AroundModel:
    """Wears a model: runs it, never changes it, and takes its hook off when closed."""

    backbone: Backbone
    known: KnownLabels

    def wear(
        self,
        model: nn.Module,
        head: str | nn.Module | None,
        labels: Iterable[Hashable] | None,
    ) -> None:
        """Put the model on; ``labels=()`` takes its output as h and it knows no label."""
        named = None if labels is None else tuple(labels)
        self.backbone = Backbone(model, head=False if named == () else head)
        try:
            self.known = KnownLabels(self._agreed(named))
        except Exception:
            self.close()  # the model goes back as it came
            raise

    def _agreed(self, labels: tuple[Hashable, ...] | None) -> tuple[Hashable, ...] | int:
        outputs = 0 if self.backbone.head is None else self.backbone.head.out_features
        if labels is None:
            return outputs
        if len(labels) != outputs:
            raise ModelError(
                f"got {len(labels)} labels for a head with {outputs} outputs; "
                "they must agree, in the order of the logits"
            )
        return labels

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return self.backbone.device

    @property
    def dtype(self) -> torch.dtype:
        """The model's floating point type."""
        return self.backbone.dtype

    @property
    def dim(self) -> int | None:
        """Length of h; None where the model's output is h, which tells only when it comes."""
        return None if self.backbone.head is None else self.backbone.head.in_features

    def close(self) -> None:
        """Remove the hook and give the model back in the mode it was in."""
        self.backbone.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
