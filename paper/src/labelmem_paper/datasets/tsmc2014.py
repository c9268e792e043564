"""The format in which the Foursquare check-ins of two cities were published (Yang et al., 2015)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from labelmem_paper.datasets.checkins import CheckinRecipe, Visits, prepare
from labelmem_paper.datasets.layout import Arrays, Layout
from labelmem_paper.datasets.tables import read_tables
from labelmem_paper.datasets.timestamps import twitter_seconds

__all__ = ["raw_layouts"]


def raw_layouts(city: str) -> tuple[Layout[CheckinRecipe], ...]:
    """Return the layouts of one city's published file, unpacked or still in the archive."""
    text = f"dataset_TSMC2014_{city}.txt"

    def read(paths: tuple[Path, ...], recipe: CheckinRecipe) -> Arrays:
        return _read(paths[0], text, recipe)

    return (
        Layout("raw", (text,), read),
        Layout("raw", (f"dataset_tsmc2014/{text}",), read),
        Layout("raw", ("dataset_tsmc2014.zip",), read),
    )


def _read(path: Path, member: str, recipe: CheckinRecipe) -> Arrays:
    """Read user, venue, category id, category, latitude, longitude, offset, UTC time."""
    users, times, venues = [], [], []
    for table in read_tables(path, columns=8, member=member):
        users.append(table.integers(0))
        table.require(table.widths(1) > 0, 1, "a venue")
        venues.append(table.strings(1))
        times.append(twitter_seconds(table, 7))
    visits = Visits.sorted_by(np.concatenate(users), np.concatenate(times), np.concatenate(venues))
    return prepare(visits, recipe, path)
