"""Training a network on pictures: by steps, the rate rising and falling, pictures bent a little."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.checkpoint import Checkpoint
from labelmem.config import check_limits
from labelmem.errors import ConfigError, ModelError
from labelmem.progress import progress_bar

__all__ = ["PictureOptions", "bent", "fit_steps"]

_WARM = 0.2  # the share of the steps in which the rate rises


@dataclass(frozen=True)
class PictureOptions:
    """How a network of pictures is trained.

    Examples
    --------
    >>> PictureOptions(steps=0)
    Traceback (most recent call last):
    labelmem.errors.ConfigError: steps is 0; it must be at least 1
    """

    steps: int = 600
    """Updates."""
    batch: int = 32
    """Pictures, or characters where each brings several, in one update."""
    lr: float = 1e-3
    """The largest step size of Adam."""
    weight_decay: float = 0.0
    """Pull of the weights towards 0 (AdamW)."""
    bend: float = 0.0
    """How far pictures are turned, sheared, scaled and moved at random; 0 not at all, 1 a lot."""
    half: bool = False
    """Whether to compute in 16 bits (bfloat16) where that is safe, which is often faster."""
    clip: float = 1.0
    """The largest norm of a gradient."""

    def __post_init__(self) -> None:
        check_limits(self, ("steps", "batch"))
        if not self.lr > 0 or not self.clip > 0:
            raise ConfigError(f"lr is {self.lr}, clip is {self.clip}; both must be above 0")
        if not 0 <= self.bend <= 1 or not self.weight_decay >= 0:
            raise ConfigError(
                f"bend is {self.bend}, weight_decay is {self.weight_decay}; expected a share in "
                "[0, 1] and a number from 0"
            )


def bent(x: Tensor, amount: float, generator: torch.Generator) -> Tensor:
    """Pictures (n, 1, s, s), each turned, sheared, scaled and moved a little, at random.

    Examples
    --------
    >>> x = torch.ones(2, 1, 4, 4)
    >>> bool((bent(x, 0.0, torch.Generator()) == x).all())
    True
    """
    if not amount:
        return x
    u = amount * (2 * torch.rand(len(x), 6, generator=generator) - 1).to(x.device)
    turn, shear, wide, high = 0.4 * u[:, 0], 0.4 * u[:, 1], 1 + 0.25 * u[:, 2], 1 + 0.25 * u[:, 3]
    across = torch.stack([turn.cos() * wide, shear - turn.sin(), 0.2 * u[:, 4]], dim=1)
    down = torch.stack([turn.sin(), turn.cos() * high, 0.2 * u[:, 5]], dim=1)
    grid = nn.functional.affine_grid(
        torch.stack([across, down], dim=1), list(x.shape), align_corners=False
    )
    return nn.functional.grid_sample(x, grid, align_corners=False)


def fit_steps(
    network: nn.Module,
    loss: Callable[[torch.Generator], Tensor],
    options: PictureOptions,
    seed: int,
    checkpoint: Path | None = None,
    about: str = "network",
    show: bool | None = None,
) -> None:
    """Take ``options.steps`` steps of Adam on ``loss``, which draws its batches itself.

    Parameters
    ----------
    loss
        Gives the mean loss of a batch; all that is random in it comes from the generator, which is
        on the processor and differs from step to step.
    checkpoint
        A file to continue from if it exists, brought up to date now and then.
    """
    device = next(network.parameters()).device
    parameters = [p for p in network.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, options.lr, weight_decay=options.weight_decay)
    state = Checkpoint.begin(network, optimiser, {"options": vars(options) | {"seed": seed}})
    done = 0
    if checkpoint is not None and checkpoint.exists():
        state.load(checkpoint)
        done = len(state.losses) * _every(options)
    network.train()
    running = torch.zeros((), device=device)
    with progress_bar(about, options.steps, show) as report:
        report(done)
        for step in range(done, options.steps):
            # Seeded by step, so that a resumed training sees what it would have seen.
            generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
            for group in optimiser.param_groups:
                group["lr"] = options.lr * _rate(step / options.steps)
            with torch.autocast(device.type, torch.bfloat16, enabled=options.half):
                found = loss(generator)
            _update(optimiser, parameters, found, options.clip)
            running = running + found.detach()
            if (step + 1) % _every(options) == 0:
                mean = _finite(running / _every(options), options)
                running = torch.zeros((), device=device)
                state.record(mean)
                if checkpoint is not None:
                    state.save(checkpoint)
                report(_every(options), note=f"loss {mean:.3f}")
    network.eval()


def _every(options: PictureOptions) -> int:
    """After how many steps the training is written down."""
    return max(1, options.steps // 20)


def _rate(gone: float) -> float:
    """The share of the step size after a share of the steps."""
    if gone < _WARM:
        return 0.05 + 0.95 * gone / _WARM
    return 0.001 + 0.999 * (1 + math.cos(math.pi * (gone - _WARM) / (1 - _WARM))) / 2


def _update(
    optimiser: torch.optim.Optimizer, parameters: Iterable[Any], loss: Tensor, clip: float
) -> None:
    if not loss.requires_grad:  # a memory that is still empty teaches nothing
        return
    optimiser.zero_grad()
    torch.autograd.backward(loss)
    nn.utils.clip_grad_norm_(parameters, clip)
    optimiser.step()


def _finite(loss: Tensor, options: PictureOptions) -> float:
    found = float(loss)
    if not math.isfinite(found):
        raise ModelError(f"the loss is {found}; lower lr (it is {options.lr})")
    return found
