"""Explanations name the same cells with the same shares in every way."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from conformance.forms import Form
from conformance.ways import REFERENCE, Way
from labelmem.explain import Explanation


def explanations(way: Way, form: Form) -> list[list[Explanation]]:
    """For some predictions, each of their labels explained: at once, and again much later."""
    (x, y), stream = form.users[0], way.stream(form.build(**way.options))
    found, kept = [], []
    for t, label in enumerate(y):
        p = stream.predict(x[t])
        if t % 4 == 3:
            found.append([stream.explain(p, name) for name in p.labels])
            kept.append(stream.predict(x[t]))
        stream.observe(label, prediction=p)
        if t > 13:
            break
    later = [[stream.explain(p, name) for name in p.labels] for p in kept]
    return found + later


@cache
def expected_explanations(form: Form) -> list[list[Explanation]]:
    return explanations(REFERENCE, form)


def cells_of(why: Explanation) -> list[tuple[Any, ...]]:
    rows = [(str(c.label), c.share, c.alpha, c.weight) for c in why.cells]
    return sorted(rows, key=lambda row: (row[0], *(round(value, 3) for value in row[1:])))


def test_explanations_are_those_of_the_reference(other_stream_way: Way, form: Form) -> None:
    atol = 10 * form.atol
    expected = expected_explanations(form)
    assert any(len(why.cells) for step in expected for why in step)
    for mine, theirs in zip(explanations(other_stream_way, form), expected, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert (a.label, a.theta is None) == (b.label, b.theta is None)
            for name in ("probability", "theta", "model_share", "memory_share"):
                assert getattr(a, name) == pytest.approx(getattr(b, name), abs=atol), name
            assert [cell.share for cell in a] == sorted((c.share for c in a), reverse=True)
            for cell, other in zip(cells_of(a), cells_of(b), strict=True):
                assert cell[0] == other[0]
                assert cell[1:] == pytest.approx(other[1:], rel=1e-4, abs=atol)
