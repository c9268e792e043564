"""MAML: online it is descent on all weights; trained, its first step pays."""

from __future__ import annotations

import pytest
import torch
from labelmem_paper.methods.fast_lstm import CELL
from labelmem_paper.methods.maml import MAML, MAMLOptions
from labelmem_paper.methods.window_passes import PlainPass
from labelmem_paper.methods.windows import window_losses
from torch import Tensor

from labelmem.baselines.sgd_all import SGDAll, SGDAllOptions
from labelmem.errors import ConfigError
from labelmem.evaluation import Watch, evaluate
from labelmem.models import LSTMModel

LABELS = 6


def favourites(n: int, steps: int, seed: int, labels: int = LABELS) -> list[tuple[None, Tensor]]:
    """A family of tasks: each sequence has three labels of its own and says them in any order."""
    generator = torch.Generator().manual_seed(seed)
    own = torch.randint(labels, (n, 3), generator=generator)
    order = torch.randint(3, (n, steps), generator=generator)
    return [(None, row) for row in own.gather(1, order)]


def test_online_it_is_descent_on_all_weights() -> None:
    method = MAML(LABELS, MAMLOptions(dim=4, lr=0.4))
    model, net = LSTMModel(LABELS, 4), method.network
    with torch.no_grad():
        model.embedding.load_state_dict(net.embedding.state_dict())
        model.head.load_state_dict(net.head.state_dict())
        for name in CELL:
            getattr(model.rnn, f"{name}_l0").copy_(getattr(net.cell, name))
    generator = torch.Generator().manual_seed(1)
    y = torch.randint(LABELS, (3, 12), generator=generator)
    x = torch.full((3, 12), LABELS)
    ours, theirs = method.streams(3), SGDAll(model, options=SGDAllOptions(lr=0.4)).streams(3)
    for t in range(12):
        torch.testing.assert_close(ours.predict(x[:, t]), theirs.predict(x[:, t]))
        mask = [True, t % 3 > 0, t % 2 == 0]
        ours.observe(y[:, t], mask)
        theirs.observe(y[:, t], mask)
        if t < 11:  # a stream that was masked out sees no new label
            x[:, t + 1] = torch.where(torch.tensor(mask), y[:, t], x[:, t])


def trained(lr: float, first_order: bool = False) -> MAML:
    method = MAML(40, MAMLOptions(dim=8, lr=lr, first_order=first_order))
    train, valid = favourites(150, 8, 0, labels=40), favourites(40, 8, 1, labels=40)
    method.fit(train, validation=valid, epochs=4, lr=0.02)
    return method


def costs(method: MAML, lr: float) -> Tensor:
    """-log P of the first, second, ... label of new tasks."""
    kept: list[Tensor] = []

    def keep(watch: Watch) -> None:
        kept.append(-watch.probs.gather(1, watch.y[:, None]).log().mean())

    evaluate(method.variant(lr=lr), favourites(100, 8, 9, labels=40), 100, keep)
    return torch.stack(kept)


@pytest.mark.parametrize("first_order", [False, True])
def test_one_step_beats_the_initialisation(first_order: bool) -> None:
    method = trained(0.5, first_order)
    moved, still = costs(method, 0.5), costs(method, 0.0)
    assert moved[0] == still[0]
    assert moved[1] < still[1] - 0.3  # one label was seen, one step was made
    assert moved[-1] < moved[1] - 0.5


def test_training_through_the_steps_beats_training_without_them() -> None:
    assert costs(trained(0.5), 0.5).mean() < costs(trained(0.0), 0.5).mean() - 0.1


def test_training_sees_what_will_be_met_online() -> None:
    method = MAML(LABELS, MAMLOptions(dim=4, lr=0.5))
    generator = torch.Generator().manual_seed(0)
    sequences = [(None, torch.randint(LABELS, (n,), generator=generator)) for n in (9, 7, 4)]
    online = evaluate(method, sequences).metrics.running
    labels = [y for _, y in sequences]
    windows = list(window_losses(method, labels, 4, PlainPass(method, training=False)))
    assert sum(float(a) for a, _ in windows) / 20 == pytest.approx(online, rel=1e-5)


def test_rates_are_learned_on_request_only() -> None:
    for learn in (False, True):
        method = MAML(LABELS, MAMLOptions(dim=4, learn_rates=learn))
        method.fit(favourites(12, 4, 0), epochs=1)
        moved = [bool(rate) for rate in method.network.log_rates.values()]
        assert any(moved) is learn


def test_training_is_repeatable() -> None:
    networks = []
    for _ in range(2):
        method = MAML(LABELS, MAMLOptions(dim=4))
        method.fit(favourites(12, 4, 0), epochs=2)
        networks.append(method.network.state_dict())
    for name, tensor in networks[0].items():
        assert torch.equal(tensor, networks[1][name])


def test_options_have_limits() -> None:
    with pytest.raises(ConfigError, match="lr"):
        MAMLOptions(lr=-1)
    with pytest.raises(ConfigError, match="dropout"):
        MAMLOptions(dropout=0.5)
    with pytest.raises(ConfigError, match="tied"):
        MAMLOptions(tied=True)
