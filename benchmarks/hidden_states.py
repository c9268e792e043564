"""Real hidden states to fill a large memory with, and the exact answers over all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from labelmem_paper.datasets import Text, load
from torch import nn

from labelmem.models import GRUModel

DIM, TRAINED_ON = 128, 500_000
BATCH, LENGTH = 32, 25


@dataclass(frozen=True)
class States:
    """Hidden states (k, d), the words that came next, and the model's belief for some of them."""

    h: np.ndarray
    y: np.ndarray
    head: nn.Module

    def belief(self, at: int) -> np.ndarray:
        with torch.no_grad():
            return torch.softmax(self.head(torch.from_numpy(self.h[at])), dim=0).numpy()


def hidden_states(steps: int) -> States:
    """Train for so many batches, then run over what was not trained on."""
    torch.manual_seed(0)
    text = load("text8")
    assert isinstance(text, Text)
    tokens = torch.from_numpy(text.train)
    model = GRUModel(text.labels, dim=DIM, tied=True)
    optimiser = torch.optim.Adam(model.parameters(), lr=4e-3)
    rows = tokens[: TRAINED_ON // BATCH * BATCH].view(BATCH, -1)
    state = None
    for step in range(steps):
        first = step * LENGTH % (rows.shape[1] - LENGTH - 1)
        h, state = model.forward_sequence(rows[:, first : first + LENGTH], state)
        state = state.detach()
        logits = model.head(h).flatten(0, 1)
        loss = nn.functional.cross_entropy(
            logits, rows[:, first + 1 : first + LENGTH + 1].flatten()
        )
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    made, state, rest = [], None, tokens[TRAINED_ON:]
    with torch.no_grad():
        for part in rest[:-1].split(50_000):
            h, state = model.eval().forward_sequence(part[None], state)
            made.append(h[0])
    return States(torch.cat(made).numpy(), rest[1:].numpy(), model.head)


def tensors_of(v: np.ndarray, label: np.ndarray) -> dict[str, torch.Tensor]:
    """A memory of these cells, each as if just written."""
    cells = len(v)
    _, first, number = np.unique(label, return_index=True, return_inverse=True)
    times = torch.arange(1, cells + 1, dtype=torch.int32)[None]
    return {
        "v": torch.from_numpy(v)[None],
        "alpha": torch.ones(1, cells),
        "label": torch.from_numpy(label)[None],
        "group": torch.from_numpy(first[number])[None],
        "written": times,
        "born": times,
        "writes": torch.ones(1, cells, dtype=torch.int32),
        "rates": torch.zeros(1, cells, 0),
        "used": torch.tensor([cells]),
        "time": torch.tensor([cells], dtype=torch.int32),
    }


class Exact:
    """Eq. 2 and 3 over all cells, sorted by label so that hundreds of questions take a minute."""

    def __init__(self, v: np.ndarray, label: np.ndarray) -> None:
        order = np.argsort(label, kind="stable")
        self.v, names = torch.from_numpy(v[order]), torch.from_numpy(label[order])
        self.length = self.v.norm(dim=1)
        self.names, self.number, count = names.unique_consecutive(
            return_inverse=True, return_counts=True
        )
        self.first = count.cumsum(0) - count

    def scores(self, h: np.ndarray, lam: float, width: int) -> np.ndarray:
        question = nn.functional.normalize(torch.from_numpy(h), dim=0)
        x = lam * (self.v @ question) / self.length
        if len(self.names) < len(x):
            top = x.new_full((len(self.names),), -torch.inf)
            top = top.scatter_reduce(0, self.number, x, "amax")
            w = torch.exp(x - top[self.number])  # the sum in Eq. 2 changes no direction of M
            places = torch.arange(len(w))
            M = nn.functional.embedding_bag(
                places, self.v, self.first, mode="sum", per_sample_weights=w
            )
            x = lam * (M @ question) / M.norm(dim=1)
        s = torch.zeros(width)
        s[self.names] = torch.softmax(x, dim=0)
        return s.numpy()
