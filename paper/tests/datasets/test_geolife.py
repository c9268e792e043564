from __future__ import annotations

import math
import shutil
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from labelmem_paper.datasets import GeolifeRecipe, load

from labelmem.errors import ConfigError, DataError

Write = Callable[[str, bytes], Path]

HEADER = (
    "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n"
    "0,2,255,My Track,0,0,2,8421376\n0\n"
)
START = int(datetime(2008, 10, 23, 2, 53, 0, tzinfo=UTC).timestamp())
ALL = GeolifeRecipe(min_cell_count=1, longest=None, test_share=0)

Fix = tuple[int, float, float]


def plt(fixes: list[Fix]) -> bytes:
    lines = []
    for second, lat, lon in fixes:
        moment = datetime.fromtimestamp(START + second, UTC)
        day = f"{moment:%Y-%m-%d,%H:%M:%S}"
        lines.append(f"{lat:.6f},{lon:.6f},0,492,39744.12,{day}\r\n")
    return HEADER.replace("\n", "\r\n").encode() + "".join(lines).encode()


WALK: list[Fix] = [(0, 39.9, 116.3), (7, 39.9001, 116.3), (31, 39.91, 116.3), (65, 39.92, 116.4)]
LATER: list[Fix] = [(40 * 86400, 39.93, 116.4), (40 * 86400 + 30, 10.0, 116.4)]
OTHER: list[Fix] = [(0, 39.95, 116.5), (30, 39.95, 116.5), (60, 39.96, -116.5)]


def tree(folder: Path) -> Path:
    files = {
        "000/Trajectory/20081202000000.plt": LATER,
        "000/Trajectory/20081023025300.plt": WALK,
        "001/Trajectory/20081023025300.plt": WALK,
        "010/Trajectory/20081023025300.plt": OTHER,
    }
    for name, fixes in files.items():
        path = folder / "Geolife Trajectories 1.3/Data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(plt(fixes))
    (folder / "Geolife Trajectories 1.3/Data/010/labels.txt").write_text("not a track")
    return folder


def test_folder(tmp_path: Path) -> None:
    data = load("geolife", ALL, root=tree(tmp_path))
    assert data.users.tolist() == [0, 0, 10]
    assert data.lengths.tolist() == [3, 1, 2]
    assert data.labels == 5
    assert data[2].tolist() == [data[2][0]] * 2
    lat, lon = map(float, data.names[data[0][0]].split(","))
    assert abs(lat - 39.9) < 0.001
    assert abs(lon - 116.3) < 0.001


def test_copies_can_be_kept(tmp_path: Path) -> None:
    data = load("geolife", {"drop_copies": False, "min_cell_count": 1}, root=tree(tmp_path))
    assert data.users.tolist() == [0, 0, 1, 10]
    assert (data[0] == data[2]).all()


def test_zip_and_unpacked_data_folder_equal_the_folder(tmp_path: Path) -> None:
    first = load("geolife", ALL, root=tree(tmp_path / "a"))
    (tmp_path / "b").mkdir()
    with zipfile.ZipFile(tmp_path / "b/Geolife Trajectories 1.3.zip", "w") as archive:
        for path in (tmp_path / "a").rglob("*"):
            archive.write(path, path.relative_to(tmp_path / "a"))
    shutil.copytree(tmp_path / "a/Geolife Trajectories 1.3/Data", tmp_path / "c/geolife/Data")
    for root in ("b", "c"):
        other = load("geolife", ALL, root=tmp_path / root)
        assert (first.tokens == other.tokens).all()
        assert first.names == other.names


def slow_cells(fixes: list[Fix], recipe: GeolifeRecipe) -> list[tuple[int, int]]:
    south, north, west, east = recipe.box
    seen: set[int] = set()
    cells = []
    for second, lat, lon in fixes:
        slot = (START + second) // recipe.bin_seconds
        if south <= lat <= north and west <= lon <= east and slot not in seen:
            seen.add(slot)
            shrink = math.cos(math.radians(39.9))
            cells.append((math.floor(lat * 1113.2), math.floor(lon * 1113.2 * shrink)))
    return cells


def test_bins_and_cells_equal_the_slow_way(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    steps = np.cumsum(rng.integers(1, 40, 300)).tolist()
    places = np.round(
        np.stack([39.9 + rng.normal(0, 0.004, 300), 116.3 + rng.normal(0, 0.8, 300)]), 6
    )
    fixes = list(zip(steps, *places.tolist(), strict=True))
    path = tmp_path / "geolife/Data/003/Trajectory/1.plt"
    path.parent.mkdir(parents=True)
    path.write_bytes(plt(fixes))
    data = load("geolife", ALL, root=tmp_path)
    cells = slow_cells(fixes, ALL)
    assert len(data.tokens) == len(cells) < 300
    for i in range(len(cells)):
        for j in range(i):
            assert (cells[i] == cells[j]) == (data.tokens[i] == data.tokens[j])


def test_compact(tmp_path: Path) -> None:
    steps = [0, 30, 60, 90]
    np.savez(
        tmp_path / "geolife_beijing_30s.npz",
        user=np.array([0, 0, 1, 1], np.uint8),
        t=np.array(steps, np.int32),
        lat_e6=np.full(4, 39_900_000, np.int32),
        lon_e6=np.full(4, 116_300_000, np.int32),
        traj=np.array([0, 0, 1, 1], np.uint16),
        traj_is_copy=np.array([False, True]),
    )
    assert load("geolife", ALL, root=tmp_path).users.tolist() == [0]
    both = load("geolife", {"drop_copies": False, "min_cell_count": 4}, root=tmp_path)
    assert both.lengths.tolist() == [2, 2]
    minute = load(
        "geolife", {"drop_copies": False, "min_cell_count": 1, "bin_seconds": 60}, root=tmp_path
    )
    assert minute.lengths.tolist() == [1, 1]
    with pytest.raises(DataError, match="multiple"):
        load("geolife", {"bin_seconds": 10}, root=tmp_path)


def test_longest_and_rare(tmp_path: Path) -> None:
    data = load("geolife", {"min_cell_count": 1, "longest": 1}, root=tree(tmp_path))
    assert data.lengths.tolist() == [3]
    assert data.labels == 5
    with pytest.raises(DataError, match="nothing is left of the"):
        load("geolife", root=tmp_path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (plt(WALK) + b"39.9,116.3,0\n", "line 11: .* expected 7 fields"),
        (plt(WALK) + b"north,116.3,0,1,1,2008-10-23,02:53:04\n", "line 11: found 'north'"),
        (plt(WALK) + b"39.9,116.3,0,1,1,2008-10-23,2:53\n", "line 11: found '2:53'"),
        (b"Geolife trajectory\nWGS 84\n", "line 3: .* 6 header lines"),
    ],
)
def test_malformed_plt(write: Write, tmp_path: Path, content: bytes, what: str) -> None:
    write("geolife/Data/000/Trajectory/20081023025300.plt", content)
    with pytest.raises(DataError, match=rf"20081023025300\.plt, {what}"):
        load("geolife", ALL, root=tmp_path)


def test_folder_without_tracks(tmp_path: Path) -> None:
    (tmp_path / "geolife/Data").mkdir(parents=True)
    with pytest.raises(DataError, match="holds no NNN/Trajectory"):
        load("geolife", ALL, root=tmp_path)


@pytest.mark.parametrize(
    "options", [{"box": (41, 39, 115, 117)}, {"cell_metres": 0}, {"longest": 0}, {"bin_seconds": 0}]
)
def test_impossible_options(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        load("geolife", options)
