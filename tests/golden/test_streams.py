"""Adapters and streams that were saved with format 1 go on as they did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from golden.cases import CASES, STREAMS, opened
from golden.trajectory import (
    Case,
    Record,
    assert_explained,
    assert_follows,
    assert_lockstep,
    assert_near,
    explained,
    follow,
    spelled,
)
from safetensors.torch import load_file

BATCHED = [case for case in CASES if case.batch]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Any:
    return request.param


def recorded(case: Case) -> Record:
    return Record.read(STREAMS / f"{case.name}.safetensors")


def test_a_new_stream_follows_the_recorded_one(case: Case) -> None:
    assert_follows(follow(opened(case).stream(), case), recorded(case))


def test_a_saved_stream_goes_on(case: Case, tmp_path: Path) -> None:
    adapter, record = opened(case), recorded(case)
    stream = adapter.load_stream(STREAMS / f"{case.name}.stream")
    seen = explained(stream, stream.predict(case.x[case.half]))
    assert_explained(seen, record.names["explained"])
    assert_follows(follow(stream, case, case.half), record, case.half)
    assert spelled(stream.labels) == record.names["labels"]
    stream.save(tmp_path / "again")  # whatever is written now can be read as well
    assert adapter.load_stream(tmp_path / "again").labels == stream.labels


@pytest.mark.parametrize("case", BATCHED, ids=lambda case: case.name)
def test_streams_in_lockstep_follow_it(case: Case) -> None:
    assert_lockstep(opened(case), case, recorded(case))


def test_an_index_that_reads_in_part() -> None:
    """Near cells alone, or all of them: an engine may answer exactly."""
    case = next(case for case in CASES if case.name == "index")
    adapter = case.method()
    adapter.load(STREAMS / "index-probes.adapter")
    stream = adapter.load_stream(STREAMS / "index.stream")
    seen = torch.stack([stream.predict(x).probs for x in case.x[case.half :]])
    expected = load_file(STREAMS / "index-probes.safetensors")
    for row, near, exact in zip(seen, expected["near"], expected["exact"], strict=True):
        closer = min(near, exact, key=lambda p: float((p - row).abs().max()))
        assert_near(row, closer, "probabilities")
