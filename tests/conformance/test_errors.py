"""What is wrong is refused by the same exception in every way, and leaves a stream as it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance.comparing import assert_close, run_users, saved
from conformance.forms import Form
from conformance.users import output_of
from conformance.ways import Way
from labelmem.errors import ClosedError, InputError, ModelError, ObserveError

ONLY = (
    "fixed",
    "few shot",
    "label combiner",
    "stream combiner, three cells",
    "recurrent",
    "history",
    "many cells",
    "16 bits",
    "stream combiner, doubles",
)


def grown(way: Way, form: Form) -> Any:
    stream, (x, y) = way.stream(form.build(**way.options)), form.users[1]
    for t, label in enumerate(y):
        stream.predict(x[t])
        stream.observe(label)
    return stream


def refused(stream: Any, error: type[Exception], call: Callable[[], Any]) -> None:
    before = saved(stream)
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert saved(stream) == before


def bad_inputs(form: Form) -> list[Any]:
    x = form.any_input
    if form.inputs == "tokens":
        return [torch.tensor(-1), torch.tensor(10**6), "text", None]
    nan = torch.where(torch.arange(len(x)) == 1, math.nan, x)
    return [nan, nan / 0, x[:-1], x[None], x[0], "text", None]


def test_inputs_that_cannot_be_read(stream_way: Way, form: Form) -> None:
    stream = grown(stream_way, form)
    if form.name == "few shot":  # its model takes vectors of any length, the memory does not
        stream.predict(form.any_input)
    waiting = stream.predict(form.any_input)
    for x in bad_inputs(form):
        refused(stream, InputError, lambda x=x: stream.predict(x))
    stream.observe("new")  # belongs to the prediction before
    with pytest.raises(ObserveError):
        stream.observe("new", prediction=waiting)


def test_labels_that_cannot_be_learned(stream_way: Way, form: Form) -> None:
    stream = grown(stream_way, form)
    p = stream.predict(form.any_input)
    for label in (["a"], {"a": 1}, {1}, torch.ones(2)):
        refused(stream, InputError, lambda y=label: stream.observe(y))
    refused(stream, InputError, lambda: stream.observe("a", prediction=p.probs))
    refused(stream, InputError, lambda: stream.explain(p, "never seen"))
    stream.observe("a")


def test_predictions_that_cannot_be_observed(stream_way: Way, form: Form) -> None:
    stream, other = grown(stream_way, form), stream_way.stream(form.build(**stream_way.options))
    refused(stream, ObserveError, lambda: stream.observe("a"))
    foreign, forgotten = other.predict(form.any_input), stream.predict(form.any_input)
    refused(stream, ObserveError, lambda: stream.observe("a", prediction=foreign))
    refused(stream, ObserveError, lambda: stream.explain(foreign))
    stream.observe("a")
    refused(stream, ObserveError, lambda: stream.observe("a"))
    refused(stream, ObserveError, lambda: stream.observe("a", prediction=forgotten))
    stream.reset()
    refused(stream, ObserveError, lambda: stream.observe("a", prediction=forgotten))


def test_models_that_give_nan(stream_way: Way, form: Form) -> None:
    """In their logits alone, or already in h."""
    stream = grown(stream_way, form)
    model, p = stream.method.backbone.model, output_of(stream.predict(form.any_input))
    head = [x for name, x in model.named_parameters() if name.startswith("head")]
    for parameters in (head, list(model.parameters())):
        kept = [parameter.detach().clone() for parameter in parameters]
        for parameter in parameters:
            parameter.data.fill_(math.nan)
        if parameters:
            refused(stream, ModelError, lambda: stream.predict(form.any_input))
        for parameter, value in zip(parameters, kept, strict=True):
            parameter.data.copy_(value)
    atol = 0 if stream_way.exact else form.atol
    assert_close(output_of(stream.predict(form.any_input)), p, atol)


def test_adapters_that_were_closed(stream_way: Way, form: Form) -> None:
    stream = grown(stream_way, form)
    late = stream.predict(form.any_input)
    stream.predict(form.any_input)
    stream.observe("a")
    stream.method.close()
    refused(stream, ClosedError, lambda: stream.predict(form.any_input))
    refused(stream, ClosedError, lambda: stream.observe("a", prediction=late))


def test_batches_refuse_alike(batch_way: Way, form: Form) -> None:
    """After anything that is wrong, users are answered as if it had not been."""
    n = batch_way.rows or 2
    adapter = form.build(**batch_way.options)
    users = batch_way.users(adapter, n)
    run_users(users, form.users[-n:])
    X = [form.any_input] * n
    before, atol = users.predict(X), 0 if batch_way.exact else form.atol
    # A recording of operations looks up what is no token as a CPU does, a graph does not.
    inputs = bad_inputs(form)[:2] if form.inputs != "tokens" or batch_way.follows else []
    calls: list[Callable[[], Any]] = [
        lambda: users.observe(["a", ["b"]][-n:]),
        *(lambda x=x: users.predict([x] * n) for x in inputs),  # type: ignore[misc]
    ]
    for call in calls:
        users.predict(X)
        with pytest.raises(InputError):
            call()
            users.predict(X)  # a recorded step tells of its faults afterwards
    for output, expected in zip(users.predict(X), before, strict=True):
        assert_close(output, expected, atol)
    adapter.close()
    with pytest.raises(ClosedError):
        users.reset()
