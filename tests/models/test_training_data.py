"""What is trained on: how it is split and put into batches, and what is refused."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch
from models.training_toys import same, seeded_gru, seeded_mlp, walks, weights
from torch import Tensor

from labelmem.errors import ConfigError, InputError
from labelmem.models import FitOptions, fit_classifier, fit_sequences
from labelmem.models.batches import batches_of_like_length, batches_of_tokens, split


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


def test_a_bias_that_does_not_decay_on_its_own_is_told() -> None:
    with pytest.raises(ConfigError, match=r"bias_decay is 0\.3.*GRUModel"):
        fit_sequences(seeded_gru(), walks(), FitOptions(bias_decay=0.3))
