"""Tests that ask for a ``way`` and a ``form`` run for all pairs that there are."""

from __future__ import annotations

from functools import cache

import pytest

from conformance.forms import FORMS, Form
from conformance.ways import BATCH_WAYS, STREAM_WAYS, WAYS, Way

_WAYS = {"way": WAYS, "stream_way": STREAM_WAYS, "batch_way": BATCH_WAYS}
_WAYS["following_way"] = [way for way in WAYS if way.follows]
_WAYS["other_way"], _WAYS["other_stream_way"] = WAYS[1:], STREAM_WAYS[1:]
_WAYS["exact_way"] = [way for way in STREAM_WAYS if way.exact]


@cache
def can_take(way: Way, form: Form) -> bool:
    return way.takes(form.build)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A ``stream_way`` gives every user a stream of his own, a ``batch_way`` a row of a batch.

    The others are those apart from the reference, which is compared with itself only where that
    says something. A module whose ``ONLY`` names forms is run for these alone.
    """
    way = next((name for name in _WAYS if name in metafunc.fixturenames), None)
    if way is not None and "form" in metafunc.fixturenames:
        forms = [f for f in FORMS if f.name in getattr(metafunc.module, "ONLY", [f.name])]
        pairs = [(w, f) for f in forms for w in _WAYS[way] if can_take(w, f)]
        metafunc.parametrize((way, "form"), pairs, ids=[f"{w}-{f}" for w, f in pairs])
