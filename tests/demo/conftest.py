from __future__ import annotations

import pytest

from labelmem.demo.command import run_demo
from labelmem.demo.run import TaskResult


@pytest.fixture(scope="session")
def results() -> list[TaskResult]:
    """Both tasks, run as quickly as they can be."""
    return run_demo(seed=3, quick=True)
