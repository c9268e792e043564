"""How often each label came in training: what any method that looks at its input must beat."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from labelmem.baselines.label_method import LabelMethod, LabelOptions
from labelmem.baselines.state import TensorState
from labelmem.online import Step

__all__ = ["Unigram"]


class Unigram(LabelMethod[TensorState, LabelOptions]):
    """Smoothed counts of the training streams; no input, no adaptation.

    ``P(y) = (count_y + k) / sum of the same``; a label of the stream's own has probability 0.

    Examples
    --------
    >>> method = Unigram(["cat", "dog"]).fit([(None, ["cat", "cat", "dog", "cat"])])
    >>> method.stream().predict(0).probs
    tensor([0.6667, 0.3333])

    References
    ----------
    Chen and Goodman (1999), An empirical study of smoothing techniques, section 2.1.
    """

    name = "unigram"
    Options = LabelOptions

    def initial_state(self, streams: int) -> TensorState:
        """Nothing is remembered."""
        return TensorState(streams)

    def advance(self, state: TensorState, x: Any, width: int) -> Step:
        """The same for every input."""
        return Step(x, self.background(state.streams, width))

    def commit(self, state: TensorState, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Nothing is learned from a stream."""
