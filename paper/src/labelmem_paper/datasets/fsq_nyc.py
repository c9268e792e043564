"""Foursquare check-ins in New York City, April 2012 to February 2013 (Yang et al., 2015)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from labelmem_paper.datasets.checkins import CheckinRecipe, as_sequences, prepare, visits_of
from labelmem_paper.datasets.layout import Arrays, Dataset, Layout
from labelmem_paper.datasets.tables import read_tables
from labelmem_paper.datasets.tsmc2014 import raw_layouts

__all__ = ["DATASET"]

RECIPE = CheckinRecipe(
    merge_repeats=True,
    min_venue_count=4,
    min_venue_users=2,
    min_length=30,
    max_length=200,
    test_share=264 / 934,
)
"""Close to the paper's 934 sequences of mean length 90 over 8,325 venues; see `data stats`."""


def read_compact(paths: tuple[Path, ...], recipe: CheckinRecipe) -> Arrays:
    """Read the repacked table; ``time_quality`` 0 marks the exact times."""
    header = ("user", "unix_utc", "venue", "lat", "lon", "time_quality")
    tables = read_tables(paths[0], columns=6, header=header)
    if recipe.exact_times_only:
        tables = (table.where(table.integers(5) == 0) for table in tables)
    return prepare(visits_of(tables, user=0, time=1, venue=2), recipe, paths[0])


DATASET = Dataset(
    "fsq-nyc",
    RECIPE,
    layouts=(
        *raw_layouts("NYC"),
        Layout(
            "compact",
            ("fsq_nyc.tsv.gz",),
            read_compact,
            note="all 227,428 check-ins; the times of 21 % (venues with under 5) are estimates",
        ),
    ),
    assemble=partial(as_sequences, "fsq-nyc"),
)
