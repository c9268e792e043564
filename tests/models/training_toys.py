"""Small models and data to train them on, and the loss of a sequence by a slow loop."""

from __future__ import annotations

import math
import random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from labelmem.models import MLP, FitOptions, GRUModel, SequenceModel
from labelmem.models.batches import sequence_losses


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
