"""What streams of embeddings begin with: labelled ones from before and a head, or nothing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.adapter import Adapter
from labelmem.config import MemoryConfig
from labelmem.logs.folder import WEIGHTS
from labelmem.logs.log import Log
from labelmem.logs.vectors import Matrix
from labelmem.models import FitOptions, fit_classifier
from labelmem.storage import load_state, save_state

__all__ = ["Known", "Unknown", "train_head"]

_HEAD = WEIGHTS[0]
"""`forget` takes it that there is nothing of a user in this file."""
_TRAINING = FitOptions(epochs=100, batch=16, lr=3e-3, patience=10)
_BATCHES = 50
"""The most of an epoch: with more examples they are larger, so that it takes seconds."""


@dataclass(frozen=True)
class Unknown:
    """No label is known: a memory alone decides."""

    memory: MemoryConfig

    def settings(self) -> dict[str, Any]:
        """What must be the same whenever memories are continued."""
        return {"memory": asdict(self.memory)}

    def adapter(self, folder: Path) -> Adapter:
        """A memory of what comes in."""
        return Adapter(nn.Identity(), labels=(), memory=self.memory)


@dataclass(frozen=True)
class Known:
    """Examples whose labels are known before a stream begins."""

    log: Log
    """Their labels, as items."""
    matrix: Matrix
    """(N, d) the embeddings."""

    def settings(self) -> dict[str, Any]:
        """What must be the same whenever memories are continued: these rows, in whatever file."""
        digest = hashlib.sha256(self.matrix.tobytes())
        digest.update(json.dumps([self.log.items[i] for i in self.log.item]).encode())
        return {"known": digest.hexdigest()}

    def adapter(self, folder: Path) -> Adapter:
        """The default form around the head, primed; made once, then read from the folder."""
        kept = folder / _HEAD
        X, y = torch.from_numpy(self.matrix), torch.from_numpy(self.log.item)
        head, names = nn.Linear(X.shape[1], len(self.log.items)), self.log.items
        adapter = Adapter(head.requires_grad_(False), labels=names)
        assert adapter.online is not None
        if kept.exists():
            tensors, _ = load_state(kept, "known")
            head.load_state_dict({name: tensors.pop(name) for name in ("weight", "bias")})
            adapter.online.restore_primed(tensors, head.weight)
            return adapter
        head.load_state_dict(train_head(X, y, len(names)).state_dict())
        adapter.prime(X, [names[i] for i in y.tolist()])
        save_state(kept, "known", head.state_dict() | adapter.online.tensors(), {})
        return adapter


def train_head(X: Tensor, y: Tensor, labels: int) -> nn.Linear:
    """A linear classifier of embeddings X (N, d) with the numbers y (N,) of their labels.

    A part that is held out says for how many epochs, then all examples train: of a label with a
    single example none may be held out. Training sees embeddings with mean 0 and of one scale,
    which the head that it gives does not need.

    Examples
    --------
    >>> X = 100 + torch.linspace(-1, 1, 40)[:, None]
    >>> train_head(X, (X[:, 0] > 100).long(), 2)(torch.tensor([[99.5], [100.5]])).argmax(1)
    tensor([0, 1])
    """
    mean = X.mean(0)
    scale = (X - mean).square().mean().sqrt().clamp(min=1e-12)
    inputs = (X - mean) / scale
    options = replace(_TRAINING, batch=max(_TRAINING.batch, len(y) // _BATCHES))
    chosen = fit_classifier(_zero(X.shape[1], labels), inputs, y, options).best_epoch
    head = _zero(X.shape[1], labels)
    fit_classifier(head, inputs, y, replace(options, epochs=chosen, validation=0.0))
    with torch.no_grad():
        head.weight.div_(scale)
        head.bias.sub_(head.weight @ mean)
    return head


def _zero(dim: int, labels: int) -> nn.Linear:
    """A head that says nothing yet: training begins the same each time."""
    head = nn.Linear(dim, labels)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    return head
