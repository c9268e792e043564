"""Tests that ask for a ``way`` and a ``form`` run for all pairs that there are."""

from __future__ import annotations

from functools import cache

import pytest
from conformance.forms import FORMS, Form
from conformance.ways import STREAM_WAYS, WAYS, Way


@cache
def can_take(way: Way, form: Form) -> bool:
    return way.takes(form.build)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``way`` is any of them; ``stream_way`` one whose users have streams of their own."""
    names = metafunc.fixturenames
    way = next((name for name in ("way", "stream_way") if name in names), None)
    if way is None:
        return
    ways = WAYS if way == "way" else STREAM_WAYS
    if "form" not in names:
        metafunc.parametrize(way, ways, ids=str)
        return
    pairs = [(w, f) for f in FORMS for w in ways if can_take(w, f)]
    metafunc.parametrize((way, "form"), pairs, ids=[f"{w}-{f}" for w, f in pairs])
