"""Batches by fused kernels, in Triton's interpreter where there is no GPU."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from conformance.comparing import assert_close, run_users
from conformance.forms import form
from conformance.ways import REFERENCE, WAYS

pytest.importorskip("triton", reason="Triton is not installed")

# Triton asks for its interpreter when it is imported: a process has to begin with it.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
BATCH = next(way for way in WAYS if way.name == "batch")


@pytest.mark.skipif(INTERPRETED, reason="this is the process that the test starts")
def test_kernels_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not INTERPRETED, reason="runs in the process that the first test starts")
@pytest.mark.parametrize("name", ["oldest out", "label combiner", "stream combiner", "history"])
def test_steps_by_kernels_are_those_of_the_reference(name: str) -> None:
    kind = form(name)
    recorded = [
        (x[:length], y[:length]) for (x, y), length in zip(kind.users, (5, 3), strict=False)
    ]
    by_kernels = run_users(BATCH.users(kind.build(), 2), recorded)
    expected = run_users(REFERENCE.users(kind.build(**REFERENCE.options), 2), recorded)
    for mine, theirs in zip(by_kernels, expected, strict=True):
        for output, right in zip(mine, theirs, strict=True):
            assert_close(output, right, kind.atol)
