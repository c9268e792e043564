"""LMN-fixed as in the paper: the labeled memory beside the head, each with half the say."""

from __future__ import annotations

from labelmem import Adapter
from labelmem.search import Point
from labelmem_paper.experiments.adapt.contender import AdaptContender
from labelmem_paper.experiments.adapt.frozen import FrozenTask


class LMNFixed(AdaptContender):
    """The defaults of the paper's form; the memory begins empty."""

    def build(self, point: Point, frozen: FrozenTask) -> Adapter:
        """Around the head."""
        return Adapter(frozen.head(), combiner=0.5)


CONTENDER = LMNFixed
