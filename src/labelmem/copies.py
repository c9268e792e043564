"""What copies and pickles take along, and what they make anew."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import torch

__all__ = ["Copied", "Forked"]


class Copied:
    """Copies and pickles lack what belongs to one object alone: it is made anew in each.

    Such are recordings for a device, values on their way from one call to the next, and locks. A
    subclass names them in ``_own``, and ``_make_own`` sets them.

    Examples
    --------
    >>> class Counter(Copied):
    ...     _own = ("waiting",)
    ...     def __init__(self):
    ...         self.count, self.waiting = 3, iter("abc")
    ...     def _make_own(self):
    ...         self.waiting = iter(())
    >>> other = copy.deepcopy(Counter())
    >>> other.count, list(other.waiting)
    (3, [])
    """

    _own: ClassVar[tuple[str, ...]] = ()

    def _make_own(self) -> None:
        """Set what was not taken along, in a copy that has all the rest."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in self._own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._make_own()

    @torch.inference_mode(False)  # what is kept must be usable outside of that mode too
    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = memo[id(self)] = type(self).__new__(type(self))
        other.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return other


class Forked(Copied):
    """Streams: what ``copy.copy`` gives has the same adapter, and goes a way of its own."""

    method: Any

    def __copy__(self) -> Self:
        shared = (self.method, *vars(self.method).values())
        return copy.deepcopy(self, {id(thing): thing for thing in shared})
