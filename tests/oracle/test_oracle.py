"""The oracle's memory, pinned by examples worked by hand (in the comments).

lam = log k makes the numbers fractions: a cosine of 1 then weighs k, and a cosine of 0 weighs 1.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from .lmn import Cell, OracleConfig, OracleMemory

LOG = math.log
WRONG = {"a": 0.25, "other": 0.75}  # the true label a is strictly below another
TIED = {"a": 0.5, "other": 0.5}  # loss = margin, but the prediction was not wrong


def memory(*cells: Cell, **options: Any) -> OracleMemory:
    result = OracleMemory(OracleConfig(**options))
    result.cells = list(cells)
    return result


def near(expected: Any) -> Any:
    return pytest.approx(expected, rel=1e-12, abs=1e-12)


# ---------------------------------------------------------------- read


def test_read_averages_the_two_cells_of_one_label() -> None:
    # a: cosines 1 and 0, weights 3/4 and 1/4; M = (0.75, 0.25); alpha = 0.75 * 1 + 0.25 * 4 = 1.75
    #    cos(h, M) = 0.75 / sqrt(0.625) = 3 / sqrt(10)
    #    score = 1.75**2 * 3**(3 / sqrt(10)) = 8.68...
    # b: cosine -1; score = 2**2 * 3**-1 = 4/3
    # s_a = 8.68... / (8.68... + 1.33...) = 0.8669
    m = memory(
        Cell("a", [1.0, 0.0], 1.0, 0),
        Cell("b", [-2.0, 0.0], 2.0, 1),
        Cell("a", [0.0, 1.0], 4.0, 2),
        lam=LOG(3),
        delta=2.0,
    )
    a = 1.75**2 * 3 ** (3 / math.sqrt(10))
    b = 4 / 3
    s = m.read([7.0, 0.0])  # the length of h does not matter
    assert s == near({"a": a / (a + b), "b": b / (a + b)})
    assert s["a"] == pytest.approx(0.8669, abs=5e-5)


def test_read_of_an_empty_memory_is_empty() -> None:
    assert memory().read([1.0, 2.0]) == {}


def test_zero_vectors_have_cosine_zero() -> None:
    # h = 0: all kernels are exp(0) = 1, so s is alpha over the sum: 3/4 and 1/4
    pair = (Cell("a", [1.0, 0.0], 3.0, 0), Cell("b", [-1.0, 0.0], 1.0, 0))
    assert memory(*pair).read([0.0, 0.0]) == near({"a": 0.75, "b": 0.25})
    # v = 0 for a: kernel 1 against 3 for b, at equal alpha
    pair = (Cell("a", [0.0, 0.0], 1.0, 0), Cell("b", [1.0, 0.0], 1.0, 0))
    assert memory(*pair, lam=LOG(3)).read([2.0, 0.0]) == near({"a": 0.25, "b": 0.75})
    # the two cells of a cancel: both cosines 0, w = 1/2 each, M = 0, kernel 1; b as before
    cells = (
        Cell("a", [1.0, 0.0], 1.0, 0),
        Cell("a", [-1.0, 0.0], 1.0, 0),
        Cell("b", [0.0, 1.0], 1.0, 0),
    )
    assert memory(*cells, lam=LOG(3)).read([0.0, 2.0]) == near({"a": 0.25, "b": 0.75})


def test_lam_zero_leaves_the_plain_mean_of_alpha() -> None:
    # all kernels are 1 and all w equal: a has alpha (1 + 4) / 2 = 2.5, b has 7.5
    m = memory(
        Cell("a", [1.0, 0.0], 1.0, 0),
        Cell("a", [0.0, 1.0], 4.0, 0),
        Cell("b", [-1.0, 0.0], 7.5, 0),
        lam=0.0,
    )
    assert m.read([1.0, 0.0]) == near({"a": 0.25, "b": 0.75})


def test_delta_zero_forgets_alpha() -> None:
    # alpha**0 = 1: kernels alone, 3 against 1
    m = memory(
        Cell("a", [1.0, 0.0], 0.001, 0), Cell("b", [0.0, 1.0], 50.0, 0), lam=LOG(3), delta=0.0
    )
    assert m.read([1.0, 0.0]) == near({"a": 0.75, "b": 0.25})


# ---------------------------------------------------------------- write: when


def test_gate_is_shut_at_the_margin_exactly() -> None:
    # log 0.5 - log 0.25 = log 2 = margin: loss = 0. A little less apart: loss > 0.
    m = memory(margin=LOG(2))
    assert m.write([1.0], "a", {"a": 0.5, "b": 0.25, "c": 0.25}, 0) == "none"
    assert m.cells == []
    assert m.write([1.0], "a", {"a": 0.4999, "b": 0.2501, "c": 0.25}, 0) == "create"


def test_gate_counts_no_probability_as_infinite_loss() -> None:
    # P(y) = 0 writes whatever the margin; so does P without support
    for P in ({"b": 1.0}, {"a": 0.0, "b": 1.0}, {}, {"a": 0.0, "b": 0.0}):
        assert memory(margin=-100.0).write([1.0], "a", P, 0) == "create"
    # a y that no other label competes with has a loss of 0
    for P in ({"a": 1.0}, {"a": 1.0, "b": 0.0}):
        assert memory(margin=100.0).write([1.0], "a", P, 0) == "none"


def test_negative_margin_asks_for_a_clear_miss() -> None:
    # margin = -log 2: loss = max(0, -log 2 - log P(a)/P(b)); P(b) = 2 P(a) gives 0, 3 P(a) log 1.5
    assert memory(margin=-LOG(2)).write([1.0], "a", {"a": 0.25, "b": 0.5, "c": 0.25}, 0) == "none"
    assert memory(margin=-LOG(2)).write([1.0], "a", WRONG, 0) == "create"


# ---------------------------------------------------------------- write: what


def test_one_cell_per_label_only_ever_merges() -> None:
    # w = 1 for an only cell: v = (1, 0) + (0, 2) = (1, 2), alpha = 0.99 + 1 = 1.99,
    # then v = (2, 2), alpha = 0.99 * 1.99 + 1 = 2.9701. Label b is not even decayed.
    b = Cell("b", [3.0, 3.0], 1.0, 0)
    m = memory(b)
    h = [1.0, 0.0]
    assert m.write(h, "a", WRONG, 1) == "create"
    h[0] = 99.0  # the memory holds a copy
    assert m.write([0.0, 2.0], "a", WRONG, 2) == "merge"
    assert m.write([1.0, 0.0], "a", TIED, 3) == "merge"
    assert m.cells[0] == Cell("b", [3.0, 3.0], 1.0, 0)
    assert m.cells[1] == Cell("a", near([2.0, 2.0]), near(2.9701), 3)


def test_two_cells_per_label_add_then_overwrite_the_smallest() -> None:
    # lam = 0, so the w of a label's cells are equal.
    m = memory(lam=0.0, cells_per_label=2)
    assert m.write([1.0, 0.0], "a", WRONG, 0) == "create"
    # tied is not wrong: merge only. v = (2, 0), alpha = 0.99 + 1 = 1.99
    assert m.write([1.0, 0.0], "a", TIED, 1) == "merge"
    # wrong: merge, v = (2, 1), alpha = 0.99 * 1.99 + 1 = 2.9701; then the new cell beside it
    assert m.write([0.0, 1.0], "a", WRONG, 2) == "add"
    assert m.cells == [
        Cell("a", near([2.0, 1.0]), near(2.9701), 2),
        Cell("a", [0.0, 1.0], 1.0, 2),
    ]
    # wrong, two cells: w = 1/2; first: v = (4, 1), alpha = 0.99 * 2.9701 + 0.5 = 3.440399
    # the second has the smallest alpha and gives way, in its place
    m.write([9.0, 9.0], "z", {"a": 1.0}, 3)
    assert m.write([4.0, 0.0], "a", WRONG, 4) == "overwrite"
    assert m.cells == [
        Cell("a", near([4.0, 1.0]), near(3.440399), 4),
        Cell("a", [4.0, 0.0], 1.0, 4),
        Cell("z", [9.0, 9.0], 1.0, 3),
    ]


def test_cell_to_overwrite_is_picked_before_the_merge() -> None:
    # w = 9/10, 1/10. Before: 1.0 < 1.1, the first goes, though the merge would make it
    # 0.99 * 1.0 + 0.9 = 1.89 against 0.99 * 1.1 + 0.1 = 1.189. Second: v = (0.1, 1).
    m = memory(
        Cell("a", [1.0, 0.0], 1.0, 0),
        Cell("a", [0.0, 1.0], 1.1, 0),
        lam=LOG(9),
        cells_per_label=2,
    )
    assert m.write([1.0, 0.0], "a", WRONG, 1) == "overwrite"
    assert m.cells == [
        Cell("a", [1.0, 0.0], 1.0, 1),
        Cell("a", near([0.1, 1.0]), near(1.189), 1),
    ]


def test_equal_alphas_overwrite_the_first() -> None:
    m = memory(
        Cell("a", [1.0], 1.0, 0),
        Cell("a", [2.0], 1.0, 0),
        cells_per_label=2,
    )
    assert m.write([5.0], "a", WRONG, 1) == "overwrite"
    assert m.cells[0] == Cell("a", [5.0], 1.0, 1)
    assert m.cells[1] == Cell("a", near([4.5]), near(1.49), 1)  # w = 1/2


def test_write_weights_with_and_without_lam() -> None:
    # lam = log 9, cosines 1 and 0. With lam: 0.9, 0.1. Without: e / (e + 1) = 0.731059, 0.268941.
    for write_lam, w in ((True, 0.9), (False, math.e / (math.e + 1))):
        m = memory(
            Cell("a", [1.0, 0.0], 2.0, 0),
            Cell("a", [0.0, 1.0], 3.0, 0),
            lam=LOG(9),
            write_lam=write_lam,
            cells_per_label=2,
        )
        assert m.write([2.0, 0.0], "a", TIED, 1) == "merge"
        assert m.cells == [
            Cell("a", near([1.0 + 2 * w, 0.0]), near(1.98 + w), 1),
            Cell("a", near([2 * (1 - w), 1.0]), near(2.97 + 1 - w), 1),
        ]


# ---------------------------------------------------------------- write: capacity


def test_no_limit_of_cells_adds_until_capacity() -> None:
    # T = none: each miss adds, until the stream holds 3; then the label's smallest is overwritten
    m = memory(cells_per_label=None, capacity=3)
    happened = [m.write([1.0], "a", WRONG, t) for t in range(5)]
    assert happened == ["create", "add", "add", "overwrite", "overwrite"]
    assert len(m.cells) == 3
    # at capacity, with a single cell of its own, a label can only merge
    m = memory(Cell("b", [1.0], 1.0, 0), Cell("a", [1.0], 1.0, 0), cells_per_label=2, capacity=2)
    assert m.write([1.0], "a", WRONG, 1) == "merge"


def labels_after_a_create(evict: str, *cells: tuple[str, float, int]) -> list[str]:
    made = [Cell(label, [1.0], alpha, written) for label, alpha, written in cells]
    m = memory(*made, capacity=len(made), evict=evict)
    assert m.write([1.0], "new", {"b": 1.0}, 9) == "create"
    assert len(m.cells) == len(made)
    return [cell.label for cell in m.cells]


def test_room_is_made_by_the_oldest_write() -> None:
    # last writes 4, 2, 3: b goes, though a is the older cell and c the lighter one
    assert labels_after_a_create("oldest", ("a", 5, 4), ("b", 5, 2), ("c", 1, 3)) == [
        "a",
        "c",
        "new",
    ]
    # a and c tie at 2: the smaller alpha, c
    assert labels_after_a_create("oldest", ("a", 2, 2), ("b", 1, 3), ("c", 1, 2)) == [
        "a",
        "b",
        "new",
    ]
    # b and c tie in both: the older cell, b
    assert labels_after_a_create("oldest", ("a", 2, 2), ("b", 1, 2), ("c", 1, 2)) == [
        "a",
        "c",
        "new",
    ]


def test_room_is_made_by_the_smallest_weight() -> None:
    # b is the lightest, though the latest written
    assert labels_after_a_create("weight", ("a", 3, 1), ("b", 1, 8), ("c", 2, 2)) == [
        "a",
        "c",
        "new",
    ]
    # b and c tie: the lowest position, b, though c was written longer ago
    assert labels_after_a_create("weight", ("a", 3, 1), ("b", 1, 8), ("c", 1, 2)) == [
        "a",
        "c",
        "new",
    ]


def test_a_merge_renews_the_last_write_of_all_cells_of_the_label() -> None:
    m = memory(Cell("a", [1.0], 1.0, 0), Cell("b", [1.0], 9.0, 1), Cell("a", [1.0], 1.0, 2))
    m.write([1.0], "a", TIED, 5)
    assert [cell.written for cell in m.cells] == [5, 1, 5]
