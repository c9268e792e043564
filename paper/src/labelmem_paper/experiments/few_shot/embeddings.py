"""Networks that turn pictures into vectors, each trained for the memory that will hold them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.config import MemoryConfig
from labelmem.errors import ConfigError
from labelmem.models import ConvNet
from labelmem_paper.experiments.few_shot.label_cells import LabelCells
from labelmem_paper.experiments.few_shot.prototypes import prototype_loss
from labelmem_paper.methods.kaiser_memory import KaiserMemory

__all__ = ["KINDS", "Embedding", "make_embedding", "through_cells"]


class Embedding(nn.Module, ABC):
    """A network from pictures to h, and a loss of a batch of labels with some showings each."""

    def __init__(self, network: ConvNet) -> None:
        super().__init__()
        self.body = network.body

    def forward(self, x: Tensor) -> Tensor:
        """The h (n, dim) of pictures (n, 1, s, s)."""
        h: Tensor = self.body(x)
        return h

    @abstractmethod
    def loss(self, h: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of h (labels, showings, dim) with labels y (labels,)."""


class Classifier(Embedding):
    """The network is trained as a plain classifier; its head is of no use later."""

    def __init__(self, network: ConvNet) -> None:
        super().__init__(network)
        self.head = network.head

    def loss(self, h: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """Cross-entropy."""
        logits = self.head(h.flatten(0, 1))
        return nn.functional.cross_entropy(logits, y.repeat_interleave(h.shape[1]))


class Labeled(Embedding):
    """Trained through the labeled memory, its cells included.

    Parameters
    ----------
    cells
        Places of a label.
    lam
        Sharpness of the kernel in training.
    """

    def __init__(self, network: ConvNet, cells: int = 2, lam: float = 20.0) -> None:
        super().__init__(network)
        self.config = MemoryConfig(lam=lam, delta=0.0, margin=math.inf, cells_per_label=cells)

    def loss(self, h: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """-log P of every showing but the first."""
        return through_cells(h, self.config)


class Kaiser(Embedding):
    """Trained by the triplets that Kaiser's memory finds, which is emptied before every batch."""

    def __init__(self, network: ConvNet, cells: int, margin: float = 0.1) -> None:
        super().__init__(network)
        dim = network.head.in_features
        self.projection = nn.Linear(dim, dim, bias=False)
        self.memory = KaiserMemory(cells, dim, margin)

    def forward(self, x: Tensor) -> Tensor:
        """The projected h."""
        q: Tensor = self.projection(self.body(x))
        return q

    def loss(self, h: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """The memory's loss, one showing of all labels after the other being read and written."""
        self.memory.reset()
        losses = []
        for number, showing in enumerate(h.unbind(dim=1)):
            if number:
                losses.append(self.memory.loss(showing, y))
            self.memory.write(showing.detach(), y, generator)
        return torch.stack(losses).mean()


class Prototypes(Embedding):
    """Trained for means of one, two or three showings."""

    def loss(self, h: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """-log P of the later showings."""
        shots = int(torch.randint(1, h.shape[1], (), generator=generator))
        return prototype_loss(h, shots)


KINDS: Mapping[str, type[Embedding]] = {
    "classifier": Classifier,
    "labeled": Labeled,
    "kaiser": Kaiser,
    "prototypes": Prototypes,
}


def make_embedding(kind: str, network: ConvNet, **options: Any) -> Embedding:
    """An untrained embedding of a kind.

    With torch's usual weights all drawings, mostly paper, come out as nearly the same vector, and
    from there triplets collapse. Without biases, and with weights that keep the size of what
    passes, they differ from the start.
    """
    if kind not in KINDS:
        raise ConfigError(f"the embedding is {kind!r}; known are {sorted(KINDS)}")
    for layer in network.body:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
    return KINDS[kind](network, **options)


def through_cells(h: Tensor, config: MemoryConfig) -> Tensor:
    """Mean -log s(y) of h (labels, showings, dim), every label written after every showing.

    All labels are read, then all are written: within a showing they do not see each other's writes,
    as they would one after another. Gradients flow through what is stored.
    """
    labels, showings, _ = h.shape
    y = torch.arange(labels, device=h.device)
    cells = LabelCells.empty(labels, config.cells_per_label or 1, config, h)
    cells = cells.written(h[:, 0], torch.ones_like(y, dtype=torch.bool))
    losses = []
    for showing in range(1, showings):
        scores = cells.scores(h[:, showing])
        losses.append(nn.functional.cross_entropy(scores, y))
        cells = cells.written(h[:, showing], scores.argmax(dim=1) != y)
    return torch.stack(losses).mean()
