"""The model without adaptation."""

from __future__ import annotations

from labelmem.search import Point
from labelmem_paper.experiments.language.contender import LanguageContender
from labelmem_paper.experiments.language.method import Beside


class Static(LanguageContender):
    """There is nothing to search."""

    def build(self, point: Point) -> Beside:
        """The model alone."""
        return Beside(self.model, self.task.opening)


CONTENDER = Static
