"""What the memory stores and compares, where that is not the model's h."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from labelmem.errors import ConfigError, InputError

__all__ = ["Key", "RecentTokens"]


class Key(ABC):
    """A memory key that remembers: the adapter carries its state as it carries the model's."""

    @abstractmethod
    def initial_state(self, streams: int, device: torch.device) -> Any:
        """What it remembers of new streams: tensors, first dimension ``streams``."""

    @abstractmethod
    def __call__(self, x: Any, h: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The key (n, d) for inputs x and hidden vectors h, and the next state. Pure."""


class RecentTokens(Key):
    """The last tokens of a stream, each as a fixed random direction.

    A trained recurrent model's h mixes all it has seen; where the label depends on *just here, just
    before*, as when people move between places, random directions of the last tokens tell contexts
    apart better. Nothing is trained.

    Parameters
    ----------
    last
        How many tokens, the current input included.
    dim
        Length of a token's direction; 64 random directions rarely coincide.
    fade
        The factor on each older token's share.
    seed
        Seeds the directions: the same seed, the same keys.

    Examples
    --------
    >>> key = RecentTokens(last=2, dim=8)
    >>> state = key.initial_state(1, torch.device("cpu"))
    >>> first, state = key(torch.tensor([5]), torch.zeros(1, 3), state)
    >>> second, state = key(torch.tensor([7]), torch.zeros(1, 3), state)
    >>> bool((first[:, :8] == second[:, 8:]).all())     # what was now is what was just before
    True
    """

    def __init__(self, last: int = 2, dim: int = 64, fade: float = 1.0, seed: int = 0) -> None:
        if last < 1 or dim < 1:
            raise ConfigError(f"last is {last}, dim is {dim}; both must be at least 1")
        self.last, self.dim, self.fade, self.seed = last, dim, fade, seed
        self._directions = torch.empty(0, dim)

    def initial_state(self, streams: int, device: torch.device) -> Tensor:
        """No token yet: -1, which has no direction."""
        return torch.full((streams, self.last - 1), -1, device=device)

    def __call__(self, x: Any, h: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Directions of the present and the remembered tokens, end to end."""
        if not isinstance(x, Tensor) or x.ndim != 1 or x.is_floating_point():
            raise InputError("RecentTokens needs inputs that are tokens, one whole number a stream")
        tokens = torch.cat([x[:, None], state], dim=1)
        directions = self._table(int(tokens.max()) + 1).to(h.device, h.dtype)
        known = (tokens >= 0)[..., None]
        fade = self.fade ** torch.arange(self.last, device=h.device, dtype=h.dtype)
        key = directions[tokens.clamp(min=0)] * known * fade[:, None]
        return key.flatten(1), tokens[:, : self.last - 1]

    def _table(self, tokens: int) -> Tensor:
        """Directions of at least so many tokens; earlier ones stay as they are."""
        if len(self._directions) < tokens:
            # Blocks of their own seeds, so that a direction does not depend on the table's size.
            size = 4096
            blocks = []
            for block in range(-(-tokens // size)):
                generator = torch.Generator().manual_seed(self.seed * 1_000_003 + block)
                blocks.append(torch.randn(size, self.dim, generator=generator))
            self._directions = torch.nn.functional.normalize(torch.cat(blocks), dim=1)
        return self._directions
