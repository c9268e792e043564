"""Small networks that are trained in the ordinary way and then frozen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from labelmem.models.feed_forward import FeedForward
from labelmem_paper.datasets.cache import remember
from labelmem_paper.datasets.layout import Arrays
from labelmem_paper.experiments.adapt.dealing import Deal
from labelmem_paper.experiments.adapt.frozen import FrozenTask

__all__ = ["network_task"]


def network_task(
    name: str,
    x: Tensor,
    dealt: Deal,
    seed: int,
    make: Callable[[], FeedForward],
    train: Callable[[FeedForward, Tensor, Tensor], object],
    kept: Path,
) -> FrozenTask:
    """Train a network on what is taught of the inputs x (n, ...); the rest is shown to its head.

    Parameters
    ----------
    make
        Gives the untrained network; its weights depend on the seed alone.
    train
        Called with the network, the inputs and their labels.
    kept
        The file that keeps what comes out.
    """

    def trained() -> Arrays:
        taught, shown = x[torch.from_numpy(dealt.taught)], x[torch.from_numpy(dealt.shown)]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = make()
        train(network, taught, dealt.train_y)
        network.eval().requires_grad_(False)
        return {
            "weight": network.head.weight.numpy(),
            "bias": network.head.bias.numpy(),
            "taught": _features(network, taught).numpy(),
            "shown": _features(network, shown).numpy(),
        }

    found = {key: torch.from_numpy(array) for key, array in remember(kept, trained).items()}
    head = found["weight"], found["bias"]
    return dealt.task(name, head, found["taught"], found["shown"], seed)


@torch.no_grad()
def _features(network: FeedForward, x: Tensor, batch: int = 500) -> Tensor:
    return torch.cat([network.embed(part) for part in torch.split(x, batch)])
