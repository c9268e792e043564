"""A dynamic neural Turing machine: what it learns online is what it writes to its cells."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from labelmem.baselines.base import require
from labelmem_paper.methods.dynamic_ntm import DynamicNTM, NTMState
from labelmem_paper.methods.sequence_method import SequenceMethod, SequenceOptions, scored_loss

__all__ = ["DNTM", "DNTMOptions"]


@dataclass(frozen=True)
class DNTMOptions(SequenceOptions):
    """The memory beside the controller."""

    cells: int = 128
    """Number of cells of a stream."""
    content: int = 32
    """Size of what is written to a cell."""
    address: int = 16
    """Size of a cell's trained address."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("cells", "content", "address"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "must be at least 1")


class DNTM(SequenceMethod[DNTMOptions]):
    """A controller with a memory that it was trained to use; no weight changes online.

    All of it is trained end to end on the next label by truncated back-propagation. See
    :class:`labelmem_paper.methods.dynamic_ntm.DynamicNTM` for what a step does.

    Examples
    --------
    >>> method = DNTM(labels=["cat", "dog"], options=DNTMOptions(dim=8, cells=4))
    >>> done = method.fit([(None, ["cat", "dog"] * 10)] * 8, epochs=30, lr=0.02)
    >>> stream = method.stream()
    >>> for label in ("cat", "dog", "cat"):
    ...     p = stream.predict(None)
    ...     stream.observe(label)
    >>> stream.predict(None).label
    'dog'

    References
    ----------
    Gulcehre et al. (2016), Dynamic Neural Turing Machine with Soft and Hard Addressing Schemes.
    """

    name = "dntm"
    Options = DNTMOptions
    training = {"epochs": 5, "window": 32}
    network: DynamicNTM

    def made_network(self) -> DynamicNTM:
        """Controller, addresses and output layer."""
        o = self.options
        sizes = (o.dim, o.cells, o.content, o.address)
        return DynamicNTM(len(self.known), *sizes, o.dropout, o.tied)

    def begin(self, streams: int) -> NTMState:
        """Empty cells."""
        return self.network.initial_state(streams)

    def respond(self, tokens: Tensor, state: NTMState) -> tuple[Tensor, NTMState]:
        """Write, move on, read and predict."""
        logits, after = self.network(tokens, state)
        return logits, after

    def window(self, tokens: Tensor, y: Tensor, state: NTMState) -> tuple[Tensor, NTMState]:
        """The losses of all steps; the output layer, the costly part, sees all of them at once."""
        features = []
        for t in range(tokens.shape[1]):
            seen, state = self.network.features(tokens[:, t], state)
            features.append(seen)
        logits = self.network.head(torch.stack(features, 1).flatten(0, 1))
        return scored_loss(logits, y.flatten()).sum(), state
