from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs.habits import write_log

from labelmem.logs.lanes import Lane, plan
from labelmem.logs.log import Log, read_log
from labelmem.logs.rows import Columns
from labelmem.logs.states import Kept


def a_log(tmp_path: Path, seed: int, users: int = 30) -> Log:
    rng = np.random.default_rng(seed)
    lengths = rng.geometric(0.1, size=users)
    rows = [(f"u{u}", f"i{rng.integers(9)}", t) for u, n in enumerate(lengths) for t in range(n)]
    return read_log(write_log(tmp_path / "log.csv", rows), Columns("user", "place", "ts"))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("abreast", "steps"), [(7, 5), (30, 100), (1, 1)])
def test_every_event_is_in_one_piece_and_in_order(
    seed: int, abreast: int, steps: int, tmp_path: Path
) -> None:
    log = a_log(tmp_path, seed)
    done = {user: 0 for user in range(len(log.users))}
    for piece in plan(log, abreast, steps):
        assert len(piece.users) <= abreast and 0 < piece.stop - piece.first <= steps
        for user in piece.users.tolist():
            assert done[user] == piece.first
            done[user] = min(piece.stop, int(log.offsets[user + 1] - log.offsets[user]))
    assert [done[user] for user in sorted(done)] == np.diff(log.offsets).tolist()


def test_a_plan_carries_few_idle_rows(tmp_path: Path) -> None:
    log = a_log(tmp_path, seed=0, users=200)
    pieces = plan(log, abreast=64, steps=256)
    computed = sum(len(piece.users) * (piece.stop - piece.first) for piece in pieces)
    assert computed < 1.25 * len(log)


def test_own_items_keep_their_numbers_from_piece_to_piece(tmp_path: Path) -> None:
    rows = [("ann", place, t) for t, place in enumerate(["x", "a", "y", "x", "z", "y"])]
    log = read_log(write_log(tmp_path / "log.csv", rows), Columns("user", "place", "ts"))
    known = np.array([0 if item == "a" else -1 for item in log.items])
    kept: dict[str, Kept] = {}
    numbers: list[int] = []
    for piece in plan(log, abreast=1, steps=2):
        lane = Lane(log, piece, known, 1, kept)
        numbers += lane.y[0].tolist()
        kept = lane.kept_after([b""], [int(lane.y[0, -1])])
    assert numbers == [1, 0, 2, 1, 3, 2]
    assert kept["ann"] == Kept(b"", ["x", "y", "z"], 6, 2, 5.0, 0)
