"""Language models and their training, against slow loops and hand-made steps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

import pytest
import torch
from labelmem_paper.methods.fit_text import TextOptions, fit_text, side_by_side, text_loss
from labelmem_paper.methods.pointer_lstm import PointerLSTM
from labelmem_paper.methods.text_lstm import TextLSTM
from toys import filled

from labelmem.errors import ConfigError, DataError

WORDS, DIM = 9, 5


def text(length: int, seed: int = 0) -> torch.Tensor:
    """Every word is followed by the next one, now and then by any."""
    generator = torch.Generator().manual_seed(seed)
    words = [0]
    for _ in range(length - 1):
        any_word = int(torch.randint(WORDS, (), generator=generator))
        jump = float(torch.rand((), generator=generator)) < 0.2
        words.append(any_word if jump else (words[-1] + 1) % WORDS)
    return torch.tensor(words)


@pytest.mark.parametrize("layers", [1, 2])
def test_training_without_dropout_is_the_fused_model(layers: int) -> None:
    model = filled(TextLSTM(WORDS, DIM, layers, dropout=0.0), 1)
    x = text(12).view(2, 6)
    state = tuple(torch.randn(2, layers, DIM) for _ in range(2))
    slow, slow_state = model.train().forward_sequence(x, state)
    fast, fast_state = model.eval().forward_sequence(x, state)
    torch.testing.assert_close(slow, fast)
    torch.testing.assert_close(slow_state, fast_state)


def test_what_is_dropped_is_locked_over_a_passage() -> None:
    model = filled(TextLSTM(WORDS, 40, dropout=0.5, input_dropout=0.0), 1).train()
    h, _ = model.forward_sequence(text(20).view(2, 10))
    dropped = h == 0
    assert bool((dropped == dropped[:, :1]).all()) and 0 < int(dropped[:, 0].sum()) < 80
    model = filled(TextLSTM(WORDS, 40, dropout=0.0, word_drop=0.5), 1).train()
    vectors: list[torch.Tensor] = []
    model.embedding.register_forward_hook(lambda *given: vectors.append(given[2]))
    h, _ = model.forward_sequence(torch.arange(WORDS).repeat(1, 2))
    (slope,) = torch.autograd.grad(h.sum(), vectors)
    gone = (slope == 0).all(dim=2)[0]  # what is not looked at makes no difference
    assert torch.equal(gone[:WORDS], gone[WORDS:]) and 0 < int(gone.sum()) < 2 * WORDS


def test_masks_can_change_from_word_to_word() -> None:
    model = filled(TextLSTM(WORDS, 40, dropout=0.5, input_dropout=0.0, locked=False), 1).train()
    h, _ = model.forward_sequence(text(400).view(2, 200))
    share = (h == 0).float().mean(dim=1)  # of each value over time: about a half, never all
    assert 0.3 < float(share.min()) and float(share.max()) < 0.7
    sure, _ = model.eval().forward_sequence(text(400).view(2, 200))
    kept = h != 0
    torch.testing.assert_close(h[kept], 2 * sure[kept])


def test_recurrent_weights_are_thinned_in_training_only() -> None:
    model = filled(TextLSTM(WORDS, DIM, dropout=0.0, weight_drop=0.5), 1)
    x = text(12).view(2, 6)
    runs = [model.train().forward_sequence(x)[0] for _ in range(2)]
    assert not torch.allclose(runs[0], runs[1])
    torch.testing.assert_close(runs[0][:, 0], runs[1][:, 0])  # the first state is 0
    sure = [model.eval().forward_sequence(x)[0] for _ in range(2)]
    assert torch.equal(sure[0], sure[1])


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="must lie in"):
        TextLSTM(WORDS, DIM, weight_drop=1.0)
    for wrong, message in (({"bptt": 0}, "bptt is 0"), ({"lr": 0.0}, "lr is 0"),
                           ({"average": 1.0}, "average is 1"),
                           ({"optimiser": "newton"}, "optimiser is 'newton'")):  # fmt: skip
        with pytest.raises(ConfigError, match=message):
            TextOptions(**wrong)
    with pytest.raises(DataError, match="3 words cannot be cut into 4"):
        side_by_side(text(3), 4, 0)


@pytest.mark.parametrize(("optimiser", "lr"), [("adam", 0.02), ("sgd", 20.0)])
def test_a_model_learns_what_follows_what(optimiser: Literal["adam", "sgd"], lr: float) -> None:
    torch.manual_seed(0)
    model = TextLSTM(WORDS, 16, dropout=0.0)
    options = TextOptions(
        epochs=4, batch=4, bptt=10, optimiser=optimiser, lr=lr, clip=0.25, average=0.9
    )
    losses = fit_text(model, text(1500), text(300, 1), options, opening=0)
    assert min(losses) < 0.7 * math.log(WORDS)
    assert text_loss(model, text(300, 1), 0) == pytest.approx(min(losses))


def test_a_step_along_the_gradient_by_hand() -> None:
    model = filled(TextLSTM(WORDS, DIM, dropout=0.0), 1)
    slow = filled(TextLSTM(WORDS, DIM, dropout=0.0), 1)
    words = text(4)
    options = TextOptions(
        epochs=1, batch=1, bptt=4, optimiser="sgd", lr=3.0, clip=1e-2, warm=0.0, weight_decay=0.0
    )
    fit_text(model, words, words, options, 0)
    # The first cut is drawn; the step size follows the length of a passage.
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first = 1 + int(torch.randint(4, ()))
    x, y = side_by_side(words, 1, 0)
    carried, start, number = None, 0, 0
    lengths = [first, 4] if first < 4 else [4]
    for length in lengths:
        part = slice(start, min(start + length, 4))
        loss, carried = slow.train().passage_loss(x[:, part], y[:, part], carried, half=False)
        slopes = torch.autograd.grad(loss, list(slow.parameters()))
        norm = torch.stack([one.norm() for one in slopes]).norm()
        rate = 0.01 + 0.99 * (1 + math.cos(math.pi * number / len(lengths))) / 2
        size = 3.0 * rate * (part.stop - part.start) / 4
        with torch.no_grad():
            for weight, slope in zip(slow.parameters(), slopes, strict=True):
                weight -= size * slope * min(1.0, 1e-2 / float(norm))
        start, number = part.stop, number + 1
    for one, other in zip(model.parameters(), slow.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_the_loss_of_a_text_by_single_steps() -> None:
    model, words = filled(TextLSTM(WORDS, DIM), 2).eval(), text(41)
    state, before, total = model.initial_state(1), 0, 0.0
    with torch.no_grad():
        for word in words.tolist():
            logits, state = model(torch.tensor([before]), state)
            total -= float(torch.log_softmax(logits, 1)[0, word])
            before = word
    assert text_loss(model, words, 0, streams=1) == pytest.approx(total / 41, rel=1e-5)


@pytest.mark.parametrize("kind", [TextLSTM, PointerLSTM])
def test_a_killed_training_goes_on(
    kind: type[TextLSTM], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimiser: Literal["adam", "sgd"] = "sgd" if kind is PointerLSTM else "adam"
    options = TextOptions(epochs=3, batch=4, bptt=10, optimiser=optimiser, lr=0.02, average=0.9)

    def new() -> TextLSTM:
        return filled(kind(WORDS, dim=DIM, dropout=0.3), 1)  # type: ignore[no-any-return]

    whole = new()
    fit_text(whole, text(200), text(50, 1), options, 0)

    def kill(epoch: int, loss: float) -> None:
        if epoch == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_text(new(), text(200), text(50, 1), options, 0, tmp_path / "half", kill)
    late = new()
    fit_text(late, text(200), text(50, 1), options, 0, tmp_path / "half")
    for one, other in zip(whole.parameters(), late.parameters(), strict=True):
        torch.testing.assert_close(one, other)
