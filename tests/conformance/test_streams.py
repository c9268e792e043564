"""A stream's life: files, copies, another way in mid-stream, resets, and what predictions keep."""

from __future__ import annotations

import copy
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance.comparing import PARTS, assert_close, reference_run, saved, tensors
from conformance.forms import FORMS, Form
from conformance.users import Output, output_of
from conformance.ways import REFERENCE, STREAM_WAYS, Way

STEPS = 5


def follow(stream: Any, x: Any, y: list[Any]) -> list[Output]:
    """Predict and observe step by step; all outputs."""
    outputs = []
    for t, label in enumerate(y):
        outputs.append(output_of(stream.predict(x[t])))
        stream.observe(label)
    return outputs


def grown(way: Way, form: Form, steps: int = STEPS) -> Any:
    """A stream that has come some way."""
    stream, (x, y) = way.stream(form.build(**way.options)), form.users[0]
    follow(stream, x, y[:steps])
    return stream


def test_files_hold_what_those_of_the_reference_hold(other_stream_way: Way, form: Form) -> None:
    steps = len(form.users[0][1])
    mine, theirs = (tensors(grown(way, form, steps)) for way in (other_stream_way, REFERENCE))
    assert mine.keys() >= theirs.keys()
    for name, x in theirs.items():
        if x.dtype != torch.int16:  # cells of 16 bits may be a unit apart
            torch.testing.assert_close(mine[name], x, rtol=1e-5, atol=form.atol, msg=name)


def test_its_tensors_are_those_of_the_file_and_copies(stream_way: Way, form: Form) -> None:
    stream = grown(stream_way, form)
    kept, file = stream.tensors(), tensors(stream)
    follow(stream, *form.recorded(75, 2))
    assert kept.keys() == file.keys()
    for name, x in file.items():
        assert torch.equal(kept[name].cpu(), x), name


def test_saved_at_every_step_it_continues_bit_for_bit(
    stream_way: Way, form: Form, tmp_path: Path
) -> None:
    (x, y), path = form.users[0], tmp_path / "stream"
    live, saved_stream = (stream_way.stream(form.build(**stream_way.options)) for _ in range(2))
    for t, label in enumerate(y[:STEPS]):
        saved_stream.save(path)
        saved_stream = stream_way.load_stream(form.build(**stream_way.options), path)
        mine, theirs = saved_stream.predict(x[t]), live.predict(x[t])
        atol = 0 if stream_way.exact else form.atol
        assert_close(output_of(mine), output_of(theirs), atol)
        saved_stream.observe(label)
        live.observe(label)
    if stream_way.exact:
        assert saved(saved_stream) == saved(live)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_file_is_continued_in_any_way(form: Form, tmp_path: Path) -> None:
    (x, y), path = form.users[0], tmp_path / "stream"
    REFERENCE.stream(form.build(**REFERENCE.options)).save(path)
    for t, (label, way) in enumerate(zip(y[:12], cycle(STREAM_WAYS), strict=False)):
        stream = way.load_stream(form.build(**way.options), path)
        assert_close(output_of(stream.predict(x[t])), reference_run(form)[0][t], form.atol)
        stream.observe(label)
        stream.save(path)


def test_copies_go_ways_of_their_own(stream_way: Way, form: Form, tmp_path: Path) -> None:
    stream = grown(stream_way, form)
    stream.save(tmp_path / "stream")
    adapter = stream.method
    copies = [
        stream.copied(lambda s: copy.deepcopy(s, {id(adapter): adapter})),
        stream_way.load_stream(adapter, tmp_path / "stream"),
    ]
    continued = [form.recorded(seed, 3) for seed in (70, 71, 72)]
    for one, (x, y) in zip([*copies, stream], continued, strict=True):
        expected = REFERENCE.load_stream(form.build(**REFERENCE.options), tmp_path / "stream")
        for found, right in zip(follow(one, x, y), follow(expected, x, y), strict=True):
            assert_close(found, right, form.atol)


def test_a_prediction_never_changes(stream_way: Way, form: Form) -> None:
    stream, (x, y) = grown(stream_way, form, 3), form.recorded(80, 6)
    kept = []
    for t, label in enumerate(y):
        p = stream.predict(x[t])
        kept.append((p, output_of(p), [clone(getattr(p, name)) for name in PARTS]))
        if t % 2:  # nobody looks at the others before the stream has moved on
            kept.append((stream.predict(x[t]), None, None))
        stream.observe(label, prediction=p)
    twin = None
    for p, output, values in kept:
        if output is None:
            assert twin is not None
            assert_close(output_of(p), twin, 0 if stream_way.exact else form.atol)
            continue
        twin = output
        assert p.labels == output.labels
        for name, value in zip(PARTS, values, strict=True):
            assert value is None or torch.equal(getattr(p, name), value)


def clone(x: torch.Tensor | None) -> torch.Tensor | None:
    return None if x is None else x.clone()


def test_only_observing_changes_the_file(stream_way: Way, form: Form) -> None:
    stream = grown(stream_way, form)
    before = saved(stream)
    p = stream.predict(form.any_input)
    if p.labels:
        stream.explain(p)
    assert saved(stream) == before
    stream.observe("another")
    assert saved(stream) != before
