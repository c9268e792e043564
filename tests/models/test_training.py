from __future__ import annotations

import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from labelmem import Adapter, MemoryConfig
from labelmem.errors import ConfigError, InputError, ModelError
from labelmem.models import (
    MLP,
    FitOptions,
    GRUModel,
    HistoryModel,
    LSTMModel,
    SequenceModel,
    batches,
    fit_classifier,
    fit_sequences,
)
from labelmem.models.batches import (
    batches_of_like_length,
    batches_of_tokens,
    first_sights,
    sequence_losses,
    split,
)

Step = tuple[int, int, dict[str, float]]


def seeded_mlp() -> MLP:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return MLP(features=2, labels=2, hidden=(8,), dim=4)


def seeded_gru(kind: type[SequenceModel] = GRUModel, **options: Any) -> SequenceModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return kind(labels=5, dim=12, **options)  # type: ignore[call-arg]


def two_clouds(n: int = 120) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % 2
    return torch.randn(n, 2, generator=generator) + 4 * y[:, None], y


def walks(count: int = 24) -> list[list[int]]:
    """Each label is the one before plus one, with an exception now and then."""
    rng, sequences = random.Random(0), []
    for _ in range(count):
        labels = [rng.randrange(5)]
        for _ in range(rng.randrange(1, 30)):
            labels.append((labels[-1] + 1) % 5 if rng.random() < 0.9 else rng.randrange(5))
        sequences.append(labels)
    return sequences


def weights(model: nn.Module) -> list[Tensor]:
    return [value.clone() for value in model.state_dict().values()]


def same(a: list[Tensor], b: list[Tensor]) -> bool:
    return all(map(torch.equal, a, b))


def slow_sequence_loss(
    model: SequenceModel, sequences: list[list[int]], new: bool = False, share: float = 0.0
) -> float:
    """Mean loss of all labels, or of the new ones and a share of others, step by step."""
    total, count = 0.0, 0.0
    with torch.no_grad():
        for sequence in sequences:
            state, token, seen = model.initial_state(1), model.start_token, set[int]()
            for label in sequence:
                logits, state = model(torch.tensor([token]), state)
                weight = share if new and label in seen else 1.0
                if new and label not in seen:
                    logits[0, sorted(seen)] = -math.inf
                total += weight * cross_entropy(logits, torch.tensor([label])).item()
                count, token = count + weight, label
                seen.add(label)
    return total / count


def mean_loss(
    model: SequenceModel, sequences: list[list[int]], options: FitOptions
) -> tuple[float, float]:
    """The same by the way that training goes, and the weights that it was made with."""
    tensors = [torch.tensor(labels) for labels in sequences]
    generator = torch.Generator().manual_seed(3)
    total, count = 0.0, 0.0
    for loss, weight in sequence_losses(model, tensors, options, generator):
        total, count = total + loss.item() * weight, count + weight
    return total / count, count


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


@pytest.mark.parametrize("window", [1, 4, 64])
@pytest.mark.parametrize("kind", [GRUModel, LSTMModel])
def test_padding_windows_and_batches_do_not_change_the_loss(
    kind: type[SequenceModel], window: int
) -> None:
    model = seeded_gru(kind).eval()
    loss, count = mean_loss(model, walks(), FitOptions(batch=5, window=window))
    assert count == sum(map(len, walks()))
    assert loss == pytest.approx(slow_sequence_loss(model, walks()), abs=1e-5)


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("window", [1, 4, 64])
@pytest.mark.parametrize("tokens", [None, 40])
@pytest.mark.parametrize("kind", [GRUModel, HistoryModel])
def test_new_labels_compete_with_new_labels_only(
    kind: type[SequenceModel], tokens: int | None, window: int, share: float
) -> None:
    model = seeded_gru(kind).eval()
    options = FitOptions(
        batch=5, batch_tokens=tokens, window=window, objective="new", repeat_share=share
    )
    loss, count = mean_loss(model, walks(), options)
    new = sum(len(set(labels)) for labels in walks())
    assert count == pytest.approx(new + share * (sum(map(len, walks())) - new))
    expected = slow_sequence_loss(model, walks(), new=True, share=share)
    assert loss == pytest.approx(expected, abs=1e-5)


def test_that_is_what_a_partition_asks_of_the_model() -> None:
    model, sequence = seeded_gru(HistoryModel).eval(), [3, 1, 3, 3, 0, 1, 4, 2]
    loss, count = mean_loss(model, [sequence], FitOptions(objective="new"))
    adapter = Adapter(model, memory=MemoryConfig(margin=99.0), combiner=0.5, partition=True)
    stream, token, mixed = adapter.stream(), model.start_token, 0.0
    for t, label in enumerate(sequence):
        surprise = -stream.predict(torch.tensor(token)).probs[label].log().item()
        if label not in sequence[:t]:
            # All but the first label, when memory is empty, also pay for theta.
            mixed += surprise - (math.log(2) if t else 0.0)
        stream.observe(label)
        token = label
    assert count == 5
    assert loss == pytest.approx(mixed / 5, abs=1e-5)


@pytest.mark.parametrize("objective", ["all", "new"])
def test_few_logits_at_a_time_change_nothing(
    objective: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = seeded_gru()
    sequences = [torch.tensor(labels) for labels in walks()]
    options = FitOptions(batch=8, window=6, objective=objective)

    def gradients() -> list[list[Tensor]]:
        return [
            list(torch.autograd.grad(loss, [model.head.weight, model.rnn.all_weights[0][0]]))
            for loss, _ in sequence_losses(model, sequences, options, None)
        ]

    whole = gradients()
    monkeypatch.setattr(batches, "_MOST_LOGITS", 7 * model.labels)
    sizes: list[int] = []
    model.head.register_forward_hook(lambda _, inputs, __: sizes.append(len(inputs[0])))
    parts = gradients()
    assert max(sizes) == 7 and len(sizes) > 2 * len(whole)
    for expected, seen in zip(whole, parts, strict=True):
        for a, b in zip(expected, seen, strict=True):
            torch.testing.assert_close(a, b)


def test_the_validation_loss_is_of_new_labels_only() -> None:
    model = seeded_gru(HistoryModel)
    options = FitOptions(epochs=3, objective="new", repeat_share=0.5)
    result = fit_sequences(model, walks(), options, validation=walks(5))
    expected = slow_sequence_loss(model, walks(5), new=True)
    assert result.best["validation"] == pytest.approx(expected, rel=1e-4)


def test_first_sights_of_random_rows() -> None:
    rows = torch.randint(0, 6, (9, 14), generator=torch.Generator().manual_seed(0))
    expected = [[y not in row[:t] for t, y in enumerate(row)] for row in rows.tolist()]
    assert first_sights(rows).tolist() == expected


def test_gradients_end_at_the_window() -> None:
    model = seeded_gru().eval()
    sequence = torch.tensor([0, 1, 2, 3, 4, 0])
    whole, parts = (
        [loss for loss, _ in sequence_losses(model, [sequence], FitOptions(window=window), None)]
        for window in (6, 3)
    )
    assert (len(whole), len(parts)) == (1, 2)
    (start,) = torch.autograd.grad(whole[0], model.embedding.start)
    assert start.abs().sum() > 0
    # The start was fed in the first window; the second must not reach back to it.
    (start,) = torch.autograd.grad(parts[1], model.embedding.start)
    assert start.abs().sum() == 0


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


def test_a_training_that_explodes_is_told_and_undone() -> None:
    X, y = two_clouds()
    X[7] = math.inf
    model = seeded_mlp()
    before = weights(model)
    with pytest.raises(ModelError, match="losses of epoch 1 are"):
        fit_classifier(model, X, y)
    assert same(weights(model), before)


def test_a_bias_that_does_not_decay_on_its_own_is_told() -> None:
    with pytest.raises(ConfigError, match=r"bias_decay is 0\.3.*GRUModel"):
        fit_sequences(seeded_gru(), walks(), FitOptions(bias_decay=0.3))


def test_frozen_parameters_stay() -> None:
    X, y = two_clouds()
    model = seeded_mlp()
    model.body.requires_grad_(False)
    body, head = weights(model.body), weights(model.head)
    fit_classifier(model, X, y, FitOptions(epochs=2, weight_decay=0.1))
    assert same(weights(model.body), body) and not same(weights(model.head), head)


def test_batches_hold_every_row_once_with_like_lengths_together() -> None:
    rng = random.Random(0)
    lengths = [rng.choice([1, 5, 50, 500]) for _ in range(403)]
    generator = torch.Generator().manual_seed(0)
    first, second = (batches_of_like_length(lengths, 4, generator) for _ in range(2))
    assert first != second
    for made in (first, second, batches_of_like_length(lengths, 4, None)):
        assert sorted(row for batch in made for row in batch) == list(range(403))
        assert all(len(batch) <= 4 for batch in made)
        sizes = [[lengths[row] for row in batch] for batch in made]
        assert all(sorted(batch, reverse=True) == batch for batch in sizes)
        padding = sum(max(batch) - size for batch in sizes for size in batch)
        assert padding < 0.2 * sum(lengths)


def test_batches_of_tokens_are_filled_but_not_over() -> None:
    rng = random.Random(0)
    lengths = [rng.randrange(1, 60) for _ in range(403)] + [5000]
    generator = torch.Generator().manual_seed(0)
    first, second = (batches_of_tokens(lengths, 300, generator) for _ in range(2))
    assert first != second
    for made in (first, second, batches_of_tokens(lengths, 300, None)):
        assert sorted(row for batch in made for row in batch) == list(range(404))
        sizes = [[lengths[row] for row in batch] for batch in made]
        assert all(sorted(batch, reverse=True) == batch for batch in sizes)
        assert [5000] in sizes
        assert all(batch[0] * len(batch) <= 300 for batch in sizes if batch != [5000])
        assert len(made) < 1.4 * sum(lengths[:-1]) / 300


@pytest.mark.parametrize(("count", "share"), [(10, 0.2), (10, 0.0), (2, 0.01), (1, 0.5), (3, 0.99)])
def test_splits_are_disjoint_and_leave_something_to_train_on(count: int, share: float) -> None:
    train, held = split(count, share, seed=0)
    assert sorted(train + held) == list(range(count)) and train
    assert bool(held) == (share > 0 and count > 1)
    assert split(100, 0.3, seed=0) == split(100, 0.3, seed=0) != split(100, 0.3, seed=1)


def test_sequences_may_be_tensors_arrays_or_empty() -> None:
    lists = walks(6)
    tensors = [torch.tensor(labels, dtype=torch.int32) for labels in lists]
    arrays: Any = [tensor.numpy() for tensor in tensors]
    arrays[0].flags.writeable = False
    seen = []
    for sequences in (lists, [*tensors, torch.zeros(0)], [[], *arrays]):
        model = seeded_gru()
        fit_sequences(model, sequences, FitOptions(epochs=1))
        seen.append(weights(model))
    assert same(seen[0], seen[1]) and same(seen[0], seen[2])


@pytest.mark.parametrize(
    "sequences",
    [[], [[]], [[0, 5]], [[-1]], [[0.5]], [[True]], [[[0, 1]]]],
    ids=str,
)
def test_bad_sequences_are_told(sequences: Any) -> None:
    model = seeded_gru()
    with pytest.raises(InputError, match="sequences holds"):
        fit_sequences(model, sequences)
    with pytest.raises(InputError, match="validation holds"):
        fit_sequences(model, walks(), validation=sequences)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (torch.zeros(3, 2), torch.zeros(2, dtype=torch.int64)),
        (torch.zeros(3, 2), torch.zeros(3)),
        (torch.zeros(3, 2), torch.zeros(3, 1, dtype=torch.int64)),
        (torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64)),
    ],
    ids=["lengths", "floats", "shape", "empty"],
)
def test_bad_examples_are_told(X: Tensor, y: Tensor) -> None:
    with pytest.raises(InputError, match="X has shape"):
        fit_classifier(seeded_mlp(), X, y)


@pytest.mark.parametrize(
    "options",
    [
        *({"epochs": 0}, {"batch": 0}, {"lr": 0.0}, {"lr": math.nan}, {"weight_decay": -1.0}),
        *({"clip": 0.0}, {"window": 0}, {"validation": 1.0}, {"patience": 0}),
        *({"bias_decay": -0.1}, {"batch_tokens": 0}, {"objective": "old"}),
        *({"repeat_share": -0.1, "objective": "new"}, {"repeat_share": 0.1}),
    ],
    ids=str,
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        FitOptions(**options)


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
