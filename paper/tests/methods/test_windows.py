"""Training on windows: what is scored, and going on after an interruption."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from labelmem_paper.methods.dntm import DNTM, DNTMOptions
from labelmem_paper.methods.window_passes import UNSCORED, PlainPass
from labelmem_paper.methods.windows import fit_windows, window_losses
from torch import Tensor

from labelmem.errors import InputError, MismatchError, ModelError
from labelmem.models import FitOptions

OPTIONS = FitOptions(epochs=4, batch=2, window=3, lr=0.01)


def learner(dropout: float = 0.0) -> DNTM:
    return DNTM(4, DNTMOptions(dim=5, cells=3, content=2, address=2, dropout=dropout))


def losses(made: DNTM, of: list[Tensor], window: int) -> list[tuple[float, int]]:
    through = PlainPass(made, training=False)
    return [(float(a), b) for a, b in window_losses(made, of, window, through)]


def sequences(seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    lengths = (9, 7, 4, 4, 1)
    return [torch.randint(4, (length,), generator=generator) for length in lengths]


def test_windows_and_padding_do_not_change_the_loss() -> None:
    made, several = learner(), sequences()
    together = losses(made, several, window=3)
    alone = [loss for s in several for loss in losses(made, [s], window=100)]
    assert sum(n for _, n in together) == sum(n for _, n in alone) == 25
    assert sum(a for a, _ in together) == pytest.approx(sum(a for a, _ in alone), rel=1e-5)


@torch.no_grad()
def test_labels_that_are_not_known_are_not_scored() -> None:
    made = learner()
    spoiled = torch.tensor([1, UNSCORED, 2])
    ((total, count),) = losses(made, [spoiled], window=3)
    state = made.begin(1)
    tokens = torch.tensor([[made.start_token, 1, made.start_token]])
    expected, _ = made.window(tokens, spoiled[None], state)
    assert count == 2 and total == float(expected)
    assert losses(made, [torch.tensor([UNSCORED])], window=3) == []


def test_an_interrupted_training_ends_as_an_uninterrupted_one(tmp_path: Path) -> None:
    straight, killed = learner(dropout=0.3), learner(dropout=0.3)
    whole = fit_windows(straight, sequences(), sequences(1), OPTIONS)

    def interrupt(epoch: int, most: int, losses: object) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_windows(killed, sequences(), sequences(1), OPTIONS, tmp_path / "c", interrupt)
    again = learner(dropout=0.3)
    rest = fit_windows(again, sequences(), sequences(1), OPTIONS, tmp_path / "c")
    assert rest == whole and len(whole.history) == 4
    for a, b in zip(again.network.parameters(), straight.network.parameters(), strict=True):
        assert torch.equal(a, b)
    other = FitOptions(epochs=9)
    with pytest.raises(MismatchError):
        fit_windows(learner(), sequences(), sequences(1), other, tmp_path / "c")


def test_it_stops_when_validation_no_longer_improves() -> None:
    train, valid = [torch.zeros(9, dtype=torch.int64)], [torch.ones(9, dtype=torch.int64)]
    made = learner()
    done = fit_windows(made, train, valid, FitOptions(epochs=50, patience=2, lr=0.1, window=3))
    assert len(done.history) == done.best_epoch + 2 < 50
    ((total, count),) = losses(made, valid, window=9)
    assert total / count == pytest.approx(done.best["validation"], rel=1e-5)
    assert not made.network.training
    assert all(p.grad is None for p in made.network.parameters())


def test_what_cannot_be_trained_is_refused() -> None:
    empty = torch.zeros(0, dtype=torch.int64)
    with pytest.raises(InputError, match="0 sequences to train on"):
        fit_windows(learner(), [empty], sequences(), OPTIONS)
    unknown = [torch.full((3,), UNSCORED)]
    with pytest.raises(ModelError, match="over 0 labels"):
        fit_windows(learner(), sequences(), unknown, OPTIONS)
