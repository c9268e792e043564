"""Random directions of whole numbers, the same wherever they are made."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

__all__ = ["Directions"]

_BLOCK = 4096
"""Tokens that share a seed, so that a direction does not depend on how many there are."""
_MOST = 2**26
"""Numbers in a table that grows as tokens come; tokens beyond have their directions made singly."""


class Directions:
    """A direction of length one for each token, a pure function of token and seed.

    Tables and single directions are a cache of limited size; copies and pickles come without it.

    Parameters
    ----------
    dim
        Length of the vectors.
    seed
        The same seed, the same directions.

    Examples
    --------
    >>> directions = Directions(dim=4, seed=0)
    >>> directions.table(torch.device("cpu"), tokens=10).shape
    torch.Size([4096, 4])
    >>> rows, places = directions.gathered(torch.tensor([3, 10**9, -1, 3]))
    >>> rows.shape, places
    (torch.Size([3, 4]), tensor([ 1,  2, -1,  1]))
    """

    def __init__(self, dim: int, seed: int) -> None:
        self.dim, self.seed = dim, seed
        self._here = torch.empty(0, dim)
        self._elsewhere: dict[torch.device, Tensor] = {}
        self._earlier: list[Tensor] = []  # smaller ones, which a recorded step may still read
        self._growing = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Directions, (self.dim, self.seed)

    def table(self, device: torch.device, tokens: int = 1) -> Tensor:
        """Directions of at least the tokens below ``tokens``, (N, dim)."""
        held = self._here if device.type == "cpu" else self._elsewhere.get(device)
        if held is not None and len(held) >= tokens:
            return held
        with self._growing:  # one of the threads that ask
            return self._made(device, tokens)

    def _made(self, device: torch.device, tokens: int) -> Tensor:
        here = self._here
        if len(here) < tokens:
            self._here = here = self._grown(here, tokens)
        if device.type == "cpu":
            return here
        held = self._elsewhere.get(device)
        if held is None or len(held) < len(here):
            if held is not None:
                self._earlier.append(held)
            with torch.inference_mode(False):
                held = self._elsewhere[device] = here.to(device)
        return held

    @torch.inference_mode(False)  # whoever comes later may want a gradient
    def _grown(self, here: Tensor, tokens: int) -> Tensor:
        blocks = range(len(here) // _BLOCK, (tokens - 1) // _BLOCK + 1)
        return torch.cat([here, *(_block(self.dim, self.seed, block) for block in blocks)])

    def covering(self, most: int, device: torch.device) -> Tensor | None:
        """A table of the tokens up to ``most``; None where it would be too large."""
        table = self.table(device)
        if most < len(table):
            return table
        if (most + 1) * self.dim > _MOST:
            return None
        # At least twice the size, so that tables are made few times.
        return self.table(device, max(most + 1, min(2 * len(table), _MOST // self.dim)))

    def gathered(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Directions of these tokens alone, and where each has its own; -1 for those below 0."""
        found, places = torch.unique(tokens.clamp(min=-1), return_inverse=True)
        rows = [direction(self.dim, self.seed, max(token, 0)) for token in found.tolist()]
        return torch.stack(rows).to(tokens.device), places.where(tokens >= 0, -1)


@lru_cache(maxsize=2**14)
@torch.inference_mode(False)
def direction(dim: int, seed: int, token: int) -> Tensor:
    """The direction (dim,) of one token."""
    return _block(dim, seed, token // _BLOCK)[token % _BLOCK].clone()


def _block(dim: int, seed: int, block: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed * 1_000_003 + block)
    return normalize(torch.randn(_BLOCK, dim, generator=generator), dim=1)
