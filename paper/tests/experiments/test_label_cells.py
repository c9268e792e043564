"""The table of cells against the labeled memory itself, step by step."""

from __future__ import annotations

import math

import pytest
import torch
from labelmem_paper.experiments.few_shot.embeddings import through_cells
from labelmem_paper.experiments.few_shot.label_cells import LabelCells
from labelmem_paper.experiments.few_shot.replay import replay
from torch import Tensor, nn

from labelmem import Adapter, MemoryConfig

CONFIGS = [
    MemoryConfig(lam=lam, delta=delta, margin=margin, cells_per_label=cells, decay=0.9)
    for cells, lam, delta, margin in [
        (1, 5.0, 1.0, math.inf),
        (1, 10.0, 0.0, 1.0),
        (2, 5.0, 0.5, 3.0),
        (2, 20.0, 0.0, math.inf),
        (3, 10.0, 1.0, 0.0),
        (5, 3.0, 0.3, -0.5),
    ]
]


def shown(seed: int, steps: int, labels: int, dim: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(labels, (steps,), generator=generator)
    centres = torch.randn(labels, dim, generator=generator)
    return centres[y] + 0.8 * torch.randn(steps, dim, generator=generator), y


def slow(h: Tensor, y: Tensor, config: MemoryConfig, labels: int) -> tuple[list[int], LabelCells]:
    """The answers of a table of cells that is written one label at a time."""
    cells, answers = LabelCells.empty(labels, config.cells_per_label or 1, config, h), []
    for x, label in zip(h, y.tolist(), strict=True):
        scores, own = cells.scores(x[None])[0], torch.arange(labels) == label
        answers.append(int(scores.argmax()) if bool(cells.count.any()) else -1)
        lead = float(scores[label] - scores[~own].amax())
        if cells.count[label] == 0 or config.margin - lead > 0:
            after = cells.written(x.expand(labels, -1), torch.tensor(lead < 0))
            cells = LabelCells(
                torch.where(own[:, None, None], after.v, cells.v),
                torch.where(own[:, None], after.alpha, cells.alpha),
                torch.where(own, after.count, cells.count),
                config,
            )
    return answers, cells


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_the_memory_answers_as_the_table_does(config: MemoryConfig) -> None:
    h, y = shown(0, 300, labels=12)
    assert replay(config, h, y, 12).tolist() == slow(h, y, config, 12)[0]


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_scores_are_those_of_the_memory(config: MemoryConfig) -> None:
    h, y = shown(1, 60, labels=6)
    stream = Adapter(nn.Identity(), labels=(), memory=config).stream()
    for x, label in zip(h, y.tolist(), strict=True):
        stream.predict(x)
        stream.observe(label)
    p, (_, cells) = stream.predict(h[0]), slow(h, y, config, 6)
    found = torch.softmax(cells.scores(h[:1]), dim=1)[0]
    torch.testing.assert_close(found[torch.tensor(p.labels)], p.probs, rtol=1e-4, atol=1e-6)


def test_training_reaches_what_was_stored() -> None:
    config = MemoryConfig(lam=10.0, delta=0.0, margin=math.inf, cells_per_label=2)
    h = torch.randn(5, 4, 3, generator=torch.Generator().manual_seed(2)).requires_grad_()
    loss = through_cells(h, config)
    loss.backward()
    assert h.grad is not None and bool((h.grad[:, :3].abs().sum(dim=(0, 2)) > 0).all())
    assert bool(torch.isfinite(h.grad).all())


def test_the_loss_of_one_showing_is_a_softmax_of_cosines() -> None:
    config = MemoryConfig(lam=7.0, delta=0.0, margin=math.inf, cells_per_label=3)
    h = torch.randn(6, 2, 3, generator=torch.Generator().manual_seed(3))
    expected = 0.0
    for i in range(6):
        cos = [float(torch.cosine_similarity(h[i, 1], h[j, 0], dim=0)) for j in range(6)]
        total = sum(math.exp(7 * c) for c in cos)
        expected -= math.log(math.exp(7 * cos[i]) / total) / 6
    assert float(through_cells(h, config)) == pytest.approx(expected, rel=1e-5)
