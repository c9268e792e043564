"""The pointer sentinel mixture against slow loops, and what keeps its training alive."""

from __future__ import annotations

import math

import pytest
import torch
from labelmem_paper.experiments.language.stories import made_up
from labelmem_paper.methods.fit_text import TextOptions, fit_text, side_by_side
from labelmem_paper.methods.pointer_lstm import GATE, PointerLSTM
from labelmem_paper.methods.text_lstm import TextLSTM
from toys import filled

from labelmem.errors import ConfigError

WORDS, DIM = 9, 5


def text(length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(WORDS, (length,), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("scale", [None, 1.7])
@pytest.mark.parametrize("window", [1, 3, 20])
def test_the_pointer_by_loops(window: int, scale: float | None) -> None:
    model = filled(PointerLSTM(WORDS, window=window, dim=DIM, scale=scale), 3).eval()
    model.requires_grad_(False)
    factor = 1 / math.sqrt(math.sqrt(DIM)) if scale is None else scale
    words = text(24, 2)
    x, y = side_by_side(words, 1, 0)
    h, _ = model.forward_sequence(x)
    expected = []
    for t in range(24):
        query = torch.tanh(model.query.weight @ h[0, t] + model.query.bias)
        places = range(max(0, t - window + 1), t + 1)
        scores = [factor * float(query @ h[0, i]) for i in places]
        scores.append(factor * float(query @ model.sentinel) + float(model.sentinel_bias))
        total = sum(math.exp(score) for score in scores)
        p = math.exp(scores[-1]) / total * float(torch.softmax(model.head(h[0, t]), 0)[y[0, t]])
        for i, score in zip(places, scores, strict=False):
            p += math.exp(score) / total * float(x[0, i] == y[0, t])
        expected.append(-math.log(p))
    carried, past, found, mixed = None, None, [], []
    for part in (slice(0, 7), slice(7, 9), slice(9, 24)):  # the window reaches into parts before
        loss, carried = model.passage_loss(x[:, part], y[:, part], carried, half=False)
        found.append(float(loss) * y[:, part].numel())
        gate, weights, seen, past = model.point(x[:, part], h[:, part], past)
        r = torch.softmax(model.head(h[:, part]), 2).gather(2, y[:, part, None])[..., 0]
        mixed.append(gate * r + (weights * (seen == y[:, part, None])).sum(2))
    assert sum(found) == pytest.approx(sum(expected), rel=1e-5)
    torch.testing.assert_close(-torch.cat(mixed, 1).log()[0], torch.tensor(expected))


def test_states_are_compared_before_h_is_thinned() -> None:
    model = filled(PointerLSTM(WORDS, window=20, dim=DIM, dropout=0.5, input_dropout=0.0), 1)
    model.requires_grad_(False)
    x = torch.arange(WORDS).repeat(2, 2)
    y = (x + 1) % WORDS
    _, carried = model.eval().passage_loss(x, y, None, half=False)  # all words are in the window

    def loss(training: bool) -> torch.Tensor:
        torch.manual_seed(0)
        return model.train(training).passage_loss(x, y, carried, half=False)[0]  # type: ignore[no-any-return]

    assert not torch.allclose(loss(True), loss(False))  # the output layer sees a thinned h
    model.sentinel_bias.fill_(-100.0)  # nothing but the pointer
    torch.testing.assert_close(loss(True), loss(False))


def test_the_output_layer_begins_with_most_of_the_weight() -> None:
    torch.manual_seed(0)
    model = PointerLSTM(WORDS, window=10, dim=64).eval()
    x = text(60).view(2, 30)
    gate, *_ = model.point(x, model.forward_sequence(x)[0], None)
    torch.testing.assert_close(gate[:, 10:], torch.full((2, 20), GATE), atol=0.02, rtol=0.0)


@pytest.mark.parametrize("bias", [-200.0, 200.0])
def test_nothing_is_rounded_away_however_sure_the_sentinel_is(bias: float) -> None:
    model = filled(PointerLSTM(WORDS, window=3, dim=DIM, dropout=0.0), 1).train()
    with torch.no_grad():
        model.sentinel_bias.fill_(bias)
    x, y = torch.tensor([[1, 2, 3, 1]]), torch.tensor([[2, 3, 1, 5]])
    loss, _ = model.passage_loss(x, y, None, half=False)
    slopes = torch.autograd.grad(loss, list(model.parameters()))
    assert all(bool(one.isfinite().all()) for one in slopes)
    # Words out of the window are the output layer's alone, even by exp(-200) of the weight.
    assert 0 < float(loss.detach()) < 10 if bias > 0 else 100 < float(loss.detach()) < 210


def test_scales_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"scale is 0\.0; it must be above 0"):
        PointerLSTM(WORDS, dim=DIM, scale=0.0)


def test_a_pointer_learns_to_copy() -> None:
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)

    # Pairs of the same word: after the first of a pair, the second is certain.
    def pairs(many: int) -> torch.Tensor:
        return torch.randint(WORDS, (many,), generator=generator).repeat_interleave(2)

    model = PointerLSTM(WORDS, window=4, dim=12, dropout=0.0)
    options = TextOptions(epochs=8, batch=4, bptt=20, lr=0.05)
    losses = fit_text(model, pairs(800), pairs(100), options, 0)
    assert min(losses) < 0.8 * math.log(WORDS)


def test_a_pointer_helps_at_the_step_sizes_of_texts() -> None:
    stories = made_up(length=6000)
    train, valid = torch.from_numpy(stories.train), torch.from_numpy(stories.valid)
    options = TextOptions(
        epochs=2, batch=8, bptt=15, optimiser="sgd", lr=20.0, clip=0.25, average=0.9
    )

    def best(kind: type[TextLSTM]) -> float:
        torch.manual_seed(0)
        model = kind(stories.labels, dim=64, dropout=0.5, locked=False)
        return min(fit_text(model, train, valid, options, 0))

    assert best(PointerLSTM) < best(TextLSTM) - 0.1
