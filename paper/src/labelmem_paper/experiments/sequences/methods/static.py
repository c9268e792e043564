"""The model without adaptation."""

from __future__ import annotations

from labelmem_paper.experiments.sequences.baseline import BaselineContender


class Static(BaselineContender):
    """There is nothing to search."""

    name = "static"


CONTENDER = Static
