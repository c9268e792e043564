"""Every step of every way: probabilities, theta, and what the model and the memory believe."""

from __future__ import annotations

import pytest
import torch

from conformance.comparing import PARTS, assert_close, reference_run, run_users
from conformance.forms import FORMS, Form
from conformance.oracles import oracle_run
from conformance.ways import REFERENCE, Way


def test_steps_are_those_of_the_reference(other_way: Way, form: Form) -> None:
    found = run_users(other_way.users(form.build(**other_way.options), len(form.users)), form.users)
    for mine, theirs in zip(found, reference_run(form), strict=True):
        for output, expected in zip(mine, theirs, strict=True):
            assert_close(output, expected, form.atol)


@pytest.mark.parametrize("form", [form for form in FORMS if form.oracle], ids=str)
def test_the_reference_is_the_oracle(form: Form) -> None:
    for recorded, outputs in zip(form.users, reference_run(form), strict=True):
        for output, expected in zip(outputs, oracle_run(form, recorded), strict=True):
            assert output.labels == expected.labels
            for name in PARTS:
                mine, theirs = getattr(output, name), getattr(expected, name)
                assert (mine is None) == (theirs is None), name
                if mine is not None:
                    torch.testing.assert_close(mine.double(), theirs, rtol=0, atol=form.atol)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_form_exercises_what_it_stands_for(form: Form) -> None:
    """Theta, the model and the memory take part, and users meet labels of their own."""
    steps = [output for user in reference_run(form) for output in user]
    assert any(output.memory_probs is not None and output.memory_probs.any() for output in steps)
    assert any(len(output.labels) > len(form.known) for output in steps) or not form.new
    if form.known:
        thetas = {round(float(output.theta[0]), 4) for output in steps if output.theta is not None}
        fixed = isinstance(form.build().combiner, float)
        assert len(thetas) == 1 if fixed else len(thetas) > len(steps) / 2


def test_predicting_is_pure(way: Way, form: Form) -> None:
    adapter, recorded = form.build(**way.options), form.users[:2]
    quiet, curious = (way.users(adapter, 2) for _ in range(2))
    atol = 0 if way.exact else form.atol
    for t in range(5):
        X, Y = [x[t] for x, _ in recorded], [y[t] for _, y in recorded]
        curious.predict([form.any_input] * 2)
        first, again = curious.predict(X), curious.predict(X)
        for a, b, c in zip(first, again, quiet.predict(X), strict=True):
            assert_close(a, b, atol)
            assert_close(a, c, atol)
        quiet.observe(Y)
        curious.observe(Y)


def test_a_masked_user_stays_as_he_was(way: Way, form: Form) -> None:
    recorded = [form.recorded(seed, 9) for seed in (30, 31)]
    users = way.users(form.build(**way.options), 2)
    alone = REFERENCE.users(form.build(**REFERENCE.options), 1)
    for t in range(9):  # the second user sleeps two steps out of three
        mask = [True, t % 3 == 0]
        outputs = users.predict([x[t] for x, _ in recorded])
        users.observe([y[t] for _, y in recorded], mask)
        if mask[1]:
            assert_close(outputs[1], alone.predict([recorded[1][0][t]])[0], form.atol)
            alone.observe([recorded[1][1][t]])
    before = users.predict([form.any_input] * 2)
    users.observe(["nobody", form.any_input], [False, False])
    for a, b in zip(users.predict([form.any_input] * 2), before, strict=True):
        assert_close(a, b, 0 if way.exact else form.atol)


def test_users_that_were_reset_are_as_new(way: Way, form: Form) -> None:
    recorded = [(x[:4], y[:4]) for x, y in form.users[:2]]
    users = way.users(form.build(**way.options), 2)
    run_users(users, [form.recorded(seed, 4) for seed in (90, 91)])
    users.predict([form.any_input] * 2)
    users.reset()
    for mine, theirs in zip(run_users(users, recorded), reference_run(form), strict=False):
        for output, expected in zip(mine, theirs, strict=False):
            assert_close(output, expected, form.atol)
