"""The unadapted model."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from toys import Recurrent, Stateless, hooks_of, random_stream, run

from labelmem.baselines.static import Static
from labelmem.errors import ModelError, UnsupportedError


def test_it_says_what_the_model_says() -> None:
    model, (x, ys) = Stateless().eval(), random_stream(0, 20, range(4), ["new"])
    for t, p in enumerate(run(Static(model).stream(), x, ys)):
        expected = torch.softmax(model(x[t][None])[0], dim=0)
        torch.testing.assert_close(p[:4], expected)
        assert not p[4:].any()


def test_a_recurrent_model_sees_the_whole_stream() -> None:
    model, (x, ys) = Recurrent(), random_stream(0, 20, range(4))
    state = model.initial_state(1)
    for t, p in enumerate(run(Static(model).stream(), x, ys)):
        logits, state = model(x[t][None], state)
        torch.testing.assert_close(p, torch.softmax(logits[0], dim=0))


def test_there_is_nothing_to_fit_and_no_life_without_logits() -> None:
    with pytest.raises(UnsupportedError):
        Static(Stateless()).fit([])
    with pytest.raises(ModelError, match="logits"):
        Static(nn.Identity(), labels=())
    with pytest.raises(ModelError, match="2 labels for a head with 4"):
        Static(Stateless(), labels=["a", "b"])


def test_closing_gives_the_model_back() -> None:
    model = Stateless().train()
    with Static(model) as method:
        assert not model.training and method.dim == 5
    assert model.training and not hooks_of(model)
