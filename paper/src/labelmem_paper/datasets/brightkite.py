"""Brightkite: check-ins of a location-based social network (Cho, Myers, Leskovec, KDD 2011)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from labelmem_paper.datasets.checkins import CheckinRecipe, Visits, as_sequences, prepare, visits_of
from labelmem_paper.datasets.layout import Arrays, Dataset, Layout
from labelmem_paper.datasets.tables import read_columns, read_tables
from labelmem_paper.datasets.timestamps import iso_milliseconds

__all__ = ["DATASET"]

RECIPE = CheckinRecipe(min_length=50, max_length=1000, test_share=521 / 2321)
"""As in the paper: 1,800 training and 521 test sequences."""

NO_VENUE = b"0" * 32
"""What SNAP's file says where the place of a check-in is not known."""


def read_snap(paths: tuple[Path, ...], recipe: CheckinRecipe) -> Arrays:
    """Read SNAP's text: user, ISO time, latitude, longitude, location; latest first.

    Lines without a time or a location are left out. The file runs backwards in time, so check-ins
    of the same second are taken in reverse.
    """
    known = (
        table.where((table.widths(1) > 0) & (table.widths(4) > 0))
        for table in read_tables(paths[0], columns=5)
    )
    columns = read_columns(
        known, lambda t: t.integers(0), lambda t: iso_milliseconds(t, 1), lambda t: t.strings(4)
    )
    user, time, venue = (column[::-1] for column in columns)
    real = venue != NO_VENUE
    return prepare(Visits.sorted_by(user[real], time[real], venue[real]), recipe, paths[0])


def read_compact(paths: tuple[Path, ...], recipe: CheckinRecipe) -> Arrays:
    """Read the repacked table, whose ``order`` column stands in for the missing times."""
    header = ("user", "order", "unix_utc", "venue", "lat", "lon")
    tables = read_tables(paths[0], columns=6, header=header)
    return prepare(visits_of(tables, user=0, time=1, venue=3), recipe, paths[0])


DATASET = Dataset(
    "brightkite",
    RECIPE,
    layouts=(
        Layout("raw", ("loc-brightkite_totalCheckins.txt.gz",), read_snap),
        Layout("raw", ("loc-brightkite_totalCheckins.txt",), read_snap),
        Layout("raw", ("Brightkite_totalCheckins.txt",), read_snap),
        Layout(
            "compact",
            ("brightkite.tsv.xz",),
            read_compact,
            subset=True,
            note="841,511 of 4,491,143 check-ins; users and venues with at least 10; order only",
        ),
    ),
    assemble=partial(as_sequences, "brightkite"),
)
