"""What a method is told to have answered is what its stream answers, step by step."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from experiments.adapt.toy_task import KNOWN, toy_task
from labelmem_paper.experiments.adapt.forms import FORMS
from labelmem_paper.experiments.adapt.frozen import Stream
from labelmem_paper.experiments.adapt.meeting import meet

from labelmem import Adapter
from labelmem.baselines import make
from labelmem.online import OnlineMethod
from labelmem.stopwatch import Stopwatch


def slowly(method: OnlineMethod, stream: Stream) -> tuple[list[bool], list[float]]:
    """One user's stream as an application has it: labels are names, answers are read by name."""
    user = method.stream()
    hits, losses = [], []
    for h, y, truth in zip(stream.h, stream.y.tolist(), stream.truth.tolist(), strict=True):
        said = user.predict(h)
        p = dict(zip(said.labels, said.probs.tolist(), strict=True)).get(truth, 0.0)
        hits.append(said.label == truth)
        losses.append(-math.log(max(p, 1e-10)))
        user.observe(y)
    return hits, losses


def sparse(stream: Stream) -> Stream:
    """The same with new labels that are any large numbers, as venues are."""
    y, truth = (torch.where(x < KNOWN, x, 1000 * x + 7) for x in (stream.y, stream.truth))
    return Stream(stream.h, y, truth)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["ncm", "lmn-fixed"])
def test_answers_are_those_of_a_stream_alone(form: str, name: str) -> None:
    task = toy_task()
    head = task.head()
    method = Adapter(head, combiner=0.5) if name == "lmn-fixed" else make(name, head)
    if name == "ncm":
        method.fit([(task.train_h, task.train_y)])
    streams = [sparse(stream) for stream in task.streams[form]]
    for stream, met in zip(streams, meet(method, task, streams), strict=True):
        hits, losses = slowly(method, stream)
        assert met.method.hit.tolist() == hits
        np.testing.assert_allclose(met.method.loss, losses, atol=1e-4)
        assert (met.truth == stream.truth.numpy()).all()


def test_the_model_alone_is_the_static_method() -> None:
    task = toy_task()
    (met,) = meet(make("static", task.head()), task, task.streams["new"])
    assert (met.method.hit == met.model.hit).all() and 0 < met.model.hit.mean() < 1
    np.testing.assert_allclose(met.method.loss, met.model.loss, atol=1e-4)
    assert met.model.loss.max() == pytest.approx(-math.log(1e-10))


def test_a_label_that_is_never_revealed_is_never_right() -> None:
    task = toy_task()
    only = Stream(torch.zeros(3, 5), torch.tensor([0, 0, 0]), torch.tensor([8, 8, 8]))
    (met,) = meet(make("static", task.head()), task, [only])
    assert not met.method.hit.any() and not met.model.hit.any()


def test_the_time_is_taken() -> None:
    task = toy_task()
    stopwatch = Stopwatch(torch.device("cpu"))
    meet(make("static", task.head()), task, task.streams["few"], stopwatch)
    assert stopwatch.seconds() > 0


def test_the_head_is_the_model() -> None:
    task = toy_task()
    (stream,) = task.streams["known"]
    logits = stream.h @ task.weight.T + task.bias
    assert torch.allclose(task.head()(stream.h), logits, atol=1e-5)
    assert not task.head().weight.requires_grad
