"""The tables of the paper use the library as anybody could: by its public names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import labelmem_paper

SOURCES = Path(labelmem_paper.__file__).parent
INTERNAL = {"compiled", "fast", "kernels", "lockstep", "narrow", "trust"}
"""Modules that only make the library fast; nobody else should know them."""
TOLERATED = {"labelmem.fast.allowed"}
"""What is imported from these all the same; it may only become less."""


def imported() -> Iterator[tuple[str, str]]:
    """The modules and names of the library that the sources import."""
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
                assert not [name for name in names if name.startswith("labelmem.")], file
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "labelmem":
                yield from ((str(node.module), alias.name) for alias in node.names)


def test_only_public_names_are_imported() -> None:
    found = set(imported())
    assert ("labelmem", "Adapter") in found
    for module, name in found:
        parts = [*module.split("."), name]
        assert not [part for part in parts if part.startswith("_") and part != "__version__"], parts
        public = name in import_module(module).__all__ or _is_module(f"{module}.{name}")
        assert public, f"{module}.{name} is not in __all__"


def test_what_makes_the_library_fast_is_left_alone() -> None:
    used = {f"{module}.{name}" for module, name in imported() if "." in module}
    assert {name for name in used if name.split(".")[1] in INTERNAL} == TOLERATED


def _is_module(name: str) -> bool:
    try:
        import_module(name)
    except ModuleNotFoundError:
        return False
    return True
