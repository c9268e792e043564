"""Dividing the labels between memory and model."""

from __future__ import annotations

import pytest
import torch
from toys import Stateless, random_stream

from labelmem import Adapter
from labelmem.functional import outside


def test_the_models_part_is_outside_of_memory() -> None:
    r = torch.tensor([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.6, 0.4, 0.0]])
    s = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    assert torch.allclose(outside(r, s)[0], torch.tensor([0.5 / 0.7, 0.0, 0.2 / 0.7]))
    assert torch.equal(outside(r, s)[1], r[1])
    assert float(outside(r, s)[2].sum()) == 0  # all of it is in memory


@pytest.mark.parametrize("partition", [False, True])
def test_theta_is_the_probability_of_an_old_label(partition: bool) -> None:
    stream = Adapter(Stateless(), combiner=0.7, partition=partition).stream()
    x, ys = random_stream(5, 20, range(4), ["emu"])
    divided = []
    for t, y in enumerate(ys):
        p = stream.predict(x[t])
        assert float(p.probs.sum()) == pytest.approx(1.0, abs=1e-6)
        assert p.memory_probs is not None
        held = p.memory_probs > 0
        if held.any() and not held[:4].all():
            divided.append(float(p.probs[held].sum()) == pytest.approx(0.7, abs=1e-5))
        stream.observe(y)
    assert all(divided) == partition


def test_an_explanation_adds_up() -> None:
    stream = Adapter(Stateless(), combiner=0.7, partition=True).stream()
    stream.predict(torch.ones(3))
    stream.observe(1)
    p = stream.predict(torch.ones(3))
    old, other = stream.explain(p, 1), stream.explain(p, 0)
    assert (old.model_share, old.memory_share) == (0.0, 1.0)
    assert (other.model_share, other.memory_share) == (1.0, 0.0)
