"""A stream of every method to compare with."""

from __future__ import annotations

from golden.making.common import assert_steady, spread, write_case
from golden.methods import BASELINES, CASES


def write() -> None:
    """One record and one saved stream each."""
    BASELINES.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        record = write_case(case, case.method(), BASELINES)
        print(f"{case.name:18} best label {spread(record)}")
        assert_steady(case.method(), case, record)
