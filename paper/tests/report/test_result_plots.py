from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from labelmem_paper.report.looks import FAINT
from labelmem_paper.report.result_plots import LEADING, Drawing, drawings_of
from labelmem_paper.report.results import load_results
from report.made_up import METHODS, Record, keep, made_up, many, with_cells


def drawn(folder: Path, *records: Record) -> dict[str, Drawing]:
    (table,) = load_results(keep(folder, records))
    drawings = {one.name: one for one in drawings_of(table, table.datasets[0])}
    return {name.removeprefix("table2-fsq-nyc-"): one for name, one in drawings.items()}


def curve_of(drawing: Drawing, line: int = 0) -> tuple[list[float], list[float]]:
    x, y = drawing.figure.axes[0].lines[line].get_data()
    return [float(v) for v in x], [float(v) for v in y]


def names_in(drawing: Drawing) -> list[str]:
    return [text.get_text() for text in drawing.figure.axes[0].texts]


def bins(*figures: tuple[int, int, int, float]) -> dict[str, Any]:
    keys = ("start", "stop", "tokens", "loss")
    return {"curve": [dict(zip(keys, one, strict=True)) for one in figures]}


def test_the_plots_that_plain_records_allow(tmp_path: Path) -> None:
    drawings = drawn(tmp_path, made_up("lmn"), made_up("static"))
    assert list(drawings) == ["position", "time"]
    assert sorted(names_in(drawings["position"])) == ["lmn", "static"]
    assert sorted(names_in(drawings["time"])) == ["lmn", "static"]
    assert "Lower is better." in drawings["time"].sees


def test_loss_by_position_is_averaged_over_seeds(tmp_path: Path) -> None:
    runs = [
        made_up(seed=seed, **bins((0, 1, 40, 8.0 + seed), (1, 2, 40, 6.0), (2, 4, 80, 4.0 + seed)))
        for seed in (0, 1)
    ]
    x, y = curve_of(drawn(tmp_path, *runs)["position"])
    assert x == [1, 2, 3.5]  # the middles of positions 1, 2 and 3-4
    assert y == [8.5, 6.0, 4.5]


def test_seeds_may_cut_the_positions_differently(tmp_path: Path) -> None:
    runs = [
        made_up(seed=0, **bins((0, 1, 40, 4.0), (1, 3, 80, 3.0), (3, 31, 80, 2.0))),
        made_up(seed=1, **bins((0, 1, 40, 4.0), (1, 7, 80, 0.0))),
    ]
    x, y = curve_of(drawn(tmp_path, *runs)["position"])
    assert x == [1, 2.5]  # the second seed ends at 4.5
    other = 4.0 - 4.0 * math.log(2.5) / math.log(4.5)  # straight on the logarithmic axis
    assert y == pytest.approx([4.0, (3.0 + other) / 2])


def test_positions_that_few_streams_reach_are_left_out(tmp_path: Path) -> None:
    run = made_up(**bins((0, 1, 40, 4.0), (1, 2, 40, 3.0), (2, 20, 19, 99.0)))
    x, y = curve_of(drawn(tmp_path, run)["position"])
    assert (x, y) == ([1, 2], [4.0, 3.0])


def test_records_without_times_or_curves_have_no_such_plot(tmp_path: Path) -> None:
    run = made_up()
    del run["us_per_token"], run["curve"]
    assert drawn(tmp_path, run) == {}


def test_time_is_marked_between_powers_of_ten(tmp_path: Path) -> None:
    runs = [made_up("lmn", us_per_token=40.0), made_up("counter", us_per_token=20.0)]
    drawing = drawn(tmp_path, *runs)["time"]
    assert drawing.figure.axes[0].get_xlim() == (10, 100)
    assert ">10<" in drawing.svg and ">100<" in drawing.svg


def test_memory_size_needs_two_sizes(tmp_path: Path) -> None:
    assert "memory" not in drawn(tmp_path, with_cells(10), made_up("static"))
    runs = [with_cells(cells, loss=9.0 - cells / 10) for cells in (20, 10)]
    drawings = drawn(tmp_path, *runs, made_up("static"))
    assert curve_of(drawings["memory"]) == ([10, 20], [8.0, 7.0])
    assert names_in(drawings["memory"]) == ["lmn"]
    # Elsewhere each method appears once, with its largest memory.
    assert sorted(names_in(drawings["time"])) == ["lmn", "static"]
    marks = [curve_of(drawings["time"], line)[1] for line in (0, 1)]
    assert sorted(marks) == [[6.0], [7.0]]


def test_theta_of_example_users(tmp_path: Path) -> None:
    traces = [{"user": f"u{n}", "theta": [0.1 * n, 0.5]} for n in range(9)]
    drawings = drawn(tmp_path, made_up("lmn", seed=1, traces=traces), made_up("lmn", seed=0))
    drawing = drawings["theta-lmn"]
    assert names_in(drawing) == [f"u{n}" for n in range(6)]  # not all of them
    assert curve_of(drawing, 3) == ([1, 2], [pytest.approx(0.3), 0.5])
    assert drawing.figure.axes[0].get_ylim() == (0, 1)
    assert "seed 1" in drawing.sees


def test_among_many_methods_some_lead_and_the_others_are_faint(tmp_path: Path) -> None:
    drawing = drawn(tmp_path, *many(seeds=1))["position"]
    axes = drawing.figure.axes[0]
    assert sorted(names_in(drawing)) == sorted(METHODS)
    colours = {text.get_text(): text.get_color() for text in axes.texts}
    assert {name for name in METHODS if colours[name] != FAINT.hex} == set(LEADING)
    weights = [line.get_linewidth() for line in axes.lines[: len(METHODS)]]
    faint = [width for width in weights if width < 1]
    assert len(faint) == len(METHODS) - len(LEADING)


def test_names_of_many_methods_lie_inside_and_apart(tmp_path: Path) -> None:
    axes = drawn(tmp_path, *many(seeds=1))["position"].figure.axes[0]
    heights = sorted(text.xy[1] for text in axes.texts)  # type: ignore[attr-defined]
    assert heights[0] >= 0 and heights[-1] <= 1
    points = 72 * (axes.figure.get_figheight() - 1)  # less than the height of the axes
    assert all((b - a) * points > 9 for a, b in pairwise(heights))


def test_variants_are_not_drawn_beside_the_methods(tmp_path: Path) -> None:
    variant = made_up("no-key", config={"trials": 24, "options": {"is": "lmn"}})
    both = drawn(tmp_path, made_up("lmn"), made_up("static"), variant)
    assert sorted(names_in(both["position"])) == ["lmn", "static"]
    alone = drawn(tmp_path, made_up("lmn"), variant)  # a table that is only an ablation
    assert sorted(names_in(alone["position"])) == ["lmn", "no-key"]


def sized(method: str, cells: int, loss: float, **options: Any) -> Record:
    """A row that is run with a memory of some size."""
    config = {"options": {"memory": {"capacity": cells}, **options}}
    return made_up(method, loss=loss, config=config)


def test_rows_of_other_sizes_are_points_of_one_curve(tmp_path: Path) -> None:
    drawings = drawn(
        tmp_path,
        sized("lmn", 100, 4.0),
        sized("lmn-2000", 2000, 3.0, **{"is": "lmn"}),
        sized("lmn-50", 50, 4.5, **{"is": "lmn"}),
        sized("lmn-other", 500, 9.0, **{"is": "lmn", "recall": {"parts": ["cosine"]}}),
        sized("lmn-stronger", 100, 1.0, **{"is": "lmn"}),
        sized("knn", 100, 5.0),
        made_up("static"),
    )
    assert names_in(drawings["memory"]) == ["lmn"]  # knn has one size, static no memory
    assert curve_of(drawings["memory"]) == ([50, 100, 2000], [4.5, 4.0, 3.0])
