"""Descent on all weights of chains of layers against the same by vmap."""

from __future__ import annotations

import pytest
import torch
from labelmem_paper.experiments.images.chain_sgd import ChainSGD, ChainSGDOptions
from torch import nn
from toys import Stateless, filled

from labelmem.baselines.sgd_all import SGDAll, SGDAllOptions
from labelmem.models import ConvNet


def pictured(bias: bool = True) -> nn.Sequential:
    net = ConvNet(labels=4, dim=5, size=6, channels=(2, 3), gain=2.0)
    model: nn.Sequential = filled(nn.Sequential(net.body, nn.Linear(5, 4, bias=bias)), 0, 0.4)
    return model.double()


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_a_chain_steps_as_any_network_does(bias: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(6, 3, 1, 6, 6, generator=generator, dtype=torch.float64)
    ys = torch.randint(6, (6, 3), generator=generator)  # two of the labels are new
    ours = ChainSGD(pictured(bias), options=ChainSGDOptions(lr=0.3, decay=0.1)).streams(3)
    theirs = SGDAll(pictured(bias), options=SGDAllOptions(lr=0.3, decay=0.1)).streams(3)
    for t in range(6):
        torch.testing.assert_close(ours.predict(x[t]), theirs.predict(x[t]))
        for batch in (ours, theirs):
            batch.observe_ids(ys[t], mask=ys[t] > 0)


@pytest.mark.parametrize("streams", [1, 3])
def test_half_is_nearly_the_same(streams: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(5, streams, 1, 6, 6, generator=generator)
    ys = torch.randint(4, (5, streams), generator=generator)
    probs = {}
    for half in (False, True):
        batch = ChainSGD(pictured().float(), options=ChainSGDOptions(lr=0.3, half=half)).streams(
            streams
        )
        for t in range(5):
            probs[half] = batch.predict(x[t])
            batch.observe_ids(ys[t])
    torch.testing.assert_close(probs[True], probs[False], atol=2e-2, rtol=0)
    assert not torch.equal(probs[True], probs[False])


def test_the_row_of_a_new_label_may_start_elsewhere() -> None:
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    model = Stateless()
    for decay in (0.0, 1 - 1e-7):  # all the way back, too, is where it started
        method = ChainSGD(model, options=ChainSGDOptions(lr=0.0, decay=decay))
        method.start_row = {"weight": torch.full((5,), 0.3), "bias": torch.tensor(0.3)}
        stream = method.stream()
        for row in x:
            probs = stream.predict(row).probs
            stream.observe("new")
        h = model.features(x[-1])[0]
        logits = torch.cat([model.head(h), (0.3 * h.sum() + 0.3)[None]])
        torch.testing.assert_close(torch.as_tensor(probs), torch.softmax(logits, dim=0))
