"""LMN as the paper has it: one combiner state per label."""

from __future__ import annotations

from labelmem.experiments.images.methods.lmn import LMN


class LMNPaper(LMN):
    """The network's h is the key; everything else is as in LMN."""

    kind = "label"


CONTENDER = LMNPaper
