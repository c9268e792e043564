"""Running means of h per label: shared ones from training, continued by each stream on its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from labelmem.baselines.base import masked_softmax, require
from labelmem.baselines.model_method import ModelState, ModelStep
from labelmem.baselines.slots import FREE, no_slots, opened, overwritten
from labelmem.baselines.state import wider
from labelmem.trees import chosen

__all__ = ["ClassMeans", "MeansOptions", "MeansState", "answered", "no_means"]


@dataclass(frozen=True)
class MeansOptions:
    """What methods with a mean for each label can choose."""

    temperature: float = 1.0
    """Factor on the scores inside the softmax: the larger, the more sure."""
    prior: float | None = None
    """The most vectors that a label's training mean counts as; None: as many as there were.
    The smaller, the faster a stream moves its means."""
    frequency: float = 0.0
    """Exponent on the number of vectors in a mean: 0 takes all labels as equally likely, 1 is the
    prior of a Gaussian model with as many examples."""
    theta: float = 1.0
    """Weight of the means against the model; below 1 labels without a mean are predicted too."""

    def __post_init__(self) -> None:
        good = 0 < self.temperature < math.inf
        require(good, "temperature", self.temperature, "must be a positive number")
        require(self.prior is None or self.prior > 0, "prior", self.prior, "must be positive")
        good = 0 <= self.frequency < math.inf
        require(good, "frequency", self.frequency, "must be a number from 0")
        require(0 <= self.theta <= 1, "theta", self.theta, "must lie in [0, 1]")


@dataclass(frozen=True)
class ClassMeans:
    """The means (L, d) of training and the number (L,) of vectors in each; 0 where there is none.

    Examples
    --------
    >>> means = ClassMeans.none(labels=2, dim=1, like=torch.empty(0))
    >>> means = means.with_more(torch.tensor([[1.0], [3.0]]), torch.tensor([1, 1]))
    >>> means.mean[1], means.count
    (tensor([2.]), tensor([0., 2.]))
    """

    mean: Tensor
    count: Tensor

    @staticmethod
    def none(labels: int, dim: int, like: Tensor) -> ClassMeans:
        """No vector seen for any label."""
        return ClassMeans(like.new_zeros(labels, dim), like.new_zeros(labels))

    def with_more(self, h: Tensor, y: Tensor) -> ClassMeans:
        """After the vectors h (m, d) with labels y (m,)."""
        more = torch.zeros_like(self.count).index_add(0, y, torch.ones_like(h[:, 0]))
        count = self.count + more
        off = torch.zeros_like(self.mean).index_add(0, y, h - self.mean[y])
        return ClassMeans(self.mean + off / count.clamp(min=1)[:, None], count)

    def capped(self, most: float | None) -> ClassMeans:
        """The same means, none of them counting as more than ``most`` vectors."""
        return self if most is None else ClassMeans(self.mean, self.count.clamp(max=most))


@dataclass
class MeansState(ModelState):
    """The means that the streams have moved, by slot."""

    ids: Tensor
    """(n, K) their labels."""
    mean: Tensor
    """(n, K, d)."""
    count: Tensor
    """(n, K) how many vectors are in each."""

    def mean_of(self, shared: ClassMeans, y: Tensor) -> tuple[Tensor, Tensor]:
        """The mean (n, d) and count (n,) that each stream has for its label y (n,) now."""
        own = (self.ids == y[:, None]) & (self.ids != FREE)
        mean = (own[..., None] * self.mean).sum(dim=1)
        count = (own * self.count).sum(dim=1)
        taught = (y < len(shared.count)) & ~own.any(dim=1)
        if len(shared.count):
            label = y.clamp(max=len(shared.count) - 1)
            mean = torch.where(taught[:, None], shared.mean[label], mean)
            count = torch.where(taught, shared.count[label], count)
        return mean, count

    def moved(
        self, shared: ClassMeans, h: Tensor, y: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The three after one more vector h (n, d) of label y (n,) in the masked streams."""
        mean, count = self.mean_of(shared, y)
        ids, slot = opened(self.ids, y, mask)
        mean = mean + (h - mean) / (count + 1)[:, None]
        means, counts = wider(self.mean, ids.shape[1]), wider(self.count, ids.shape[1])
        at = slot[:, None]
        new_means = means.scatter(1, at[..., None].expand(-1, 1, means.shape[2]), mean[:, None])
        new_counts = counts.scatter(1, at, (count + 1)[:, None])
        return ids, chosen(mask, new_means, means), chosen(mask, new_counts, counts)


def no_means(streams: int, dim: int, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Labels, means and counts of streams that have moved nothing."""
    ids = no_slots(streams, like.device)
    return ids, like.new_zeros(streams, 0, dim), like.new_zeros(streams, 0)


def answered(
    step: ModelStep,
    scores: Tensor,
    shared: ClassMeans,
    own_scores: Tensor,
    state: MeansState,
    options: MeansOptions,
) -> ModelStep:
    """The step with the belief that the scores of the means lead to.

    Parameters
    ----------
    scores
        (n, L) of the means of training, ``shared``.
    own_scores
        (n, K) of the means that the streams have moved, those of ``state``.
    """
    n, width = step.probs.shape
    scores = overwritten(wider(scores, width), state.ids, own_scores)
    counts = overwritten(wider(shared.count.expand(n, -1), width), state.ids, state.count)
    valid = counts > 0
    scores = options.temperature * scores
    if options.frequency:
        scores = scores + options.frequency * torch.where(valid, counts, 1.0).log()
    s = masked_softmax(scores, valid).to(step.h.dtype)
    r = step.model_probs
    if r is None or options.theta == 1:
        return replace(step, probs=s, memory_probs=s)
    theta = options.theta * valid.any(dim=1, keepdim=True).to(r.dtype)
    return replace(step, probs=(1 - theta) * r + theta * s, memory_probs=s)
