"""What a check works with: a way to make the method, inputs for it, and users with labels."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelmem.errors import LabelMemError
from labelmem.online import OnlineMethod
from labelmem.stream import Prediction, Stream
from labelmem.trees import tree_map

__all__ = ["Inputs", "Trial", "all_same", "follow", "played", "refuses", "same", "say"]
__all__ += ["snapshot", "stacked", "tokens", "vectors"]

Inputs = Callable[[torch.Generator, int], Any]
"""Draws inputs, first dimension as many as asked for."""

Turn = tuple[Any, Any]
"""One input, without a batch dimension, and its true label."""


def vectors(dim: int) -> Inputs:
    """Inputs that are vectors of ``dim`` normal numbers.

    Examples
    --------
    >>> vectors(3)(torch.Generator(), 5).shape
    torch.Size([5, 3])
    """
    return lambda generator, n: torch.randn(n, dim, generator=generator)


def tokens(size: int) -> Inputs:
    """Inputs that are whole numbers below ``size``, for models that begin with an embedding.

    Examples
    --------
    >>> tokens(3)(torch.Generator(), 5).shape
    torch.Size([5])
    """
    return lambda generator, n: torch.randint(size, (n,), generator=generator)


@dataclass(frozen=True)
class Trial:
    """Everything a check needs; the same trial gives the same users every time.

    Examples
    --------
    >>> from labelmem import Adapter
    >>> trial = Trial(lambda: Adapter(torch.nn.Linear(4, 2), labels=["cat", "dog"]), steps=4)
    >>> [label for _, label in trial.user(0)]
    ['cat', 'new-0', 'dog', 'new-1']
    """

    make: Callable[[], OnlineMethod[Any]]
    """Makes the method; every call gives one that behaves the same."""
    inputs: Inputs = field(default_factory=lambda: vectors(4))
    """Draws inputs that the method accepts."""
    seed: int = 0
    """Seeds the users."""
    steps: int = 8
    """How long a user's stream is."""

    def user(self, number: int) -> list[Turn]:
        """The stream of one user: labels of the model and some that are new, mixed and repeated."""
        generator = torch.Generator().manual_seed(1000 * self.seed + number)
        x = self.inputs(generator, self.steps)
        known = self._known
        new = [f"new-{(number + i) % 4}" for i in range(3)]
        pool = [*known, *new]
        # Users meet the new labels in an order of their own, and some of them again at random.
        first = [*known[:1], new[0], *known[1:2], *new[1:]]
        drawn = torch.randint(len(pool), (self.steps,), generator=generator).tolist()
        labels = [*first, *(pool[i] for i in drawn)][: self.steps]
        return [(tree_map(lambda leaf, t=t: leaf[t], x), label) for t, label in enumerate(labels)]

    @cached_property
    def _known(self) -> list[Any]:
        return list(self.make().known.names[:3])


def stacked(turns: Iterable[Turn]) -> Turn:
    """The inputs of several users as one batch, and the list of their labels."""
    inputs, labels = zip(*turns, strict=True)
    return tree_map(lambda *parts: torch.stack(parts), *inputs), list(labels)


def played(stream: Stream, turns: Iterable[Turn]) -> Iterator[Prediction]:
    """Every prediction, before its label is observed."""
    for x, y in turns:
        yield stream.predict(x)
        stream.observe(y)


def follow(stream: Stream, turns: Iterable[Turn]) -> list[Tensor]:
    """Predict and observe turn by turn; the probabilities of every prediction."""
    return [p.probs.clone() for p in played(stream, turns)]


def snapshot(stream: Stream) -> bytes:
    """All that a stream has committed, as the file it would be saved in."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stream")
        stream.save(path)
        return path.read_bytes()


def say(holds: bool, message: str) -> None:
    """Fail with a message; unlike ``assert`` also when Python runs optimised."""
    if not holds:
        raise AssertionError(message)


def refuses(call: Callable[[], Any], error: type[LabelMemError] = LabelMemError) -> bool:
    """Whether a call raises the error."""
    try:
        call()
    except error:
        return True
    return False


def same(a: Tensor | None, b: Tensor | None) -> bool:
    """Whether two tensors agree bit for bit, or are both missing."""
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and torch.equal(a, b)


def all_same(a: list[Tensor], b: list[Tensor]) -> bool:
    """Whether two runs gave the same predictions, bit for bit."""
    return len(a) == len(b) and all(same(p, q) for p, q in zip(a, b, strict=True))
