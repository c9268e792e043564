"""Finding methods by name: ``session-knn`` lives in ``session_knn.py``, and so on.

Other packages add methods of their own by the entry point ``labelmem.methods``.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Hashable, Iterable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from torch import nn

import labelmem.baselines as package
from labelmem.backbone import find_head
from labelmem.baselines.base import Baseline
from labelmem.errors import ConfigError

__all__ = ["make", "method", "methods"]


def methods() -> dict[str, type[Baseline[Any, Any]]]:
    """All methods by name, alphabetically.

    Examples
    --------
    >>> "counter" in methods()
    True
    """
    found = {name: point.load() for name, point in _others().items()}
    for file in _files():
        cls = _class_in(file)
        if cls is not None:
            found[cls.name] = cls
    return dict(sorted(found.items()))


def method(name: str) -> type[Baseline[Any, Any]]:
    """One method by name; no other is imported.

    Examples
    --------
    >>> method("static").__name__
    'Static'
    >>> method("oracle")
    Traceback (most recent call last):
    labelmem.errors.ConfigError: there is no method 'oracle'; there are counter, ...
    """
    file = name.replace("-", "_")
    cls = _class_in(file) if file in _files() else None
    if cls is not None and cls.name == name:
        return cls
    others = _others()
    if name not in others:
        raise ConfigError(f"there is no method {name!r}; there are {', '.join(methods())}")
    found: type[Baseline[Any, Any]] = others[name].load()
    return found


def make(
    name: str,
    model: nn.Module | None = None,
    labels: Iterable[Hashable] | int | None = None,
    head: str | nn.Module | None = None,
    **options: Any,
) -> Baseline[Any, Any]:
    """Make a method from what a configuration file has: its name, a model or labels, options.

    A method that looks at labels only takes their number, or names, from the model if there is one.

    Examples
    --------
    >>> make("counter", labels=["cat", "dog"], theta=0.3).options.theta
    0.3
    >>> make("static", nn.Linear(2, 3)).stream().labels
    [0, 1, 2]
    """
    cls: Any = method(name)
    given: tuple[Any, ...]
    place: tuple[Any, ...] = ()
    if cls.needs_model:
        if model is None:
            raise ConfigError(f"{name} needs a model")
        given = model, head, range(labels) if isinstance(labels, int) else labels
    elif model is not None:
        last = find_head(model, head)
        given, place = (last.out_features if labels is None else labels,), (last.weight.device,)
    elif labels is not None:
        given = (labels,)
    else:
        raise ConfigError(f"{name} needs labels=..., or a model to count them by")
    made: Baseline[Any, Any] = cls(*given, cls.chosen_options(**options), *place)
    return made


def _files() -> list[str]:
    """The modules of this package."""
    return [module.name for module in pkgutil.iter_modules(package.__path__)]


def _others() -> dict[str, EntryPoint]:
    """What other packages add."""
    return {point.name: point for point in entry_points(group="labelmem.methods")}


def _class_in(file: str) -> type[Baseline[Any, Any]] | None:
    """The method that a file of this package defines, if it does."""
    module = import_module(f"{package.__name__}.{file}")
    for value in vars(module).values():
        if (
            inspect.isclass(value)
            and issubclass(value, Baseline)
            and value.__module__ == module.__name__
            and getattr(value, "name", None) == file.replace("_", "-")
        ):
            return value
    return None
