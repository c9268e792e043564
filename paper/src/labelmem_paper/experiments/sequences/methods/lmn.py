"""LMN with what goes beyond the paper: one combiner state per stream, keys of recent tokens."""

from __future__ import annotations

from labelmem_paper.experiments.sequences.methods.lmn_paper import LMNPaper


class LMN(LMNPaper):
    """Which keys, and whether labels are divided, are options in the table's file."""

    kind = "stream"


CONTENDER = LMN
