"""A warm stream is one that has been shown the training examples before."""

from __future__ import annotations

import torch
from experiments.adapt.toy_task import toy_task
from labelmem_paper.experiments.adapt.warm_knn import WarmKNN

from labelmem.baselines.knn import KNN, KNNOptions
from labelmem.stream import Stream


def met(stream: Stream, h: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Show some examples; what was believed of the last one."""
    for x, label in zip(h, y.tolist(), strict=True):
        said = stream.predict(x)
        stream.observe(label)
    return said.probs


def test_warm_is_having_seen_what_was_taught() -> None:
    task, options = toy_task(), KNNOptions(theta=0.8, neighbours=7)
    (shown,) = task.streams["new"]
    cold = KNN(task.head(), options=options).stream()
    met(cold, task.train_h, task.train_y)
    method = WarmKNN(task.head(), options=options).fit([(task.train_h, task.train_y)])
    expected = met(cold, shown.h[:30], shown.y[:30])
    for stream in (method.stream(), method.stream()):  # one leaves no trace in the other
        found = met(stream, shown.h[:30], shown.y[:30])
        torch.testing.assert_close(found, expected)


def test_without_a_fit_it_is_the_usual_method() -> None:
    task = toy_task()
    (shown,) = task.streams["new"]
    one, other = (kind(task.head()).stream() for kind in (WarmKNN, KNN))
    assert torch.equal(met(one, shown.h[:9], shown.y[:9]), met(other, shown.h[:9], shown.y[:9]))
