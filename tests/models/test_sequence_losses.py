from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from models.training_toys import mean_loss, seeded_gru, slow_sequence_loss, walks
from torch import Tensor

from labelmem import Adapter, MemoryConfig
from labelmem.models import (
    FitOptions,
    GRUModel,
    HistoryModel,
    LSTMModel,
    SequenceModel,
    batches,
    fit_sequences,
)
from labelmem.models.batches import first_sights, sequence_losses


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
