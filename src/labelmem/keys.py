"""What the memory stores and compares, where that is not the model's h."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from labelmem.directions import Directions
from labelmem.errors import ConfigError, InputError
from labelmem.fast import Array, alone, array, tensor
from labelmem.functional import normalise
from labelmem.trust import believed

if TYPE_CHECKING:
    from labelmem.engines.numba.encode import TokenArrays

__all__ = ["Hidden", "Joined", "Key", "RecentTokens"]

_CPU = torch.device("cpu")


class Key(ABC):
    """A memory key that remembers: the adapter carries its state as it carries the model's."""

    @abstractmethod
    def initial_state(self, streams: int, device: torch.device) -> Any:
        """What it remembers of new streams: tensors, first dimension ``streams``."""

    @abstractmethod
    def __call__(self, x: Any, h: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The key (n, d) for inputs x and hidden vectors h, and the next state. Pure."""

    def prepare(self, tokens: int) -> None:  # noqa: B027  # most keys have nothing to do
        """Be ready for the tokens below ``tokens``: recorded steps cannot make room for more.

        The adapter tells the size of the model's vocabulary.
        """

    def for_kernels(self, tokens: int) -> TokenArrays | None:
        """All that kernels need to make one stream's key of ``tokens`` on a CPU, if they can."""
        return None

    def blocks(self, dim: int) -> tuple[int, ...]:
        """Lengths of the key's parts, for h of length ``dim``; ``()`` is a key in one piece.

        A combiner can weigh how well each part matches.
        """
        return ()


class Hidden(Key):
    """The model's h, scaled to one length: as a part of a joined key.

    Parameters
    ----------
    share
        That length. Next to parts of length one, a small share leaves the kernel to them, and only
        a combiner that looks at the parts will notice it.

    Examples
    --------
    >>> Hidden(share=0.5)(None, torch.tensor([[3.0, 4.0]]), None)[0]
    tensor([[0.3000, 0.4000]])
    """

    def __init__(self, share: float = 1.0) -> None:
        if not share > 0:
            raise ConfigError(f"share is {share}; it must be above 0")
        self.share = share

    def initial_state(self, streams: int, device: torch.device) -> None:
        """Nothing."""

    def __call__(self, x: Any, h: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The direction of h."""
        if alone(h) and h.is_contiguous():
            return self._of_one(h), state
        return self.share * normalise(h), state

    def _of_one(self, h: Tensor) -> Tensor:
        """The same for one stream on a CPU."""
        from labelmem.engines.numba.keys import scale

        key = torch.empty_like(h)
        scale(array(h)[0], self.share, array(key)[0])
        return key

    def blocks(self, dim: int) -> tuple[int, ...]:
        """One."""
        return (dim,)


class Joined(Key):
    """Several keys end to end; each is a part that a combiner can weigh for itself.

    Examples
    --------
    >>> Joined(RecentTokens(last=2, dim=8), Hidden(share=0.3)).blocks(dim=5)
    (8, 8, 5)
    """

    def __init__(self, *keys: Key) -> None:
        if not keys:
            raise ConfigError("there is no key to join")
        self.keys = keys

    def initial_state(self, streams: int, device: torch.device) -> tuple[Any, ...]:
        """That of each."""
        return tuple(key.initial_state(streams, device) for key in self.keys)

    def __call__(self, x: Any, h: Tensor, state: tuple[Any, ...]) -> tuple[Tensor, Any]:
        """All keys of this step."""
        made = [key(x, h, own) for key, own in zip(self.keys, state, strict=True)]
        return torch.cat([key for key, _ in made], dim=1), tuple(own for _, own in made)

    def for_kernels(self, tokens: int) -> TokenArrays | None:
        """For tokens, and h behind them."""
        first, *rest = self.keys
        made = first.for_kernels(tokens)
        if made is None or made.share or len(rest) > 1 or type(self) is not Joined:
            return None
        if not rest:
            return made
        return made._replace(share=rest[0].share) if type(rest[0]) is Hidden else None

    def prepare(self, tokens: int) -> None:
        """All of them."""
        for key in self.keys:
            key.prepare(tokens)

    def blocks(self, dim: int) -> tuple[int, ...]:
        """The parts of all; a key in one piece cannot be joined into parts."""
        parts = [key.blocks(dim) for key in self.keys]
        return sum(parts, ()) if all(parts) else ()


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
    pair
        Whether the last two tokens *together* have a direction too, as a part of its own.
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

    def __init__(
        self, last: int = 2, dim: int = 64, fade: float = 1.0, pair: bool = False, seed: int = 0
    ) -> None:
        if last < 1 or dim < 1:
            raise ConfigError(f"last is {last}, dim is {dim}; both must be at least 1")
        if pair and last < 2:
            raise ConfigError("last is 1; a pair needs the last two tokens")
        self.last, self.dim, self.fade, self.pair, self.seed = last, dim, fade, pair, seed
        self._directions = Directions(dim, seed)

    def initial_state(self, streams: int, device: torch.device) -> Tensor:
        """No token yet: -1, which has no direction."""
        return torch.full((streams, self.last - 1), -1, device=device)

    def __call__(self, x: Any, h: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Directions of the present and the remembered tokens, end to end."""
        if not isinstance(x, Tensor) or x.ndim != 1 or x.is_floating_point():
            raise InputError("RecentTokens needs inputs that are tokens, one whole number a stream")
        if alone(h) and x.shape == (1,) and state.shape == (1, self.last - 1):
            return self._of_one(int(x), array(state)[0])
        rows = tokens = torch.cat([x[:, None], state], dim=1)
        table = self._table(h.device, tokens)
        if table is None:
            table, rows = self._directions.gathered(tokens)
        directions, known = table.to(h.dtype), (tokens >= 0)[..., None]
        # Nothing lies beyond the table, but a recorded step is told of that only afterwards.
        parts = directions[rows.clamp(0, len(directions) - 1)] * known
        fade = self.fade ** torch.arange(self.last, device=h.device, dtype=h.dtype)
        key = parts * fade[:, None]
        if self.pair:  # the product of two random directions is a third, shared by no other pair
            both = normalise(parts[:, 0] * parts[:, 1])
            key = torch.cat([key, both[:, None]], dim=1)
        return key.flatten(1), tokens[:, : self.last - 1]

    def _of_one(self, now: int, before: Array) -> tuple[Tensor, Tensor]:
        """The same for one stream on a CPU: its token now, and those before (last - 1,)."""
        from labelmem.engines.numba.keys import token_key

        most = max(now, *before.tolist()) if self.last > 1 else now
        tokens = np.empty(self.last, np.int64)
        tokens[0], tokens[1:] = now, before
        remembered, found = tensor(tokens[:-1]), self._directions.covering(most, _CPU)
        if found is None:
            found, rows = self._directions.gathered(torch.from_numpy(tokens))
            tokens = rows.numpy()
        table = array(found)
        key = torch.empty(1, (self.last + self.pair) * self.dim)
        parts = array(key).reshape(-1, self.dim)
        token_key(table, tokens[0], tokens[1:], self.fade, self.pair, parts)
        return key, remembered

    def for_kernels(self, tokens: int) -> TokenArrays | None:
        """Directions of all of them."""
        from labelmem.engines.numba.encode import TokenArrays

        if type(self) is not RecentTokens:
            return None
        table = array(self._directions.table(_CPU, tokens))
        return TokenArrays(table, float(self.fade), self.pair, 0.0)

    def blocks(self, dim: int) -> tuple[int, ...]:
        """One for each token, and one for the pair."""
        return (self.dim,) * (self.last + self.pair)

    def prepare(self, tokens: int) -> None:
        """Make a table of their directions, however large; those of others are the same as ever."""
        self._directions.table(_CPU, tokens)

    def _table(self, device: torch.device, tokens: Tensor) -> Tensor | None:
        """Directions of all tokens up to the largest; None where there are too many."""
        table = self._directions.table(device)
        if believed(lambda: tokens.max() < len(table)):
            return table
        return self._directions.covering(int(tokens.max()), device)
