"""Labels that come late, out of order, or when the stream has met many others since."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance.comparing import assert_close, tensors
from conformance.forms import FORMS, Form
from conformance.oracles import FormOracle
from conformance.users import Output, output_of
from conformance.ways import REFERENCE, Way

ORDER = (2, 0, 3, 1)
"""In which order the labels of four predictions come."""
STEPS = 12


def schedule(recorded: tuple[Tensor, list[Any]]) -> Iterable[tuple[str, int]]:
    """What happens when: the label of step 0 comes last, the others in disorder."""
    yield "predict", 0
    for first in range(1, len(recorded[1]), len(ORDER)):
        steps = [first + k for k in ORDER if first + k < len(recorded[1])]
        yield from (("predict", t) for t in sorted(steps))
        yield from (("observe", t) for t in steps)
    yield "observe", 0


def late_run(way: Way, form: Form) -> tuple[list[Output], Any]:
    (x, y), pending = form.recorded(60, STEPS), {}
    stream, outputs = way.stream(form.build(**way.options)), []
    for what, t in schedule((x, y)):
        if what == "predict":
            pending[t] = stream.predict(x[t])
            outputs.append(output_of(pending[t]))
        else:
            stream.observe(y[t], prediction=pending[t])
            outputs.append(output_of(stream.predict(form.any_input)))
    assert stream.observed == STEPS
    return outputs, stream


@cache
def expected_run(form: Form) -> tuple[list[Output], dict[str, Tensor]]:
    outputs, stream = late_run(REFERENCE, form)
    return outputs, tensors(stream)


def test_late_labels_are_learned_as_by_the_reference(other_stream_way: Way, form: Form) -> None:
    expected, state = expected_run(form)
    outputs, stream = late_run(other_stream_way, form)
    for output, right in zip(outputs, expected, strict=True):
        assert_close(output, right, form.atol)
    for name, x in tensors(stream).items():
        if x.dtype != torch.int16:  # cells of 16 bits may be a unit apart
            torch.testing.assert_close(x, state[name], rtol=1e-5, atol=form.atol, msg=name)


@pytest.mark.parametrize("form", [form for form in FORMS if form.oracle], ids=str)
def test_late_labels_are_learned_as_by_the_oracle(form: Form) -> None:
    (x, y), oracle, pending = form.recorded(60, STEPS), FormOracle.like(form.build()), {}
    outputs = iter(expected_run(form)[0])
    for what, t in schedule((x, y)):
        if what == "predict":
            expected = oracle.output(x[t])
            pending[t] = oracle.lmn.latest
        else:
            oracle.observe_late(pending[t], x[t], y[t])
            expected = oracle.output(form.any_input)
        output = next(outputs)
        assert output.labels == expected.labels
        torch.testing.assert_close(output.probs.double(), expected.probs, rtol=0, atol=form.atol)


def test_naming_the_latest_prediction_changes_nothing(stream_way: Way, form: Form) -> None:
    (x, y), adapter = form.users[1], form.build(**stream_way.options)
    plain, named = (stream_way.stream(adapter) for _ in range(2))
    for t, label in enumerate(y):
        p, q = plain.predict(x[t]), named.predict(x[t])
        assert_close(output_of(q), output_of(p), 0 if stream_way.exact else form.atol)
        named.predict(form.any_input)
        plain.observe(label)
        named.observe(label, prediction=q)
