from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from logs.habits import SMALL, write_log

from labelmem.logs.fit_command import fit_log
from labelmem.logs.rows import Columns


@pytest.fixture(scope="session")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small log of users with habits."""
    return write_log(tmp_path_factory.mktemp("log") / "events.csv")


@pytest.fixture(scope="session")
def model_folder(log_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model fitted to it, to be copied by whoever changes it."""
    out = tmp_path_factory.mktemp("fitted") / "model"
    fit_log(log_file, Columns("user", "place", "ts"), out, recipe=SMALL, show=False)
    return out


@pytest.fixture
def folder(model_folder: Path, tmp_path: Path) -> Any:
    import shutil

    shutil.copytree(model_folder, tmp_path / "model")
    return tmp_path / "model"
