from __future__ import annotations

import itertools
import random

import pytest
from labelmem_paper.report.naming import MARK, Box, beside

FRAME = (330.0, 180.0)


def covered_cells(a: Box, b: Box) -> int:
    """The common area by counting unit squares; for boxes on whole numbers."""

    def cells(box: Box) -> set[tuple[int, int]]:
        across = range(round(box.x - box.wide), round(box.x + box.wide))
        along = range(round(box.y - box.high), round(box.y + box.high))
        return set(itertools.product(across, along))

    return len(cells(a) & cells(b))


def test_overlap_is_what_counting_says() -> None:
    draw = random.Random(0)
    for _ in range(200):
        a, b = (Box(*(draw.randrange(8) for _ in "xy"), *(draw.randrange(5) for _ in "wh"))
                for _ in "ab")  # fmt: skip
        assert a.overlap(b) == covered_cells(a, b)


@pytest.mark.parametrize("seed", range(20))
def test_names_of_eight_marks_cover_nothing(seed: int) -> None:
    draw = random.Random(seed)
    marks = [(draw.uniform(10, 320), draw.uniform(10, 170)) for _ in range(8)]
    boxes = beside(marks, ["lmn-fixed"] * 8, FRAME)
    for box in boxes:
        assert box.overlap(Box(165, 90, 165, 90)) == pytest.approx(box.area)
    for a, b in itertools.combinations(boxes, 2):
        assert a.overlap(b) < 0.1 * a.area
    for box, (x, y) in itertools.product(boxes, marks):
        assert box.overlap(Box(x, y, MARK, MARK)) < 0.1 * box.area


def test_a_name_stays_beside_its_mark_where_there_is_room() -> None:
    left, right = beside([(20, 90), (310, 90)], ["counter", "maml"], FRAME)
    assert left.y == right.y == 90
    assert left.x > 20
    assert right.x < 310  # there is no room on its right


def test_marks_at_one_place_get_names_at_different_ones() -> None:
    boxes = beside([(100, 90)] * 4, ["one", "two", "three", "four"], FRAME)
    assert all(a.overlap(b) == 0 for a, b in itertools.combinations(boxes, 2))
