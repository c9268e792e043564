"""Methods to compare with predict as they did, and their saved streams go on."""

from __future__ import annotations

import pytest
from golden.methods import BASELINES, CASES
from golden.trajectory import Case, Record, assert_follows, assert_lockstep, follow


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_streams_follow_the_recorded_ones(case: Case) -> None:
    method, record = case.method(), Record.read(BASELINES / f"{case.name}.safetensors")
    assert_follows(follow(method.stream(), case), record)
    stream = method.load_stream(BASELINES / f"{case.name}.stream")
    assert_follows(follow(stream, case, case.half), record, case.half)
    assert [repr(label) for label in stream.labels] == record.names["labels"]
    if case.batch:
        assert_lockstep(method, case, record)
