"""One thread at a time, where calls change what an object remembers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

__all__ = ["Lock", "one_at_a_time"]

F = TypeVar("F", bound=Callable[..., Any])


class Lock:
    """A lock that the thread that holds it may take again.

    A deep copy or a pickle of what has a lock gets another one.
    """

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Lock, ()


def one_at_a_time(method: F) -> F:
    """Let a method wait for other threads that are in such methods of the same object.

    The object has a :class:`Lock`, ``_lock``.

    Examples
    --------
    >>> class Counter:
    ...     def __init__(self):
    ...         self._lock, self.count = Lock(), 0
    ...     @one_at_a_time
    ...     def add(self):
    ...         self.count += 1
    >>> counter = Counter()
    >>> counter.add()
    >>> counter.count
    1
    """

    @wraps(method)
    def waits(self: Any, *args: Any, **named: Any) -> Any:
        with self._lock.held:
            return method(self, *args, **named)

    return cast(F, waits)
