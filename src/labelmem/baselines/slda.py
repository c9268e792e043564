"""Streaming linear discriminant analysis: class means and one covariance, kept up to date."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from labelmem.baselines.base import refuse_options, require
from labelmem.baselines.class_means import ClassMeans, MeansOptions, MeansState, answered, no_means
from labelmem.baselines.model_method import ModelMethod, ModelStep
from labelmem.baselines.state import wider
from labelmem.online import Recorded
from labelmem.trees import chosen

__all__ = ["SLDA", "SLDAOptions"]


@dataclass(frozen=True)
class SLDAOptions(MeansOptions):
    """How far to trust the covariance; at temperature 1 the belief is the Gaussian model's."""

    shrinkage: float = 1e-2
    """Share of the training covariance that is replaced by its mean variance in all directions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.shrinkage <= 1, "shrinkage", self.shrinkage, "must lie in (0, 1]")


@dataclass(frozen=True)
class Fitted:
    """What training streams leave: class means, and the covariance within classes."""

    means: ClassMeans
    covariance: Tensor
    """(d, d)."""
    total: float
    """The number of vectors in it; 0 if nothing was fitted."""

    def inverse_scatter(self, shrinkage: float) -> tuple[Tensor, float]:
        """Inverse of the shrunk scatter (covariance times vectors), and the number of vectors."""
        d = len(self.covariance)
        eye = torch.eye(d, dtype=self.covariance.dtype, device=self.covariance.device)
        variance = self.covariance.trace() / d
        if not self.total or variance <= 0:
            return eye, 1.0
        shrunk = (1 - shrinkage) * self.covariance + shrinkage * variance * eye
        return torch.linalg.inv(shrunk) / self.total, self.total


@dataclass
class SLDAState(MeansState):
    """Each stream's means and covariance, in double precision."""

    inverse: Tensor
    """(n, d, d) inverse of the scatter within classes."""
    total: Tensor
    """(n,) the vectors in it: the covariance is scatter / total."""
    length: Tensor
    """(n, L) ``mean' inverse mean`` of the shared means, brought up to date with the inverse."""
    own_length: Tensor
    """(n, K) the same of the stream's own means."""


class SLDA(ModelMethod[SLDAState, SLDAOptions]):
    """Gaussian classes with running means and one shared covariance, on the frozen model's h.

    Means and covariance start from the training streams; each stream continues both. Discriminants
    are ``mean' A h - mean' A mean / 2`` with A the inverse covariance. With s their softmax,
    ``P = (1 - theta) r + theta s``; by default that is s alone: a label without a mean has
    probability 0, and while there is no mean at all nothing is predicted.

    Notes
    -----
    The scatter within classes grows by ``c / (c + 1) e e'``, where e = h - mean and c is the number
    of vectors in the mean. That is the scatter around the final means exactly, and of rank one, so
    the inverse follows by Sherman-Morrison in d² operations. Shrinkage is applied once, to what was
    fitted, since shrinking anew at each step (as in the paper) would not be of rank one; without a
    fit the scatter starts at the identity, counted as one vector. All is kept in double precision:
    discriminants are small differences of large numbers.

    Examples
    --------
    >>> stream = SLDA(torch.nn.Identity(), labels=()).stream()   # few-shot: h is the input
    >>> for x, y in [([0.0, 9.0], "low"), ([4.0, 0.0], "high"), ([0.0, -9.0], "low")]:
    ...     _ = stream.predict(x)
    ...     stream.observe(y)
    >>> stream.predict([1.0, 5.0]).label             # the second number varies within "low"
    'low'

    References
    ----------
    Hayes and Kanan (2020), Lifelong machine learning with deep streaming linear discriminant
    analysis.
    """

    name = "slda"
    Options = SLDAOptions
    needs_logits = False
    fitted: Fitted | None = None
    """What was fitted."""

    def fit(self, sequences: Iterable[Recorded], batch_size: int = 256, **options: Any) -> Self:
        """Means and scatter of the training streams, afresh."""
        refuse_options(self.name, options)
        means, moment = None, torch.zeros(0)
        for h, y in self.hidden(sequences, batch_size):
            h = h.double()
            if means is None:
                means, moment = ClassMeans.none(len(self.known), h.shape[1], h), h.T @ h
            else:
                moment = moment + h.T @ h
            means = means.with_more(h, y)
        if means is not None:
            total = float(means.count.sum())
            between = means.mean.T @ (means.count[:, None] * means.mean)
            self.fitted = Fitted(means, (moment - between) / max(total, 1.0), total)
        return self

    def initial_state(self, streams: int) -> SLDAState:
        """As fitted; the length of h may still be unknown."""
        return self._fresh(streams, self.backbone.initial_state(streams), self.dim or 0)

    def _fresh(self, streams: int, model: Any, dim: int) -> SLDAState:
        ids, mean, count = no_means(streams, dim, self._like())
        fitted = self._fitted(dim)
        inverse, total = fitted.inverse_scatter(self.options.shrinkage)
        M = fitted.means.mean
        length = ((M @ inverse) * M).sum(dim=1)
        return SLDAState(
            *(streams, model, ids, mean, count),
            inverse=inverse.repeat(streams, 1, 1),
            total=inverse.new_full((streams,), total),
            length=length.repeat(streams, 1),
            own_length=count,
        )

    def _like(self) -> Tensor:
        return torch.empty(0, dtype=torch.float64, device=self.device)

    def _fitted(self, dim: int) -> Fitted:
        if self.fitted is not None:
            return replace(self.fitted, means=self.fitted.means.capped(self.options.prior))
        like = self._like()
        means = ClassMeans.none(len(self.known), dim, like)
        return Fitted(means, like.new_zeros(dim, dim), 0.0)

    def _sized(self, state: SLDAState, h: Tensor) -> SLDAState:
        """Few-shot: the length of h is known only now."""
        if state.mean.shape[2] == h.shape[1]:
            return state
        return self._fresh(state.streams, state.model, h.shape[1])

    @torch.no_grad()
    def advance(self, state: SLDAState, x: Any, width: int) -> ModelStep:
        """Softmax of the discriminants, mixed with the model where it is asked for."""
        step = self.see(state, x, width)
        state, h = self._sized(state, step.h), step.h.double()
        shared, total = self._fitted(h.shape[1]).means, state.total[:, None]
        projected = torch.einsum("nij,nj->ni", state.inverse, h)
        scores = projected @ shared.mean.T - state.length / 2
        own = torch.einsum("nkd,nd->nk", state.mean, projected) - state.own_length / 2
        return answered(step, scores * total, shared, own * total, state, self.options)

    def learn(self, state: SLDAState, step: ModelStep, y: Tensor, mask: Tensor | None) -> None:
        """Update the inverse scatter (Sherman-Morrison), then move the label's mean."""
        old, h = self._sized(state, step.h), step.h.double()
        shared = self._fitted(h.shape[1]).means
        mean, count = old.mean_of(shared, y)
        e, grows = h - mean, count / (count + 1)
        u = torch.einsum("nij,nj->ni", old.inverse, e)
        factor = grows / (1 + grows * (e * u).sum(dim=1))
        factor = factor if mask is None else factor * mask
        state.inverse = old.inverse - factor[:, None, None] * u[:, :, None] * u[:, None, :]
        state.length = old.length - factor[:, None] * (u @ shared.mean.T).square()
        along = torch.einsum("nkd,nd->nk", old.mean, u)
        lengths = old.own_length - factor[:, None] * along.square()
        state.ids, state.mean, state.count = old.moved(shared, h, y, mask)
        lengths = wider(lengths, state.ids.shape[1])
        here = state.ids == y[:, None]
        mean = (here[..., None] * state.mean).sum(dim=1)
        length = torch.einsum("ni,nij,nj->n", mean, state.inverse, mean)[:, None]
        state.own_length = chosen(mask, torch.where(here, length, lengths), lengths)
        state.total = chosen(mask, old.total + 1, old.total)
