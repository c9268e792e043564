"""The cache of compiled kernels, in a small package with the same way to compile them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

from labelmem.engines import numba as compiled

INNER = "from made import kernel\n\n@kernel\ndef inner(x):\n    return x + {}\n"
OUTER = (
    "from made import kernel\nfrom made.{} import inner\n\n"
    "@kernel\ndef outer(x):\n    return inner(x)\n"
)

GARBAGE = b"\x80\x05\x95\xff\xff\xff\xff\xff\xff\xff\x7f" * 2
"""The beginning of a pickle that is said to be very large."""

STEPS = """
import torch
from labelmem import Adapter
from toys import filled, random_combiner

adapter = Adapter(filled(torch.nn.Linear(24, 700), seed=1), combiner=random_combiner(24))
generator = torch.Generator().manual_seed(1)
for batch in (adapter.streams(1), adapter.streams(3)):
    for _ in range(40):
        batch.predict(torch.randn(len(batch), 24, generator=generator))
        batch.observe_ids(torch.randint(900, (len(batch),), generator=generator))
    print([t.numpy().tobytes().hex() for t in batch.tensors().values()])
"""


def outer_of_one(folder: Path) -> str:
    command = [sys.executable, "-B", "-c", "from made.outer import outer; print(outer(1))"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("inner", ["inner", "sub.inner"])
def test_a_changed_kernel_is_compiled_anew_where_it_is_called(tmp_path: Path, inner: str) -> None:
    package = tmp_path / "made"
    (package / "sub").mkdir(parents=True)
    shutil.copy(compiled.__file__, package / "__init__.py")
    (package / "sub" / "__init__.py").touch()
    (package / "outer.py").write_text(OUTER.format(inner))
    path = package / f"{inner.replace('.', '/')}.py"
    path.write_text(INNER.format(1))
    assert outer_of_one(tmp_path) == "2"
    assert list(package.rglob("*.nbi"))  # it was kept
    path.write_text(INNER.format(2))
    assert outer_of_one(tmp_path) == "3"


@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, kind: str) -> None:
    package = tmp_path / "made"
    package.mkdir()
    shutil.copy(compiled.__file__, package / "__init__.py")
    (package / "outer.py").write_text(OUTER.format("inner"))
    (package / "inner.py").write_text(INNER.format(1))
    assert outer_of_one(tmp_path) == "2"
    for path in package.rglob(kind):
        path.write_bytes(
            path.read_bytes()[:-20] + b"\x80\x05\x95\xff\xff\xff\xff\xff\xff\xff\x7f" * 2
        )
    assert outer_of_one(tmp_path) == "2"


@pytest.mark.slow
def test_a_kernel_from_the_cache_rounds_like_the_one_just_compiled(tmp_path: Path) -> None:
    """So that a stream goes on bit for bit after the process that compiled."""
    folders = [str(Path(__file__).parents[2]), *sys.path]
    paths = {"PYTHONPATH": os.pathsep.join(folders), "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", STEPS]
    run = [
        subprocess.run(command, env=os.environ | paths, capture_output=True, check=True).stdout
        for _ in range(2)
    ]
    assert run[0] == run[1] and list(tmp_path.rglob("*.nbc"))
