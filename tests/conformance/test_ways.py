"""Each way is really taken: after a silent fall-back this suite would say nothing about it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from conformance.comparing import run_users
from conformance.forms import form
from conformance.ways import REFERENCE, WAYS, Way


def modules_run(way: Way) -> set[str]:
    """The modules whose functions take the steps of a form that every way can take."""
    history, modules = form("history"), set()
    users = way.users(history.build(**way.options), len(history.users))

    def note(frame: Any, event: str, _: Any) -> None:
        modules.add(str(frame.f_globals.get("__name__")))

    sys.setprofile(note)
    try:
        run_users(users, history.users)
    finally:
        sys.setprofile(None)
    return modules


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_each_way_is_taken(way: Way) -> None:
    assert any(name.startswith(way.module) for name in modules_run(way))


def test_the_reference_takes_none_of_the_others() -> None:
    run, others = modules_run(REFERENCE), {way.module for way in WAYS} - {REFERENCE.module}
    assert others and not any(name.startswith(tuple(others)) for name in run)
