"""The labeled memory as a classifier of river."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from labelmem.config import MemoryConfig
from labelmem.errors import ConfigError, MissingExtraError
from labelmem.interop.features import Features
from labelmem.interop.together import Alone, lifted, without_a_model
from labelmem.interop.vectors import Array

try:
    from river import base
except ImportError as error:
    raise MissingExtraError(
        "labelmem.interop.river needs river, which is not installed: pip install 'labelmem[river]'"
    ) from error

if TYPE_CHECKING:
    from torch import nn

    from labelmem.interop.worn import Worn

__all__ = ["LabelMemClassifier"]


class LabelMemClassifier(base.Classifier):
    """Labeled Memory Network for streams: labels of any kind, at any time.

    Without a model the features themselves are what the memory compares. Beside it stand the mean
    and variance of every label and the last events; see
    :class:`labelmem.interop.together.Together`. The features should be on one scale: put a
    ``StandardScaler`` before it. They may come and go.

    With a model, the trained network and the memory decide together.

    Parameters
    ----------
    model
        A trained torch classifier of vectors, or None. It is copied, not changed.
    features
        With a model: the names of its inputs, in its order. Missing ones are zero, others ignored.
    labels
        Names of the model's logits; None means 0, 1, and so on.
    head
        Name of the model's last linear layer; None finds it.
    memory
        How the memory reads, writes and forgets; None takes what suits:
        :data:`labelmem.interop.together.TOGETHER` without a model, the adapter's defaults with one.
    theta
        With a model: the fixed weight of the memory (LMN-fixed). None is the default form of
        :class:`labelmem.Adapter`, which learns how far to believe the memory.
    window
        Without a model: how many of the last events are kept; 0 leaves it all to the memory.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> classifier = preprocessing.StandardScaler() | LabelMemClassifier()
    >>> evaluate.progressive_val_score(
    ...     datasets.ImageSegments().take(500), classifier, metrics.Accuracy()
    ... )
    Accuracy: 82.97%

    References
    ----------
    Labeled Memory Networks for Online Model Adaptation (AAAI 2018).
    """

    def __init__(
        self,
        model: nn.Module | None = None,
        features: Sequence[Hashable] | None = None,
        labels: Sequence[Hashable] | None = None,
        head: str | None = None,
        memory: MemoryConfig | None = None,
        theta: float | None = None,
        window: int = 1000,
    ) -> None:
        self.model = model
        self.features = features
        self.labels = labels
        self.head = head
        self.memory = memory
        self.theta = theta
        self.window = window
        self._features = Features(features or ())

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Mapping[Hashable, Any], y: Hashable) -> None:
        """Learn that the label of the features ``x`` is ``y``, which may be new."""
        learner = self._learner
        if isinstance(learner, Alone):
            self._features.meet(x)
            learner.widen(1 + len(self._features))
        learner.learn(self._vector(learner, x), y)

    def predict_proba_one(self, x: Mapping[Hashable, Any], **kwargs: Any) -> dict[Any, float]:
        """The probability of each label for the features ``x``; empty while none is known."""
        learner = self._learner
        h = self._vector(learner, x)
        # Without a model there is no detour by a batch of one, a tenth of the time.
        P = learner.read(h) if isinstance(learner, Alone) else learner.probs(h[None])[0]
        return dict(zip(learner.space.names(len(P)), P.tolist(), strict=True))

    @cached_property
    def _learner(self) -> Alone | Worn:
        """What learns, made when it is first needed: a clone is to be as new."""
        if self.model is None:
            return without_a_model(self.memory, 1, self.window)
        if self.features is None:
            raise ConfigError(
                "a model is given but features is None; name the model's inputs in their order"
            )
        from labelmem.interop.worn import Worn  # a memory alone does without torch

        model = copy.deepcopy(self.model)  # it may be shared with clones
        return Worn(model, self.head, self.labels, self.memory, self.theta)

    def _vector(self, learner: Alone | Worn, x: Mapping[Hashable, Any]) -> Array:
        values, known = self._features.vector(x)
        return lifted(values, known) if isinstance(learner, Alone) else values
