from __future__ import annotations

import dataclasses
import zipfile
from pathlib import Path
from typing import Any

import pytest
from labelmem_paper.datasets import fetch as module
from labelmem_paper.datasets import info, load
from labelmem_paper.datasets.fetch import fetch
from labelmem_paper.datasets.registry import Info

from labelmem.errors import ConfigError, MissingDataError

LINE = "1\tv\tc\tn\t1\t1\t0\tTue Apr 03 18:00:09 +0000 2012\n"


@pytest.fixture
def redirected(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every publisher be the little server of the tests."""

    def local(name: str) -> Info:
        facts = info(name)
        files = tuple(dataclasses.replace(file, url=site.url, md5="") for file in facts.files)
        return dataclasses.replace(facts, files=files)

    monkeypatch.setattr(module, "info", local)


def test_fetched_files_are_found(site: Any, redirected: None, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "made.zip", "w") as archive:
        for city in ("NYC", "TKY"):
            archive.writestr(f"dataset_tsmc2014/dataset_TSMC2014_{city}.txt", LINE)
    site.content = (tmp_path / "made.zip").read_bytes()
    told: list[tuple[str, int, int]] = []
    (file,) = fetch("fsq-nyc", progress=lambda *piece: told.append(piece))
    assert not file.pinned
    assert told[-1] == ("dataset_tsmc2014.zip", len(site.content), len(site.content))
    fetch("fsq-tokyo")
    assert len(site.ranges) == 1, "both cities come in one archive"
    for name in ("fsq-nyc", "fsq-tokyo"):
        assert load(name, {"min_venue_count": 1, "min_venue_users": 1, "min_length": 1}).labels == 1


def test_common_names_go_to_their_own_folder(site: Any, redirected: None, own_cache: Path) -> None:
    site.content = b"text,category\nhello,greet\n"
    files = fetch("banking77")
    assert [file.path for file in files] == [
        own_cache / "labelmem/data/banking77" / name for name in ("train.csv", "test.csv")
    ]
    assert load("banking77").names == ("greet",)


def test_folder_of_choice(site: Any, redirected: None, tmp_path: Path) -> None:
    site.content = b"x"
    (file,) = fetch("text8", tmp_path / "mine")
    assert file.path == tmp_path / "mine/text8.zip"


@pytest.mark.parametrize("name", ["geolife", "yoochoose"])
def test_what_must_be_done_by_hand_is_told(name: str, own_cache: Path) -> None:
    with pytest.raises(MissingDataError) as caught:
        fetch(name)
    assert str(own_cache / "labelmem/data" / name) in str(caught.value)
    assert info(name).homepage in str(caught.value)


def test_nothing_to_fetch() -> None:
    assert fetch("synthetic") == []
    with pytest.raises(ConfigError):
        fetch("nothing")
