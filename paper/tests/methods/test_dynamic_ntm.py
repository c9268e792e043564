"""A step of the D-NTM against loops over cells, straight from its description."""

from __future__ import annotations

import math

import pytest
import torch
from labelmem_paper.methods.dynamic_ntm import DynamicNTM, NTMState
from torch import Tensor
from toys import filled

from labelmem.errors import ConfigError

CELLS, CONTENT, ADDRESS, DIM, LABELS = 4, 3, 2, 3, 5


def network(tied: bool = False) -> DynamicNTM:
    bare = DynamicNTM(LABELS, DIM, CELLS, CONTENT, ADDRESS, tied=tied)
    made: DynamicNTM = filled(bare, seed=1).double()
    return made


def cosine(a: Tensor, b: Tensor) -> float:
    return float(a @ b / (a.norm() * b.norm()))


def tied(net: DynamicNTM) -> bool:
    return net.head.weight is net.embedding.weight


def oracle(net: DynamicNTM, token: int, state: NTMState) -> tuple[Tensor, NTMState]:
    """One stream, one cell after another; the state's tensors have no stream dimension."""
    vectors = net.embedding.weight * (math.sqrt(DIM) if tied(net) else 1.0)
    x = net.embedding.start if token == LABELS else vectors[token]
    old = state.seen[ADDRESS:]
    both = torch.cat([x, old])
    erase, share = torch.sigmoid(net.erase(both)), torch.sigmoid(net.share(both))
    new = torch.relu(net.old_content(old) + share * net.new_content(x))
    content = []
    for i in range(CELLS):  # to where the last read was
        w = state.weights[i]
        content.append(state.content[i] * (1 - w * erase) + w * new)
    h, c = net.controller(torch.cat([x, state.seen])[None], (state.h[None], state.c[None]))
    h, c = h[0], c[0]
    sharpness, avoid = net.focus(h).tolist()
    sharpness, avoid = 1 + math.log1p(math.exp(sharpness)), 1 / (1 + math.exp(-avoid))
    score, cells = [], []
    for i in range(CELLS):
        cells.append(torch.cat([net.address[i], content[i]]))
        score.append(sharpness * cosine(net.key(h), cells[i]))
    power = [math.exp(s - avoid * float(state.usage[i])) for i, s in enumerate(score)]
    weights = [p / sum(power) for p in power]
    seen = sum((w * cell for w, cell in zip(weights, cells, strict=True)), torch.zeros(()))
    usage = [0.1 * float(state.usage[i]) + 0.9 * s for i, s in enumerate(score)]
    assert isinstance(seen, Tensor)
    shown = torch.cat([h, seen])
    if tied(net):
        shown = net.join.weight @ shown + net.join.bias
    logits = net.head.weight @ shown + net.head.bias
    w, u = torch.tensor(weights).to(h), torch.tensor(usage).to(h)
    return logits, NTMState(h, c, torch.stack(content), w, seen, u)


@torch.no_grad()
@pytest.mark.parametrize("share", [False, True])
def test_steps_equal_the_slow_loops(share: bool) -> None:
    net = network(share)
    assert tied(net) is share
    tokens = torch.tensor([[5, 1, 1, 4, 0], [5, 3, 2, 3, 5]])
    state = net.initial_state(2)
    slow = [NTMState(*(part[i] for part in state)) for i in range(2)]
    for t in range(tokens.shape[1]):
        logits, state = net(tokens[:, t], state)
        for i in range(2):
            expected, slow[i] = oracle(net, int(tokens[i, t]), slow[i])
            torch.testing.assert_close(logits[i], expected, atol=1e-6, rtol=1e-6)
            for ours, theirs in zip(state, slow[i], strict=True):
                torch.testing.assert_close(ours[i], theirs, atol=1e-6, rtol=1e-6)


@torch.no_grad()
def test_a_stream_starts_with_empty_cells_and_writes_where_it_read() -> None:
    net = network()
    _, first = net(torch.tensor([LABELS]), net.initial_state(1))
    assert not bool(first.content.any())  # nothing was read before, so nothing is written
    aside = first._replace(weights=torch.tensor([[0.0, 1.0, 0.0, 0.0]]).double())
    with torch.no_grad():
        net.new_content.weight.abs_()
        net.embedding.weight.abs_()
        net.old_content.bias.abs_()
    _, second = net(torch.tensor([2]), aside)
    assert second.content[0].any(dim=1).tolist() == [False, True, False, False]


def test_sizes_are_checked() -> None:
    with pytest.raises(ConfigError, match="cells is 0"):
        DynamicNTM(labels=3, cells=0)
    with pytest.raises(ConfigError, match="dropout is 1"):
        DynamicNTM(labels=3, dropout=1)
