"""Running means of h per label: shared ones from training, continued by each stream on its own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from labelmem.baselines.slots import FREE, no_slots, opened
from labelmem.baselines.state import wider
from labelmem.trees import chosen

__all__ = ["ClassMeans", "OwnMeans"]


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
class OwnMeans:
    """The means that streams have moved, by slot: labels (n, K), means (n, K, d), counts (n, K)."""

    ids: Tensor
    mean: Tensor
    count: Tensor

    @staticmethod
    def none(streams: int, dim: int, like: Tensor) -> OwnMeans:
        """Streams that have moved nothing."""
        ids = no_slots(streams, like.device)
        return OwnMeans(ids, like.new_zeros(streams, 0, dim), like.new_zeros(streams, 0))

    def at(self, shared: ClassMeans, y: Tensor) -> tuple[Tensor, Tensor]:
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

    def moved(self, shared: ClassMeans, h: Tensor, y: Tensor, mask: Tensor | None) -> OwnMeans:
        """After one more vector h (n, d) of label y (n,) in the masked streams."""
        mean, count = self.at(shared, y)
        ids, slot = opened(self.ids, y, mask)
        mean = mean + (h - mean) / (count + 1)[:, None]
        means, counts = wider(self.mean, ids.shape[1]), wider(self.count, ids.shape[1])
        at = slot[:, None]
        new_means = means.scatter(1, at[..., None].expand(-1, 1, means.shape[2]), mean[:, None])
        new_counts = counts.scatter(1, at, (count + 1)[:, None])
        return OwnMeans(ids, chosen(mask, new_means, means), chosen(mask, new_counts, counts))
