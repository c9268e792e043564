"""Training that can be stopped at any moment and continued."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.errors import MismatchError
from labelmem.storage import load_state, save_state

__all__ = ["Checkpoint"]


@dataclass
class Checkpoint:
    """Current weights, best weights, optimiser and the losses so far."""

    module: nn.Module
    optimiser: torch.optim.Optimizer
    identity: dict[str, Any]
    """What must be the same for a file to be continued: options, data, form of the network."""
    best: dict[str, Tensor]
    losses: list[float] = field(default_factory=list)
    extra: dict[str, Tensor] = field(default_factory=dict)
    """Whatever else the training needs to go on, e.g. the states of its random generators."""

    @classmethod
    def begin(
        cls, module: nn.Module, optimiser: torch.optim.Optimizer, identity: dict[str, Any]
    ) -> Checkpoint:
        """Before the first epoch."""
        return cls(module, optimiser, identity, _copy(module))

    def record(self, loss: float) -> None:
        """Note an epoch's validation loss, and its weights if it is the best so far."""
        self.losses.append(loss)
        if loss <= min(self.losses):
            self.best = _copy(self.module)

    def restore_best(self) -> None:
        """Put the best epoch's weights back."""
        self.module.load_state_dict(self.best)

    def save(self, path: Path) -> None:
        """Write everything to one file, atomically."""
        tensors = {f"now.{k}": t for k, t in self.module.state_dict().items()}
        tensors |= {f"best.{k}": t for k, t in self.best.items()}
        for i, moments in self.optimiser.state_dict()["state"].items():
            tensors |= {f"adam.{i}.{k}": torch.as_tensor(t) for k, t in moments.items()}
        tensors |= {f"extra.{k}": t for k, t in self.extra.items()}
        save_state(path, "checkpoint", tensors, {"identity": self.identity, "losses": self.losses})

    def load(self, path: Path) -> None:
        """Continue from a file; one of another training is refused."""
        tensors, meta = load_state(path, "checkpoint")
        if meta["identity"] != self.identity:
            raise MismatchError(
                f"{path} is a checkpoint of another training ({meta['identity']}, here it is "
                f"{self.identity}); remove it to start anew, or name another file"
            )
        self.module.load_state_dict(_part(tensors, "now."))
        self.best = _part(tensors, "best.")
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _part(tensors, "adam.").items():
            i, _, key = name.partition(".")
            state.setdefault(int(i), {})[key] = tensor
        self.optimiser.load_state_dict(self.optimiser.state_dict() | {"state": state})
        self.losses = list(meta["losses"])
        self.extra = _part(tensors, "extra.")


def _copy(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}
