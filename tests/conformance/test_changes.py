"""Models, combiners and options that change while streams go on; nothing old may be used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from torch import nn

from conformance.comparing import assert_close, reference_run
from conformance.forms import Form
from conformance.users import output_of
from conformance.ways import REFERENCE, Way
from labelmem import Adapter, Combiner

ONLY = (
    "fixed",
    "label combiner",
    "label combiner, sparse",
    "stream combiner, sees h",
    "recurrent",
    "gru",
    "history",
    "doubles",
)


def first_weight(module: nn.Module) -> tuple[nn.Module, str]:
    """The module that owns the first parameter, and its name there."""
    for part in module.modules():
        for name, _ in part.named_parameters(recurse=False):
            return part, name
    raise AssertionError("no parameters")


def scale(module: nn.Module) -> None:
    for parameter in module.parameters():
        parameter.data.mul_(0.7)


def put_another(module: nn.Module) -> None:
    owner, name = first_weight(module)
    setattr(owner, name, nn.Parameter(0.7 * getattr(owner, name).detach()))


def load_others(module: nn.Module) -> None:
    weights = {
        name: 0.7 * x if x.is_floating_point() else x for name, x in module.state_dict().items()
    }
    module.load_state_dict(weights, assign=True)


CHANGES: list[Callable[[nn.Module], None]] = [scale, put_another, load_others]


def change_model(adapter: Adapter, change: Callable[[nn.Module], None]) -> None:
    model: Any = adapter.backbone.model
    if list(model.parameters()):
        change(model)


def change_combiner(adapter: Adapter, change: Callable[[nn.Module], None]) -> None:
    if isinstance(adapter.combiner, Combiner):
        change(adapter.combiner)
    elif adapter.dim is not None:
        adapter.combiner = 0.9 * adapter.combiner


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_weights_may_change_between_steps(
    following_way: Way, form: Form, change: Callable[[nn.Module], None]
) -> None:
    recorded, both = [form.recorded(seed, 6) for seed in (40, 41)], (following_way, REFERENCE)
    adapters = [form.build(**each.options) for each in both]
    users = [each.users(adapter, 2) for each, adapter in zip(both, adapters, strict=True)]
    for t in range(6):
        for adapter in adapters if t % 2 else []:
            (change_model if t % 4 == 1 else change_combiner)(adapter, change)
        mine, theirs = (each.predict([x[t] for x, _ in recorded]) for each in users)
        for output, expected in zip(mine, theirs, strict=True):
            assert_close(output, expected, form.atol)
        for each in users:
            each.observe([y[t] for _, y in recorded])


def test_hooks_of_the_user_see_the_model_run(following_way: Way, form: Form) -> None:
    adapter, (x, y), calls = form.build(**following_way.options), form.users[1], []
    users = following_way.users(adapter, 1)
    for t, label in enumerate(y):
        handle = adapter.backbone.model.register_forward_hook(lambda *_: calls.append(1))
        [output] = users.predict([x[t]])
        handle.remove()
        assert_close(output, reference_run(form)[1][t], form.atol)
        users.observe([label])
        assert len(calls) == t + 1


def test_options_of_the_memory_that_a_stream_began_with_stay(stream_way: Way, form: Form) -> None:
    adapter, (x, y) = form.build(**stream_way.options), form.users[1]
    stream, other = (stream_way.stream(adapter) for _ in range(2))
    kept = adapter.memory
    for t, label in enumerate(y):
        adapter.memory = replace(kept, lam=kept.lam + 1.0) if t % 2 else kept
        mine = output_of(stream.predict(x[t]))
        adapter.memory = kept
        assert_close(mine, output_of(other.predict(x[t])), 0 if stream_way.exact else form.atol)
        stream.observe(label)
        other.observe(label)
