"""Numbers in sentences."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """So many of something, in words that fit the number.

    Examples
    --------
    >>> counted(1, "user"), counted(1200, "user"), counted(0, "item")
    ('1 user', '1,200 users', '0 items')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"
