"""Methods around a frozen model: they see its hidden vector h and its logits."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from labelmem import functional as F
from labelmem.around import AroundModel
from labelmem.baselines.base import Baseline
from labelmem.baselines.state import TensorState
from labelmem.errors import ModelError
from labelmem.online import Recorded, Step
from labelmem.recording import Lockstep, lockstep_batches
from labelmem.trees import chosen, tree_map

__all__ = ["ModelMethod", "ModelState", "ModelStep"]


@dataclass
class ModelState(TensorState):
    """The least that a method around a model keeps: the model's own recurrent state."""

    model: Any


@dataclass(frozen=True, repr=False)
class ModelStep(Step):
    """A step with what the model said, for the commit."""

    h: Tensor = field(default_factory=lambda: torch.empty(0))
    logits: Tensor | None = None
    model_state: Any = None


S = TypeVar("S", bound=ModelState)
O = TypeVar("O")  # noqa: E741  # the type of the options


class ModelMethod(AroundModel, Baseline[S, O]):  # type: ignore[override]  # its device is the model's
    """A method that leaves the model frozen and learns beside it.

    Parameters
    ----------
    model, head, labels
        As for :class:`labelmem.Adapter`. ``labels=()``, a model whose output is h and which knows
        no label, is accepted by methods that need no logits.
    options
        What can be chosen; None takes the defaults.
    """

    needs_model = True
    needs_logits: ClassVar[bool] = True

    def __init__(
        self,
        model: nn.Module,
        head: str | nn.Module | None = None,
        labels: Iterable[Hashable] | None = None,
        options: O | None = None,
    ) -> None:
        named = None if labels is None else tuple(labels)
        if named == () and self.needs_logits:
            raise ModelError(f"{self.name} works on the model's logits; labels=() leaves it none")
        self.wear(model, head, named)
        self.options = self.Options() if options is None else options

    def signature(self) -> dict[str, Any]:
        """A saved stream must agree on labels and dimension."""
        return super().signature() | {"dim": self.dim}

    @torch.no_grad()
    def see(self, state: S, x: Any, width: int) -> ModelStep:
        """What the model says: h, and its belief r (n, width), without labels of a stream's own."""
        h, logits, model_state = self.backbone(x, state.model, state.streams)
        if logits is None:
            r = h.new_zeros(len(h), width)
            return ModelStep(x, r, h=h, model_state=model_state)
        r = nn.functional.pad(F.model_score(logits), (0, width - logits.shape[1]))
        return ModelStep(x, r, model_probs=r, h=h, logits=logits, model_state=model_state)

    @torch.no_grad()
    def commit(self, state: S, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Learn the labels, and move the model's own state on."""
        assert isinstance(step, ModelStep)
        self.learn(state, step, y, mask)
        state.model = chosen(mask, step.model_state, state.model)

    def learn(self, state: S, step: ModelStep, y: Tensor, mask: Tensor | None) -> None:
        """What the method itself learns from the labels y (n,); nothing unless a subclass says."""

    def rebase(self, state: S, step: Step, width: int) -> Step:
        """Late label: learn from the h of then, while the model's own state moves on from now."""
        assert isinstance(step, ModelStep)
        if not self.backbone.recurrent:
            return step
        now = self.see(state, step.x, width)
        return replace(step, model_state=now.model_state)

    def has_label(self, own: Tensor, width: int) -> Tensor:
        """(n, width) which labels streams have that met so many of their own (n,)."""
        return torch.arange(width, device=own.device) < len(self.known) + own[:, None]

    def hidden(
        self, sequences: Iterable[Recorded], batch_size: int
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """The model's h (m, d) and the label ids (m,) of recorded streams, known labels only."""
        batches = lockstep_batches(sequences, self.known, batch_size, self.device, self.dtype)
        for batch in batches:
            wanted = batch.mask & (batch.y < len(self.known))
            for h, rows, y in self._run(batch, wanted, batch_size):
                yield h[rows], y[rows]

    @torch.no_grad()
    def _run(
        self, batch: Lockstep, wanted: Tensor, size: int
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        if self.backbone.recurrent:
            state = self.backbone.initial_state(batch.streams)
            for t in range(batch.y.shape[1]):
                h, _, state = self.backbone(batch.at(t), state, batch.streams)
                yield h, wanted[:, t], batch.y[:, t]
            return
        flat = tree_map(lambda leaf: leaf.flatten(0, 1)[wanted.flatten()], batch.x)
        labels = batch.y[wanted]
        for start in range(0, len(labels), size):
            y = labels[start : start + size]
            x = tree_map(lambda leaf, start=start: leaf[start : start + size], flat)
            h, _, _ = self.backbone(x, None, len(y))
            yield h, torch.ones_like(y, dtype=torch.bool), y
