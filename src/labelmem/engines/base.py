"""What an engine is: one way to take the steps of an adapter's streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from labelmem.fast import allowed

if TYPE_CHECKING:
    from labelmem.lmn import LMN
    from labelmem.stepping import Step

__all__ = ["Engine"]


class Engine(ABC):
    """Takes steps for any number of streams of one adapter, and keeps nothing of theirs.

    A stream's state is passed in, so that one engine serves all streams, from any thread. All
    engines give what the reference gives, within rounding.

    Parameters
    ----------
    method
        The adapter. What is known of it here holds until :meth:`current` says otherwise.
    """

    name: ClassVar[str]

    def __init__(self, method: LMN) -> None:
        self.method = method
        self._stamp = stamp(method)

    @classmethod
    @abstractmethod
    def unsupported(cls, method: LMN, streams: int) -> str | None:
        """A sentence that says why not; None where the engine fits."""

    def current(self) -> bool:
        """Whether the adapter is still as it was when the engine was chosen."""
        return self._stamp == stamp(self.method)

    @abstractmethod
    def predict(self, state: Any, x: Any, width: int) -> Step:
        """Eq. 1 to 5 over ``width`` labels. Pure."""

    @abstractmethod
    def observe(self, state: Any, step: Step, y: Tensor, mask: Tensor | None) -> None:
        """Learn the labels y (n,) of ``step`` in the streams of the mask, changing ``state``."""


def stamp(method: LMN) -> tuple[Any, ...]:
    """What decides between engines; two that are equal lead to the same choice."""
    combiner, like = method.combiner, method.backbone.like
    kind = combiner, getattr(combiner, "training", False), method.memory, method.key
    return *kind, method.learns_kernel, like.dtype, like.device, allowed()
