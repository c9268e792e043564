"""Rei's vector: its steps against torch's own optimiser, and a bias of the sequence's own."""

from __future__ import annotations

import pytest
import torch
from labelmem_paper.methods.rei import Rei, ReiOptions
from labelmem_paper.methods.window_passes import PlainPass
from labelmem_paper.methods.windows import window_losses
from torch import Tensor, nn

from labelmem.errors import ConfigError
from labelmem.evaluation import evaluate

LABELS = 8


def halves(n: int, steps: int, seed: int) -> list[tuple[None, Tensor]]:
    """Each sequence draws from one half of the labels, every label of it alike."""
    generator = torch.Generator().manual_seed(seed)
    half = torch.randint(2, (n, 1), generator=generator)
    drawn = torch.randint(LABELS // 2, (n, steps), generator=generator)
    return [(None, row) for row in 4 * half + drawn]


def oracle(method: Rei, ys: list[int]) -> list[Tensor]:
    net, o = method.network, method.options
    h, c, _ = net.initial_state(1)
    v = torch.zeros(1, o.vector, requires_grad=True)
    optimiser = torch.optim.SGD([v], lr=o.lr)
    last, answers = method.start_token, []
    for y in ys:
        logits, (h2, c2, _) = net(torch.tensor([last]), (h, c, v))
        answers.append(torch.softmax(logits, 1)[0].detach())
        optimiser.zero_grad()
        nn.functional.cross_entropy(logits, torch.tensor([y])).backward()
        before = v.detach().clone()
        optimiser.step()
        v.data -= o.decay * before
        h, c, last = h2.detach(), c2.detach(), y
    return answers


@pytest.mark.parametrize("options", [{"lr": 0.5}, {"lr": 2.0, "decay": 0.1}])
def test_it_is_torchs_own_step(options: dict[str, float]) -> None:
    method = Rei(LABELS, ReiOptions(dim=6, vector=4, **options))  # type: ignore[arg-type]
    ys = [3, 3, 1, 7, 3, 0]
    stream, expected = method.stream(), oracle(method, ys)
    for y, wanted in zip(ys, expected, strict=True):
        torch.testing.assert_close(stream.predict(None).probs, wanted)
        stream.observe(y)
    assert all(p.requires_grad for p in method.network.parameters())


def trained(lr: float) -> Rei:
    # The LSTM is kept to one number, so that what the sequence is about has one place to be.
    method = Rei(LABELS, ReiOptions(dim=1, vector=4, lr=lr))
    method.fit(halves(200, 16, 0), validation=halves(40, 16, 1), epochs=8, lr=0.02)
    return method


def test_it_learns_which_half_a_sequence_draws_from() -> None:
    method, test = trained(lr=1.0), halves(100, 30, 2)

    def late(of: Rei) -> float:
        """Nats per label after the first ten."""
        kept: list[Tensor] = []
        evaluate(of, test, 100, lambda w: kept.append(-w.probs.gather(1, w.y[:, None]).log()))
        return float(torch.stack(kept[10:]).mean())

    moving, still = late(method), late(method.variant(lr=0.0))
    assert moving < 1.5  # log 4 = 1.39 where the half is known
    assert still > 2.0  # log 8 = 2.08 where nothing is


def test_training_sees_what_will_be_met_online() -> None:
    method = Rei(LABELS, ReiOptions(dim=6, vector=4, lr=0.5, decay=0.05))
    sequences = halves(3, 9, 0)
    online = evaluate(method, sequences).metrics.running
    labels = [y for _, y in sequences]
    windows = list(window_losses(method, labels, 4, PlainPass(method, training=False)))
    assert sum(float(a) for a, _ in windows) / 27 == pytest.approx(online, rel=1e-5)


def test_an_unknown_label_teaches_nothing() -> None:
    stream, vectors = Rei(LABELS, ReiOptions(dim=6, vector=4, lr=0.5, decay=0.1)).stream(), []
    for y in (3, "elsewhere", 3):
        stream.predict(None)
        stream.observe(y)
        vectors.append(stream.tensors()["model.2"])
    assert vectors[0].any() and torch.equal(vectors[0], vectors[1])
    assert not torch.equal(vectors[1], vectors[2])
    assert stream.predict(None).probs[-1] == 0


def test_training_is_repeatable() -> None:
    first, second = (trained_once() for _ in range(2))
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name])


def trained_once() -> dict[str, Tensor]:
    method = Rei(LABELS, ReiOptions(dim=4, dropout=0.2))
    method.fit(halves(20, 6, 0), epochs=2)
    return method.network.state_dict()


def test_what_made_the_network_stays() -> None:
    method = Rei(LABELS, ReiOptions(dim=4))
    assert method.variant(lr=0.5, dim=4).network is method.network
    with pytest.raises(ConfigError, match="dim is 4 in this rei"):
        method.variant(dim=8)
    for wrong in ({"lr": -1.0}, {"decay": 1.0}, {"vector": 0}, {"dim": 0}, {"dropout": 1.0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            ReiOptions(**wrong)  # type: ignore[arg-type]
