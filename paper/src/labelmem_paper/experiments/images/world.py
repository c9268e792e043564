"""A trained network with what it was taught and sequences of pictures that it has not seen."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor, nn

from labelmem.models import ConvNet
from labelmem_paper.experiments.images.maps import maps_and_h
from labelmem_paper.experiments.images.showings import Showings

__all__ = ["Sees", "Stream", "World", "embedded"]

_NOTHING = -1e4  # a logit so low that its probability is 0

Stream = tuple[Tensor, Tensor]
Sees = Literal["h", "maps", "pictures"]
"""What the streams of a method are made of."""


@dataclass(frozen=True)
class World:
    """One network among the characters.

    Methods that leave the network alone need its answers only, so it runs once over all pictures:
    they work around ``head``, on streams of hidden vectors. That is the same, and much cheaper.
    """

    network: ConvNet
    head: nn.Linear
    """The network after h; it may have fewer outputs than the network was trained with."""
    pictures: Tensor
    """(characters, drawings, 1, size, size)."""
    taught: Tensor
    """(characters, drawings) which pictures the network was trained on."""
    shown: Tensor
    """(characters, drawings) which other pictures sequences may show."""
    showings: Showings
    """The sequences."""
    h: Tensor
    """(characters, drawings, dim) the network's hidden vectors of what is taught or shown."""
    maps: Tensor
    """(characters, drawings, size) its last maps of the same, in the metric of what is taught."""
    us_per_picture: float
    """Microseconds for one of them, many at a time."""

    @property
    def model(self) -> nn.Sequential:
        """The network with the head of this world."""
        return nn.Sequential(self.network.body, self.head).eval()

    @cached_property
    def known(self) -> Tensor:
        """(characters,) whether the network was taught the character."""
        return self.taught.any(dim=1)

    def streams(self, sees: Sees = "h", showings: Showings | None = None) -> list[Stream]:
        """The sequences, or other ``showings``, as streams of what a method ``sees``, and labels.

        That is hidden vectors, these with the maps behind them, or pictures. Always a new list, so
        that what is large goes when it is no longer used.
        """
        showings = self.showings if showings is None else showings
        if sees == "pictures":
            return showings.of(self.pictures)
        return showings.of(self.h if sees == "h" else torch.cat([self.h, self.maps], dim=2))

    @cached_property
    def taught_streams(self) -> list[Stream]:
        """What the network was taught, a stream of hidden vectors for each character."""
        return [
            (self.h[c][self.taught[c]], torch.full((int(self.taught[c].sum()),), c))
            for c in self.known.nonzero()[:, 0].tolist()
        ]

    def muted(self) -> World:
        """The same with a head that gives nothing to labels which were not taught."""
        head = copy.deepcopy(self.head)
        with torch.no_grad():
            head.bias[~self.known.to(head.bias.device)] = _NOTHING
        return replace(self, head=head)

    def among(self, labels: int) -> World:
        """The same with a head for the first so many labels only; later ones are new to it."""
        whole = self.network.head
        head = nn.Linear(whole.in_features, labels, device=whole.weight.device)
        with torch.no_grad():
            head.weight.copy_(whole.weight[:labels])
            head.bias.copy_(whole.bias[:labels])
        return replace(self, head=head.requires_grad_(False))


@torch.no_grad()
def embedded(
    network: ConvNet, pictures: Tensor, wanted: Tensor, batch: int = 500
) -> tuple[Tensor, Tensor, float]:
    """The network's h (characters, drawings, dim) and last maps, and microseconds for a picture.

    Only pictures that are ``wanted`` (characters, drawings) are looked at; elsewhere there are 0.
    """
    wanted = wanted.to(pictures.device)
    x = pictures[wanted]
    clock = time.perf_counter()
    parts = [maps_and_h(network, x[i : i + batch]) for i in range(0, len(x), batch)]
    maps, h = (torch.cat(part) for part in zip(*parts, strict=True))
    if h.device.type == "cuda":
        torch.cuda.synchronize(h.device)
    us = 1e6 * (time.perf_counter() - clock) / len(x)

    def spread(found: Tensor) -> Tensor:
        empty = found.new_zeros(*wanted.shape, found.shape[1])
        empty[wanted] = found
        return empty

    return spread(h), spread(maps), us
