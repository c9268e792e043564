"""Factored fast weights against plain autograd on whole copies of all weights."""

from __future__ import annotations

import pytest
import torch
from labelmem_paper.methods.fast_lstm import CELL, FastLSTM, FastState, Trail, fold_
from torch import Tensor, nn
from torch.func import functional_call
from toys import filled

from labelmem.models import LSTMModel

LABELS, DIM, LR = 5, 3, 0.7
Y = torch.tensor([[1, 1, 3, 1, 0], [4, 2, 2, -1, 2]])
TOKENS = torch.cat([torch.full((2, 1), LABELS), Y[:, :-1]], 1)
TOKENS = TOKENS.masked_fill(TOKENS < 0, LABELS)


def network(learn_rates: bool = False) -> FastLSTM:
    made = filled(FastLSTM(LABELS, DIM, learn_rates), seed=3).double()
    return made  # type: ignore[no-any-return]


def window_loss(net: FastLSTM, state: FastState, first_order: bool = False) -> Tensor:
    trail, total = Trail(), torch.zeros((), dtype=torch.float64)
    for t in range(Y.shape[1]):
        losses, state = net.step(TOKENS[:, t], Y[:, t], state, trail, LR, first_order)
        total = total + losses.sum()
    return total


class Whole(nn.Module):
    """The same network, one stream, every weight a parameter of its own."""

    def __init__(self, net: FastLSTM) -> None:
        super().__init__()
        self.model = LSTMModel(LABELS, DIM).double()
        with torch.no_grad():
            self.model.embedding.weight.copy_(net.embedding.weight)
            self.model.embedding.start.copy_(net.embedding.start)
            self.model.head.load_state_dict(net.head.state_dict())
            for name in CELL:
                getattr(self.model.rnn, f"{name}_l0").copy_(getattr(net.cell, name))

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return self.model(x, state)


def oracle(net: FastLSTM, first_order: bool) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of the window and its slopes, stream by stream with whole weights."""
    whole = Whole(net)
    rates = {name: float(p.detach().exp()) for name, p in net.log_rates.items()}
    theta = {name: p.detach().requires_grad_() for name, p in whole.named_parameters()}
    total = torch.zeros((), dtype=torch.float64)
    for i in range(len(Y)):
        fast, state = dict(theta), whole.model.initial_state(1)
        for t in range(Y.shape[1]):
            # The step's own slope takes the state as given; the outer one does not.
            logits, after = functional_call(whole, fast, (TOKENS[i, t : t + 1], state))
            if int(Y[i, t]) >= 0:
                loss = nn.functional.cross_entropy(logits, Y[i, t : t + 1])
                total = total + loss
                here = {name: p.clone() for name, p in fast.items()}
                given = tuple(part.detach() if first_order else part for part in state)
                again, _ = functional_call(whole, here, (TOKENS[i, t : t + 1], given))
                cost = nn.functional.cross_entropy(again, Y[i, t : t + 1])
                slopes = torch.autograd.grad(
                    cost, list(here.values()), create_graph=not first_order, retain_graph=True
                )
                pairs = zip(fast.items(), slopes, strict=True)
                fast = {n: p - LR * rates[_rate(n)] * s for (n, p), s in pairs}
            state = after
    found = torch.autograd.grad(total, list(theta.values()))
    return total, dict(zip(theta, found, strict=True))


def _rate(name: str) -> str:
    if "embedding" in name:
        return "embedding"
    if "head" in name:
        return "head" if "weight" in name else "head_bias"
    return name.rsplit(".", 1)[1].removesuffix("_l0")


@pytest.mark.parametrize("first_order", [False, True])
def test_loss_and_slopes_are_those_of_whole_weights(first_order: bool) -> None:
    net = network()
    loss = window_loss(net, net.initial_state(2), first_order)
    loss.backward()
    expected, slopes = oracle(net, first_order)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(net.head.weight.grad, slopes["model.head.weight"])
    torch.testing.assert_close(net.head.bias.grad, slopes["model.head.bias"])
    torch.testing.assert_close(net.embedding.weight.grad, slopes["model.embedding.weight"])
    torch.testing.assert_close(net.embedding.start.grad, slopes["model.embedding.start"])
    for name in CELL:
        ours = getattr(net.cell, name).grad
        torch.testing.assert_close(ours, slopes[f"model.rnn.{name}_l0"])


def test_the_second_order_slope_equals_finite_differences() -> None:
    net = network(learn_rates=True)
    net.zero_grad()
    window_loss(net, net.initial_state(2)).backward()
    step = 1e-5
    for parameter in net.parameters():
        flat, slope = parameter.data.view(-1), parameter.grad
        assert slope is not None
        for i in range(0, len(flat), max(1, len(flat) // 4)):
            there = []
            for sign in (1, -1):
                flat[i] += sign * step
                there.append(float(window_loss(net, net.initial_state(2)).detach()))
                flat[i] -= sign * step
            assert abs((there[0] - there[1]) / (2 * step) - float(slope.view(-1)[i])) < 1e-6


def test_the_first_order_slope_is_another() -> None:
    slopes = []
    for first_order in (False, True):
        net = network()
        window_loss(net, net.initial_state(2), first_order).backward()
        assert net.head.weight.grad is not None
        slopes.append(net.head.weight.grad)
    assert float((slopes[0] - slopes[1]).abs().max()) > 1e-3


def test_a_trail_and_the_same_steps_folded_predict_alike() -> None:
    net, trail = network(), Trail()
    along = net.initial_state(2)
    folded = net.initial_state(2)
    with torch.no_grad():
        for t in range(Y.shape[1]):
            a, along = net.step(TOKENS[:, t], Y[:, t], along, trail, LR)
            short = Trail()
            b, folded = net.step(TOKENS[:, t], Y[:, t], folded, short, LR)
            fold_(folded, short)
            torch.testing.assert_close(a, b)
        fold_(along, trail)
        torch.testing.assert_close(along, folded)


def test_a_stream_without_a_label_keeps_its_weights_exactly() -> None:
    net, trail = network(), Trail()
    state = net.initial_state(2)
    state["h"] += 0.5  # from zero a step would leave the recurrent weights alone
    with torch.no_grad():
        losses, after = net.step(TOKENS[:, 0], torch.tensor([-1, 2]), state, trail, LR)
    fold_(after, trail)
    assert float(losses[0]) == 0
    for part in (after["rows"], after["head"], *after["cell"].values()):
        assert not bool(part[0].any()) and bool(part[1].any())
