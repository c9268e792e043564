"""Packages that only some tasks need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from labelmem.errors import MissingExtraError

__all__ = ["needed"]


def needed(module: str, task: str) -> ModuleType:
    """Import a module of a package that comes with the extra ``adapt``.

    Examples
    --------
    >>> needed("no_such_package", "digits")
    Traceback (most recent call last):
    labelmem.errors.MissingExtraError: the task digits needs no_such_package, which is not
    installed: pip install 'labelmem-paper[adapt]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"the task {task} needs {module.split('.')[0]}, which is not installed: "
            "pip install 'labelmem-paper[adapt]'"
        ) from error
