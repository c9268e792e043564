"""The adapter as it comes: whatever ``Adapter(model)`` is."""

from __future__ import annotations

from labelmem import Adapter
from labelmem.search import Point
from labelmem_paper.experiments.adapt.contender import AdaptContender
from labelmem_paper.experiments.adapt.frozen import FrozenTask


class Default(AdaptContender):
    """There is nothing to choose, and no training example is needed."""

    def build(self, point: Point, frozen: FrozenTask) -> Adapter:
        """Around the head."""
        return Adapter(frozen.head())


CONTENDER = Default
