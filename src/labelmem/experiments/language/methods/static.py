"""The model without adaptation."""

from __future__ import annotations

from labelmem.experiments.language.contender import LanguageContender
from labelmem.experiments.language.method import Beside
from labelmem.search import Point


class Static(LanguageContender):
    """There is nothing to search."""

    def build(self, point: Point) -> Beside:
        """The model alone."""
        return Beside(self.model, self.task.opening)


CONTENDER = Static
