"""The kinds of tables: where the task of each and its methods are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from labelmem.errors import ConfigError
from labelmem_paper.experiments.contender import Task, TaskContender

__all__ = ["KINDS", "contender", "task_of"]

KINDS = ("sequences", "images", "few-shot", "long-tail", "language", "adapt")
"""Each is a package beside this file, with a module ``task`` and a package ``methods``."""


def task_of(kind: str) -> Callable[..., Task]:
    """The task of a kind of table: called with run, device, folder to keep things in, and show.

    Examples
    --------
    >>> task_of("few-shot").__name__
    'FewShotTask'
    """
    made: Callable[..., Task] = _module(kind, "task").TASK
    return made


def contender(
    name: str, options: Mapping[str, Any] | None = None, kind: str = "sequences"
) -> Callable[[Any], TaskContender[Any, Any]]:
    """The contender of a row: that of its name, or of what its options say it ``is``.

    Parameters
    ----------
    kind
        The kind of the table; each has its own methods.

    Examples
    --------
    >>> contender("lmn-fixed").__name__
    'LMNFixed'
    >>> contender("one-cell", {"is": "lmn-fixed", "memory": {"capacity": 1}}).__name__
    'LMNFixed'
    >>> contender("lmn-fixed", kind="images").__module__
    'labelmem_paper.experiments.images.methods.lmn_fixed'
    """
    name = (options or {}).get("is", name)
    try:
        found = _module(kind, f"methods.{_written(name)}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("labelmem_paper.experiments"):
            raise
        raise ConfigError(f"there is no method {name!r}") from None
    made: Callable[[Any], TaskContender[Any, Any]] = found.CONTENDER
    return made


def _module(kind: str, name: str) -> ModuleType:
    if kind not in KINDS:
        raise ConfigError(f"there is no kind of table {kind!r}; known are {', '.join(KINDS)}")
    return import_module(f"labelmem_paper.experiments.{_written(kind)}.{name}")


def _written(name: str) -> str:
    return name.replace("-", "_")
