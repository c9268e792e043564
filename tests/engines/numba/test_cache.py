"""The cache of compiled kernels, in a small package with the same way to compile them."""

from __future__ import annotations

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
