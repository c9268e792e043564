"""The classifier without adaptation."""

from __future__ import annotations

from labelmem_paper.experiments.adapt.contender import AdaptBaseline


class Static(AdaptBaseline):
    """There is nothing to choose."""

    name = "static"


CONTENDER = Static
