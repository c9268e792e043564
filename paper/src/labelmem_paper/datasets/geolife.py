"""Geolife: GPS trajectories of 182 people, mostly in Beijing (Zheng et al., WWW 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from labelmem.config import check_limits
from labelmem.errors import ConfigError, DataError
from labelmem.logs.grouping import offsets_of
from labelmem.split import by_user
from labelmem_paper.datasets import prepared
from labelmem_paper.datasets.archive import load_arrays
from labelmem_paper.datasets.gps import Fixes, Grid, longest_runs, runs_without_gaps
from labelmem_paper.datasets.layout import Arrays, Dataset, Layout
from labelmem_paper.datasets.numbering import number, renumber
from labelmem_paper.datasets.plt import Tracks, read_tracks
from labelmem_paper.datasets.prepared import as_integers
from labelmem_paper.datasets.problems import nothing_left
from labelmem_paper.datasets.sequences import Sequences
from labelmem_paper.datasets.source import Source
from labelmem_paper.datasets.strings import pack

__all__ = ["DATASET", "GeolifeRecipe"]

DAY = 86_400
COMPACT_BIN = 30
HALF = 1 << 31
"""Added to a column, which may be negative, so that row and column fit one whole number."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GeolifeRecipe:
    """How GPS fixes become sequences of map cells.

    The steps, in this order: keep the box; keep one fix per clock bin and user; drop the fixes of
    copied files; replace fixes by cells; drop rare cells; number the cells that remain; cut each
    user at long gaps; keep the longest sequences; split by user. Cells are numbered before the
    longest are chosen, as in the published count, so a few labels may occur in none of them.

    Examples
    --------
    >>> GeolifeRecipe(bin_seconds=60).cell_metres
    100.0
    """

    box: tuple[float, float, float, float] = (39.4, 41.1, 115.4, 117.6)
    """South, north, west and east edge in degrees: Beijing."""
    bin_seconds: int = 30
    """Length of the clock bins, of each of which a user's first fix is kept."""
    drop_copies: bool = True
    """Whether to leave out files that repeat another user's, which would leak into the test."""
    cell_metres: float = 100.0
    """Edge of a cell."""
    reference_latitude: float = 39.9
    """Where cells are square."""
    min_cell_count: int = 5
    """Fewest fixes of a cell that is kept."""
    max_gap_days: float = 30.0
    """Longest pause within a sequence."""
    longest: int | None = 240
    """How many sequences are kept, the longest; None keeps all."""
    test_share: float = 20 / 240
    """Share of the sequences to test on."""
    valid_share: float = 0.1
    """Share of the others to validate on."""

    def __post_init__(self) -> None:
        check_limits(self, ("min_cell_count", "bin_seconds"))
        south, north, west, east = self.box
        if not (south < north and west < east):
            raise ConfigError(f"box is {self.box}; it must be (south, north, west, east)")
        if self.cell_metres <= 0 or self.max_gap_days <= 0:
            raise ConfigError(
                f"cell_metres is {self.cell_metres}, max_gap_days is {self.max_gap_days}; "
                "both must be above 0"
            )
        if self.longest is not None and self.longest < 1:
            raise ConfigError(f"longest is {self.longest}; it must be at least 1, or None")


def read_raw(paths: tuple[Path, ...], recipe: GeolifeRecipe) -> Arrays:
    """Read the ``.plt`` files, thinning each user's fixes before the next user's are read."""
    users = [_fixes(tracks, recipe) for tracks in read_tracks(paths[0])]
    fixes = Fixes(
        user=np.concatenate([part.user for part in users]),
        time=np.concatenate([part.time for part in users]),
        lat_e6=np.concatenate([part.lat_e6 for part in users]),
        lon_e6=np.concatenate([part.lon_e6 for part in users]),
        is_copy=np.concatenate([part.is_copy for part in users]),
    )
    return prepare(fixes, recipe, paths[0])


def read_compact(paths: tuple[Path, ...], recipe: GeolifeRecipe) -> Arrays:
    """Read the repacked arrays: Beijing, one fix per 30 seconds."""
    if recipe.bin_seconds % COMPACT_BIN:
        raise DataError(
            f"{paths[0]} holds one fix per {COMPACT_BIN} s, so bin_seconds must be a multiple of "
            f"that, not {recipe.bin_seconds}; for finer ones get the published files"
        )
    names = ("user", "t", "lat_e6", "lon_e6", "traj", "traj_is_copy")
    arrays = load_arrays(paths[0], names)
    user, time, lat, lon, track = (as_integers(arrays, name) for name in names[:5])
    is_copy = arrays["traj_is_copy"].astype(np.bool_)[track]
    fixes = Fixes(user, time, lat, lon, is_copy).inside(recipe.box)
    return prepare(fixes.thinned(recipe.bin_seconds), recipe, paths[0])


def prepare(fixes: Fixes, recipe: GeolifeRecipe, path: Path) -> Arrays:
    """Apply the recipe's steps to fixes already cut to the box and thinned."""
    kept = fixes.where(~fixes.is_copy) if recipe.drop_copies else fixes
    grid = Grid(recipe.cell_metres, recipe.reference_latitude)
    rows, columns = grid.cells(kept.lat_e6, kept.lon_e6)
    cells, distinct = number((rows << 32) + columns + HALF)
    common = (np.bincount(cells, minlength=len(distinct)) >= recipe.min_cell_count)[cells]
    if not common.any():
        raise nothing_left(path, len(fixes), "GPS fixes", recipe)
    labels, used = renumber(cells[common])
    user, time = kept.user[common], kept.time[common]
    runs = runs_without_gaps(user, time, recipe.max_gap_days * DAY)
    chosen = longest_runs(runs, recipe.longest or len(runs))
    offsets = offsets_of(runs[chosen])
    return {
        "tokens": labels[chosen],
        "offsets": offsets,
        "users": user[chosen][offsets[:-1]],
        "names": pack(_names(grid, distinct[used])),
    }


def as_sequences(arrays: Arrays, recipe: GeolifeRecipe, source: Source, seed: int) -> Sequences:
    """Make the container, split by user."""
    split = partial(by_user, test=recipe.test_share, valid=recipe.valid_share, seed=seed)
    return prepared.as_sequences("geolife", arrays, split, source, recipe)


def _fixes(tracks: Tracks, recipe: GeolifeRecipe) -> Fixes:
    order = np.argsort(tracks.time, kind="stable")
    fixes = Fixes(
        user=np.full(len(order), tracks.user, np.int64),
        time=tracks.time[order],
        lat_e6=tracks.lat_e6[order],
        lon_e6=tracks.lon_e6[order],
        is_copy=tracks.is_copy[order],
    )
    return fixes.inside(recipe.box).thinned(recipe.bin_seconds)


def _names(grid: Grid, cells: Integers) -> list[str]:
    rows, columns = (cells >> 32).tolist(), ((cells & (2 * HALF - 1)) - HALF).tolist()
    centres = (grid.centre(row, column) for row, column in zip(rows, columns, strict=True))
    return [f"{lat:.4f},{lon:.4f}" for lat, lon in centres]


DATASET = Dataset(
    "geolife",
    GeolifeRecipe(),
    layouts=(
        Layout("raw", ("Geolife Trajectories 1.3/Data",), read_raw, folder=True),
        Layout("raw", ("Data",), read_raw, folder=True, common_names=True),
        Layout("raw", ("Geolife Trajectories 1.3.zip",), read_raw),
        Layout(
            "compact",
            ("geolife_beijing_30s.npz",),
            read_compact,
            note="99.1 % of the points, those in Beijing, the first fix in every 30 s",
        ),
    ),
    assemble=as_sequences,
)
