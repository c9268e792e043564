"""The adapter as it comes, once it has seen the training examples."""

from __future__ import annotations

from labelmem import Adapter
from labelmem.search import Point
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.methods.default import Default


class DefaultPrimed(Default):
    """There is nothing to choose."""

    def build(self, point: Point, frozen: FrozenTask) -> Adapter:
        """Around the head, then primed."""
        adapter = super().build(point, frozen)
        adapter.prime(frozen.train_h, frozen.train_y)
        return adapter


CONTENDER = DefaultPrimed
