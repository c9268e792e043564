"""The model as it is: what adaptation has to improve on."""

from __future__ import annotations

from typing import Any

from labelmem.baselines.base import NoOptions
from labelmem.baselines.model_method import ModelMethod, ModelState, ModelStep

__all__ = ["Static"]


class Static(ModelMethod[ModelState, NoOptions]):
    """The model without any adaptation: P = r, and a new label is never predicted.

    A recurrent model keeps its own state, so it sees the stream as it was trained to.

    Examples
    --------
    >>> import torch
    >>> stream = Static(torch.nn.Linear(2, 2), labels=["cat", "dog"]).stream()
    >>> before = stream.predict([1.0, 0.0])
    >>> stream.observe("emu")
    >>> after = stream.predict([1.0, 0.0])
    >>> after.labels, bool((after.probs[:2] == before.probs).all()), float(after.probs[2])
    (['cat', 'dog', 'emu'], True, 0.0)
    """

    name = "static"
    Options = NoOptions

    def initial_state(self, streams: int) -> ModelState:
        """Nothing but the model's own state."""
        return ModelState(streams, self.backbone.initial_state(streams))

    def advance(self, state: ModelState, x: Any, width: int) -> ModelStep:
        """What the model says."""
        return self.see(state, x, width)
