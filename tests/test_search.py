from __future__ import annotations

import itertools

import pytest

from labelmem.errors import ConfigError
from labelmem.search import climb

GRID = {"x": [0, 1, 2, 3, 4], "y": [-1.0, 0.0, 1.0]}


def bowl(point: dict[str, float]) -> float:
    return (point["x"] - 3) ** 2 + (point["y"] + 1) ** 2


def test_a_convex_bowl_is_solved_exactly() -> None:
    log = climb(bowl, {"x": 0, "y": 1.0}, GRID, trials=50)
    best = min(log, key=lambda trial: trial["loss"])
    lowest = min(bowl({"x": x, "y": y}) for x, y in itertools.product(*GRID.values()))
    assert (best["x"], best["y"], best["loss"]) == (3, -1.0, lowest)


def test_no_point_is_tried_twice_and_the_budget_holds() -> None:
    asked = []
    log = climb(lambda p: asked.append(dict(p)) or bowl(p), {"x": 0, "y": 1.0}, GRID, trials=4)
    assert len(log) == len(asked) == 4
    assert all(a != b for a, b in itertools.combinations(asked, 2))


def test_a_start_off_the_grid_moves_onto_it() -> None:
    log = climb(bowl, {"x": 0.5, "y": 0.0}, GRID, trials=50)
    assert min(log, key=lambda t: t["loss"])["x"] == 3


def test_an_interrupted_search_ends_as_if_it_had_not_been() -> None:
    whole = climb(bowl, {"x": 0, "y": 1.0}, GRID, trials=9)
    for cut in range(len(whole)):
        asked = []
        resumed = climb(
            lambda p, asked=asked: asked.append(p) or bowl(p),
            {"x": 0, "y": 1.0},
            GRID,
            trials=9,
            log=[dict(trial) for trial in whole[:cut]],
        )
        assert resumed == whole
        assert len(asked) == len(whole) - cut


def test_no_trials_is_refused() -> None:
    with pytest.raises(ConfigError, match="trials is 0"):
        climb(bowl, {"x": 0, "y": 1.0}, GRID, trials=0)
