"""Foursquare check-ins in Tokyo, April 2012 to February 2013 (Yang et al., 2015)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from labelmem_paper.datasets.checkins import CheckinRecipe, as_sequences, prepare, visits_of
from labelmem_paper.datasets.layout import Arrays, Dataset, Layout
from labelmem_paper.datasets.tables import read_tables
from labelmem_paper.datasets.tsmc2014 import raw_layouts

__all__ = ["DATASET"]

RECIPE = CheckinRecipe(test_share=672 / 2227)
"""No filter: the compact file was filtered already. The published file needs one of its own."""


def read_compact(paths: tuple[Path, ...], recipe: CheckinRecipe) -> Arrays:
    """Read the repacked table, whose ``order`` column stands in for the missing times."""
    header = ("user", "order", "venue", "lat", "lon", "session", "source_split")
    tables = read_tables(paths[0], columns=7, header=header)
    return prepare(visits_of(tables, user=0, time=1, venue=2), recipe, paths[0])


DATASET = Dataset(
    "fsq-tokyo",
    RECIPE,
    layouts=(
        *raw_layouts("TKY"),
        Layout(
            "compact",
            ("fsq_tokyo.tsv.gz",),
            read_compact,
            subset=True,
            note="311,124 of 573,703 check-ins, 7,038 of 61,858 venues; order only",
        ),
    ),
    assemble=partial(as_sequences, "fsq-tokyo"),
)
