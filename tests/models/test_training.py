from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from models.training_toys import (
    same,
    seeded_gru,
    seeded_mlp,
    slow_sequence_loss,
    two_clouds,
    walks,
    weights,
)
from torch import Tensor
from torch.nn.functional import cross_entropy

from labelmem.errors import ModelError
from labelmem.models import (
    FitOptions,
    GRUModel,
    LSTMModel,
    SequenceModel,
    fit_classifier,
    fit_sequences,
)


def test_a_classifier_learns() -> None:
    X, y = two_clouds()
    model = seeded_mlp()
    result = fit_classifier(model, X, y, FitOptions(epochs=40, lr=0.01))
    assert float((model(X).argmax(1) == y).float().mean()) > 0.97
    assert result.best["validation"] == min(losses["validation"] for losses in result.history)
    assert not model.training


@pytest.mark.parametrize("kind", [GRUModel, LSTMModel])
def test_a_recurrent_model_learns(kind: type[SequenceModel]) -> None:
    model = seeded_gru(kind)
    result = fit_sequences(model, walks(), FitOptions(epochs=60, lr=0.02, patience=10, batch=8))
    assert result.history[0]["loss"] > 1.4
    assert slow_sequence_loss(model, walks()) < 0.9


def test_the_first_training_step_is_that_of_adam() -> None:
    X, y = two_clouds(8)
    model, twin = seeded_mlp(), seeded_mlp()
    options = FitOptions(epochs=1, batch=8, validation=0, clip=None, lr=0.01)
    fit_classifier(model, X, y, options)
    optimizer = torch.optim.Adam(twin.parameters(), lr=0.01)
    torch.autograd.backward(cross_entropy(twin(X), y))
    optimizer.step()
    for seen, expected in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(seen, expected)


def test_the_same_seed_gives_the_same_model_and_leaves_the_global_one_alone() -> None:
    def trained(seed: int) -> list[Tensor]:
        model = seeded_gru(dropout=0.3)
        fit_sequences(model, walks(), FitOptions(epochs=3, seed=seed))
        return weights(model)

    torch.manual_seed(11)
    before = torch.random.get_rng_state()
    first = trained(0)
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(12)
    assert same(first, trained(0))
    assert not same(first, trained(1))


def test_training_stops_early_with_the_best_weights() -> None:
    # Validation labels contradict the training labels, so learning soon makes matters worse.
    X, y = two_clouds()
    model, steps = seeded_mlp(), []

    def note(epoch: int, epochs: int, losses: Mapping[str, float]) -> None:
        steps.append((epoch, epochs, dict(losses)))
        snapshots.append(weights(model))

    snapshots: list[list[Tensor]] = []
    options = FitOptions(epochs=50, patience=4, lr=0.01)
    result = fit_classifier(model, X, y, options, validation=(X, 1 - y), progress=note)
    assert len(result.history) == result.best_epoch + 4 < 50
    assert same(weights(model), snapshots[result.best_epoch - 1])
    assert [step[:2] for step in steps] == [(e, 50) for e in range(1, len(steps) + 1)]
    assert tuple(step[2] for step in steps) == result.history
    judged = cross_entropy(model(X), 1 - y).item()
    assert judged == pytest.approx(result.best["validation"], rel=1e-5)


def test_without_validation_the_last_epoch_counts() -> None:
    X, y = two_clouds(20)
    result = fit_classifier(seeded_mlp(), X, y, FitOptions(epochs=7, validation=0))
    assert result.best_epoch == 7 and result.best.keys() == {"loss"}


def test_given_validation_sequences_are_not_trained_on() -> None:
    model = seeded_gru()
    held = [[0, 0, 0, 0]]
    result = fit_sequences(model, walks(), FitOptions(epochs=2), validation=held)
    assert result.best["validation"] == pytest.approx(slow_sequence_loss(model, held), rel=1e-4)


def test_an_interrupted_training_keeps_the_best_so_far() -> None:
    X, y = two_clouds()
    model = seeded_mlp()
    snapshots: list[list[Tensor]] = []

    def interrupt(epoch: int, _: int, __: Mapping[str, float]) -> None:
        snapshots.append(weights(model))
        if epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_classifier(model, X, y, FitOptions(lr=1e-3), progress=interrupt)
    assert same(weights(model), snapshots[2]) and not model.training


def test_an_interrupted_training_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    sequences = [[0, 1, 2, 1, 2] * 3, [2, 1, 0, 2], [1, 1, 2, 0, 0, 2]] * 4
    options = FitOptions(epochs=5, batch=4, lr=0.02, patience=5)

    def made() -> GRUModel:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return GRUModel(labels=3, dim=6, dropout=0.3)

    straight, interrupted = made(), made()
    whole = fit_sequences(straight, sequences, options)

    class KilledError(Exception):
        pass

    def die(epoch: int, most: int, losses: Mapping[str, float]) -> None:
        if epoch == 2:
            raise KilledError

    path = tmp_path / "checkpoint"
    with pytest.raises(KilledError):
        fit_sequences(interrupted, sequences, options, progress=die, checkpoint=path)
    resumed = made()
    again = fit_sequences(resumed, sequences, options, checkpoint=path)
    assert again == whole
    for name, value in straight.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value)


def test_a_training_that_explodes_is_told_and_undone() -> None:
    X, y = two_clouds()
    X[7] = math.inf
    model = seeded_mlp()
    before = weights(model)
    with pytest.raises(ModelError, match="losses of epoch 1 are"):
        fit_classifier(model, X, y)
    assert same(weights(model), before)


def test_frozen_parameters_stay() -> None:
    X, y = two_clouds()
    model = seeded_mlp()
    model.body.requires_grad_(False)
    body, head = weights(model.body), weights(model.head)
    fit_classifier(model, X, y, FitOptions(epochs=2, weight_decay=0.1))
    assert same(weights(model.body), body) and not same(weights(model.head), head)
