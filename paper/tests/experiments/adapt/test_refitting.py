"""The last layer is really fitted again, on what it says it is fitted on."""

from __future__ import annotations

import pytest
import torch
from experiments.adapt.toy_task import KNOWN, toy_task
from labelmem_paper.experiments.adapt.logistic import descend
from labelmem_paper.experiments.adapt.refitting import RefitOptions, Refitting

from labelmem.errors import ConfigError, UnsupportedError

TASK = toy_task()
TAUGHT = TASK.train_h, TASK.train_y
(STREAM,) = TASK.streams["new"]
STRENGTH = 1e-2


def made(every: int = 10, iterations: int = 20) -> Refitting:
    return Refitting(TASK.head(), TAUGHT, RefitOptions(every, iterations, STRENGTH))


def after(steps: int, method: Refitting) -> torch.Tensor:
    """What a stream believes of the next example once it has seen so many."""
    stream = method.stream()
    for h, y in zip(STREAM.h[:steps], STREAM.y[:steps].tolist(), strict=True):
        stream.predict(h)
        stream.observe(y)
    said = stream.predict(STREAM.h[steps])
    by_label = torch.zeros(9)
    by_label[said.labels] = said.probs
    return by_label


def model_says(steps: int) -> torch.Tensor:
    probs = torch.softmax(TASK.head()(STREAM.h[steps]), dim=0)
    return torch.cat([probs, torch.zeros(9 - KNOWN)])


@pytest.mark.parametrize("steps", [0, 9])
def test_it_is_the_model_until_the_first_fit(steps: int) -> None:
    torch.testing.assert_close(after(steps, made()), model_says(steps))


def test_then_it_is_fitted_on_training_examples_and_stream() -> None:
    """Both ways end in the one minimum that there is."""
    h = torch.cat([TASK.train_h, STREAM.h[:10]])
    y = torch.cat([TASK.train_y, STREAM.y[:10]])
    weight, bias = torch.zeros(9, 5, requires_grad=True), torch.zeros(9, requires_grad=True)
    descend(weight, bias, h, y, STRENGTH, 500)
    there = sorted(set(y.tolist()))
    expected = torch.zeros(9)
    logits = (weight @ STREAM.h[10] + bias).detach()
    expected[there] = torch.softmax(logits[there], dim=0)
    found = after(10, made(iterations=500))
    torch.testing.assert_close(found, expected, atol=2e-2, rtol=0)
    assert not torch.allclose(found, model_says(10), atol=1e-3)


def test_new_labels_have_no_probability_before_a_fit_knows_them() -> None:
    new = set(STREAM.y[:10].tolist()) - set(range(KNOWN))
    assert new and set(STREAM.y[10:15].tolist()) - set(range(KNOWN))
    before, later = after(9, made()), after(15, made())
    assert not before[KNOWN:].any()
    assert set(later[KNOWN:].nonzero()[:, 0].add(KNOWN).tolist()) == new


def test_every_stream_begins_with_the_model_and_leaves_it_alone() -> None:
    method = made()
    first = after(25, method)
    torch.testing.assert_close(after(25, method), first)
    assert torch.equal(method.backbone.model.weight, TASK.weight)


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="one stream at a time, not 2"):
        made().streams(2)
    with pytest.raises(ConfigError, match="every is 0"):
        RefitOptions(every=0)
