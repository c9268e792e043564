"""Nearest class mean: the label whose average hidden vector is closest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import torch
from torch import Tensor

from labelmem import functional as F
from labelmem.baselines.base import refuse_options, require
from labelmem.baselines.class_means import ClassMeans, MeansOptions, MeansState, answered, no_means
from labelmem.baselines.model_method import ModelMethod, ModelStep
from labelmem.online import Recorded

__all__ = ["NCM", "NCMOptions"]


@dataclass(frozen=True)
class NCMOptions(MeansOptions):
    """How near is near, and how far to trust it."""

    metric: Literal["euclidean", "cosine"] = "euclidean"
    """Squared distance divided by the dimension, or cosine."""

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.metric in ("euclidean", "cosine")
        require(known, "metric", self.metric, "must be 'euclidean' or 'cosine'")


class NCM(ModelMethod[MeansState, NCMOptions]):
    """Classify by the nearest of the running class means of the frozen model's h.

    Means fitted on training streams are shared; each stream continues those of the labels it meets,
    and starts new ones for labels of its own. With s the softmax of the closeness,
    ``P = (1 - theta) r + theta s``; by default that is s alone: a label without a mean has
    probability 0, and while there is no mean at all nothing is predicted.

    Examples
    --------
    >>> stream = NCM(torch.nn.Identity(), labels=()).stream()   # few-shot: h is the input
    >>> for x, y in [([0.0, 0.0], "origin"), ([4.0, 4.0], "corner"), ([1.0, 0.0], "origin")]:
    ...     _ = stream.predict(x)
    ...     stream.observe(y)
    >>> stream.predict([1.0, 1.0]).label
    'origin'

    References
    ----------
    Mensink et al. (2013), Distance-based image classification: generalizing to new classes at
    near-zero cost; Snell et al. (2017), Prototypical networks for few-shot learning.
    """

    name = "ncm"
    Options = NCMOptions
    needs_logits = False
    means: ClassMeans | None = None
    """What was fitted."""

    def fit(self, sequences: Iterable[Recorded], batch_size: int = 256, **options: Any) -> Self:
        """Average h over the training streams, afresh."""
        refuse_options(self.name, options)
        means = None
        for h, y in self.hidden(sequences, batch_size):
            if means is None:
                means = ClassMeans.none(len(self.known), h.shape[1], h)
            means = means.with_more(h, y)
        self.means = means
        return self

    def initial_state(self, streams: int) -> MeansState:
        """No mean moved."""
        like = torch.empty(0, dtype=self.dtype, device=self.device)
        model = self.backbone.initial_state(streams)
        return MeansState(streams, model, *no_means(streams, self.dim or 0, like))

    def advance(self, state: MeansState, x: Any, width: int) -> ModelStep:
        """Softmax of the closeness to every mean, mixed with the model where it is asked for."""
        step = self.see(state, x, width)
        shared, state = self._means(step.h), _sized(state, step.h)
        scores = self._closeness(step.h, shared.mean)
        own = self._closeness(step.h, state.mean)
        return answered(step, scores, shared, own, state, self.options)

    def learn(self, state: MeansState, step: ModelStep, y: Tensor, mask: Tensor | None) -> None:
        """Move the mean of the label towards h."""
        moved = _sized(state, step.h).moved(self._means(step.h), step.h, y, mask)
        state.ids, state.mean, state.count = moved

    def _means(self, h: Tensor) -> ClassMeans:
        if self.means is None:
            return ClassMeans.none(len(self.known), h.shape[1], h)
        return self.means.capped(self.options.prior)

    def _closeness(self, h: Tensor, means: Tensor) -> Tensor:
        """Of h (n, d) to shared means (K, d) or each stream's own (n, K, d), as (n, K)."""
        if self.options.metric == "cosine":
            return _dots(F.normalise(h), F.normalise(means))
        # -|h - mean|^2 without |h|^2, which all labels share, so that the softmax drops it.
        return (2 * _dots(h, means) - means.square().sum(dim=-1)) / h.shape[1]


def _dots(h: Tensor, means: Tensor) -> Tensor:
    return h @ means.T if means.ndim == 2 else torch.einsum("nd,nkd->nk", h, means)


def _sized(state: MeansState, h: Tensor) -> MeansState:
    """Few-shot: the length of h is known only now."""
    if state.mean.shape[2] == h.shape[1]:
        return state
    return replace(state, mean=h.new_zeros(*state.ids.shape, h.shape[1]))
