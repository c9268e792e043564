"""A small frozen classifier with every form of stream, made without training."""

from __future__ import annotations

import torch
from labelmem_paper.experiments.adapt.dealing import deal
from labelmem_paper.experiments.adapt.frozen import FrozenTask

LABELS, KNOWN, DIM, EACH = 9, 6, 5, 20


def toy_task(seed: int = 0) -> FrozenTask:
    """Clusters that overlap a little; the head is that of their centres."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(LABELS * EACH) % LABELS
    centres = 2 * torch.randn(LABELS, DIM, generator=generator)
    h = centres[y] + 0.7 * torch.randn(len(y), DIM, generator=generator)
    dealt = deal(y.numpy(), KNOWN, seed)
    taught = torch.from_numpy(dealt.taught)
    means = torch.stack([h[taught][dealt.train_y == label].mean(0) for label in range(KNOWN)])
    head = means, -means.square().sum(dim=1) / 2
    return dealt.task("toy", head, h[taught], h[torch.from_numpy(dealt.shown)], seed)
