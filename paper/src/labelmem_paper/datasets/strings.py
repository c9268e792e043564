"""Keep a list of strings in a plain byte array, so that it can be stored without pickle."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

__all__ = ["pack", "unpack"]

_END = b"\0"


def pack(strings: Iterable[str]) -> npt.NDArray[np.uint8]:
    """Return the strings as UTF-8, each followed by a zero byte."""
    return np.frombuffer(b"".join(text.encode() + _END for text in strings), np.uint8)


def unpack(packed: npt.NDArray[np.uint8]) -> tuple[str, ...]:
    """Return the strings `pack` was given.

    Examples
    --------
    >>> unpack(pack(["café", "", "zoo"]))
    ('café', '', 'zoo')
    """
    return tuple(packed.tobytes().decode().split(_END.decode())[:-1])
