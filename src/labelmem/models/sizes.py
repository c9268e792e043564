"""Checks of the options that all models share."""

from __future__ import annotations

from labelmem.errors import ConfigError

__all__ = ["check_dropout", "check_sizes"]


def check_sizes(least: int = 1, /, **sizes: int) -> None:
    """Refuse sizes that are not whole numbers from ``least``, by the names the caller gave them.

    Examples
    --------
    >>> check_sizes(labels=10, dim=0)
    Traceback (most recent call last):
    labelmem.errors.ConfigError: dim is 0; it must be a whole number from 1
    """
    for name, size in sizes.items():
        if isinstance(size, bool) or size != int(size) or size < least:
            raise ConfigError(f"{name} is {size!r}; it must be a whole number from {least}")


def check_dropout(dropout: float, name: str = "dropout") -> None:
    """Refuse a share that is not in [0, 1)."""
    if not 0 <= dropout < 1:
        raise ConfigError(f"{name} is {dropout}; it must lie in [0, 1)")
