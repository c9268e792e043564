"""What an import brings with it, seen from a fresh interpreter."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import textwrap

import pytest

import labelmem

HEAVY = ("torch", "numpy", "safetensors")
EXTRAS = ("typer", "rich", "pooch", "sklearn", "river", "matplotlib", "ray", "pandas")
PARTS = (
    *("engines", "engines/numba", "engines/triton", "index", "lockstep", "memory"),
    *("models", "starting", "tuning", "unrolling"),
)
CORE = [
    module.name
    for module in pkgutil.iter_modules(labelmem.__path__)
    if module.name in PARTS or (not module.ispkg and module.name != "__main__")
]
CORE += [
    f"{part.replace('/', '.')}.{module.name}"
    for part in PARTS
    for module in pkgutil.iter_modules([f"{labelmem.__path__[0]}/{part}"])
]

BLOCK = f"""
import sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def fresh(script: str) -> str:
    """Run a script in a new interpreter and return what it printed."""
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_imports_nothing_heavy() -> None:
    seen = fresh("import sys, labelmem; dir(labelmem); print(*sorted(sys.modules))").split()
    assert not {name.partition(".")[0] for name in seen} & {*HEAVY, *EXTRAS}


def test_the_core_needs_torch_numpy_and_safetensors_alone() -> None:
    script = BLOCK + textwrap.dedent(
        """
        import tempfile, torch

        model = torch.nn.Linear(3, 2)
        random_state = torch.get_rng_state()
        from labelmem import *

        with Adapter(model, combiner=Combiner(), memory=MemoryConfig(capacity=5)) as adapter:
            stream = adapter.stream()
            p = stream.predict([1.0, 0.0, 0.0])
            stream.observe("new")
            stream.explain(p)
            batch = adapter.streams(2)
            batch.predict(torch.zeros(2, 3))
            batch.observe([0, 1])
            with tempfile.TemporaryDirectory() as folder:
                stream.save(folder + "/s")
                print(adapter.load_stream(folder + "/s").predict([1.0, 0.0, 0.0]).label)
        assert torch.equal(random_state, torch.get_rng_state())  # nobody seeds or draws
        """
    )
    assert fresh(script).strip() == "new"


def test_every_core_module_imports_without_the_extras() -> None:
    assert {"adapter", "memory", "stream", "training"} <= set(CORE)
    fresh(BLOCK + f"import importlib\nfor m in {CORE}: importlib.import_module('labelmem.' + m)")


def test_public_names_are_there() -> None:
    for name in labelmem.__all__:
        assert getattr(labelmem, name) is not None
    assert dir(labelmem) == labelmem.__all__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        labelmem.nonsense  # noqa: B018
