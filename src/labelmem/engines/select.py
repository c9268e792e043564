"""Which engine takes the steps of a stream: the fastest that fits, or the one asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from labelmem.engines.base import Engine
from labelmem.errors import ConfigError, UnsupportedError

if TYPE_CHECKING:
    from labelmem.lmn import LMN

__all__ = ["AUTO", "ENGINES", "checked_name", "reasons", "select"]

AUTO = "auto"
ENGINES = {
    "numba": "labelmem.engines.numba.engine:Numba",
    "triton": "labelmem.engines.triton.engine:Triton",
    "reference": "labelmem.engines.reference:Reference",
}
"""Where each engine is found, the fastest first. They are imported when they are first asked."""


def select(method: LMN, streams: int, only: str = AUTO) -> Engine:
    """The engine for so many streams of an adapter.

    Raises
    ------
    UnsupportedError
        If one was asked for by name and does not fit.
    """
    for name in ENGINES if only == AUTO else (only,):
        engine = _engine(name)
        reason = engine.unsupported(method, streams)
        if reason is None:
            return engine(method)
    raise UnsupportedError(f"the engine {only!r} cannot take these steps: {reason}")


def reasons(method: LMN, streams: int) -> dict[str, str | None]:
    """Why each engine cannot take the steps of so many streams; None where it can."""
    return {name: _engine(name).unsupported(method, streams) for name in ENGINES}


def checked_name(name: str) -> str:
    """The name of an engine, or ``auto``; anything else is an error."""
    if name != AUTO and name not in ENGINES:
        known = ", ".join(repr(known) for known in (AUTO, *ENGINES))
        raise ConfigError(f"there is no engine {name!r}; choose one of {known}")
    return name


def _engine(name: str) -> type[Engine]:
    module, _, kind = ENGINES[name].partition(":")
    found: type[Engine] = getattr(import_module(module), kind)
    return found
