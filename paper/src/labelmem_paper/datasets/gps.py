"""Turn GPS fixes into cells of a grid and long pauses into borders of sequences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelmem.logs.grouping import starts

__all__ = ["Fixes", "Grid", "longest_runs", "runs_without_gaps"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

METRES_PER_DEGREE = 111_320.0


@dataclass(frozen=True)
class Fixes:
    """GPS fixes sorted by user and then time."""

    user: Integers
    time: Integers
    lat_e6: Integers
    lon_e6: Integers
    is_copy: Mask
    """Whether the fix comes from a file that repeats another one."""

    def __len__(self) -> int:
        return len(self.user)

    def where(self, rows: Mask) -> Fixes:
        """Keep the chosen fixes."""
        if rows.all():
            return self
        return Fixes(
            self.user[rows],
            self.time[rows],
            self.lat_e6[rows],
            self.lon_e6[rows],
            self.is_copy[rows],
        )

    def inside(self, box: tuple[float, float, float, float]) -> Fixes:
        """Keep what lies between two latitudes and two longitudes (south, north, west, east)."""
        south, north, west, east = (round(edge * 1e6) for edge in box)
        return self.where(
            (self.lat_e6 >= south)
            & (self.lat_e6 <= north)
            & (self.lon_e6 >= west)
            & (self.lon_e6 <= east)
        )

    def thinned(self, seconds: int) -> Fixes:
        """Keep each user's first fix in every bin of so many seconds of the clock."""
        return self.where(starts(self.user) | starts(self.time // seconds))


@dataclass(frozen=True)
class Grid:
    """Square cells on the map, of the same size in metres near one latitude.

    Examples
    --------
    >>> grid = Grid(metres=100, reference_latitude=60)
    >>> rows, columns = grid.cells(np.array([60_000_000]), np.array([1_000_000]))
    >>> rows, columns, grid.centre(int(rows[0]), int(columns[0]))
    (array([66792]), array([556]), (60.00044..., 0.9998...))
    """

    metres: float
    reference_latitude: float

    @property
    def _per_degree(self) -> tuple[float, float]:
        shrink = math.cos(math.radians(self.reference_latitude))
        return METRES_PER_DEGREE / self.metres, METRES_PER_DEGREE * shrink / self.metres

    def cells(self, lat_e6: Integers, lon_e6: Integers) -> tuple[Integers, Integers]:
        """Return the row and the column of each fix."""
        north, east = self._per_degree
        rows = np.floor(lat_e6 / 1e6 * north).astype(np.int64)
        return rows, np.floor(lon_e6 / 1e6 * east).astype(np.int64)

    def centre(self, row: int, column: int) -> tuple[float, float]:
        """Return latitude and longitude of a cell's centre."""
        north, east = self._per_degree
        return (row + 0.5) / north, (column + 0.5) / east


def runs_without_gaps(user: Integers, time: Integers, seconds: float) -> Integers:
    """Number the stretches of one user without a pause longer than so many seconds.

    Examples
    --------
    >>> runs_without_gaps(np.array([1, 1, 1, 2]), np.array([0, 5, 90, 91]), 60)
    array([0, 0, 1, 2])
    """
    border = starts(user)
    border[1:] |= np.diff(time) > seconds
    return np.cumsum(border) - 1


def longest_runs(runs: Integers, count: int) -> Mask:
    """Mark the events of the ``count`` longest runs; of equal ones the earlier is taken."""
    lengths = np.bincount(runs)
    chosen = np.zeros(len(lengths), np.bool_)
    chosen[np.argsort(-lengths, kind="stable")[:count]] = True
    return chosen[runs]
