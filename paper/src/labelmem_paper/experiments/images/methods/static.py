"""The network without adaptation."""

from __future__ import annotations

from labelmem_paper.experiments.images.contender import ImageBaseline


class Static(ImageBaseline):
    """There is nothing to search."""

    name = "static"


CONTENDER = Static
