from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from labelmem.errors import StorageError
from labelmem.targets import check_file, check_free


def test_a_file_in_this_folder_may_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        check_file(Path("report.html"))
        Path("report.html").write_text("old")
    check_file(None)
    assert os.listdir() == ["report.html"]  # nothing is left of the attempt


def test_what_cannot_be_a_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is a folder"):
        check_file(tmp_path)
    for place in ("no/x", "file/x"):
        (tmp_path / "file").touch()
        with pytest.raises(StorageError, match="does not exist; make it first"):
            check_file(tmp_path / place)


def test_a_file_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "kept.html"
    target.touch()
    monkeypatch.setattr(os, "access", lambda path, mode: path != target)
    with pytest.raises(StorageError, match=r"kept\.html cannot be written"):
        check_file(target)


@pytest.mark.parametrize("check", [check_file, check_free], ids=["file", "folder"])
def test_a_place_where_nothing_can_be_written(
    tmp_path: Path, check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("labelmem.targets.tempfile.TemporaryFile", full)
    with pytest.raises(StorageError, match=r"nothing can be written.*No space left on device"):
        check(tmp_path / "new")


def test_a_model_folder_must_be_free(tmp_path: Path) -> None:
    check_free(tmp_path / "new")
    check_free(tmp_path)  # empty
    (tmp_path / "file").touch()
    for taken in (tmp_path, tmp_path / "file"):
        with pytest.raises(StorageError, match="exists already"):
            check_free(taken)
