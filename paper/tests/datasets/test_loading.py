from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from labelmem_paper.datasets import (
    CheckinRecipe,
    OmniglotRecipe,
    default_recipe,
    info,
    load,
    names,
    source_of,
)
from labelmem_paper.datasets.locate import cache_folder, search_folders
from labelmem_paper.datasets.registry import RemoteFile

from labelmem.errors import ConfigError

Write = Callable[[str, bytes], Path]
LINE = b"1\tv\tc\tn\t1\t1\t0\tTue Apr 03 18:00:09 +0000 2012\n"


def test_the_environment_names_several_folders(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = write("second/dataset_TSMC2014_NYC.txt", LINE)
    folders = [str(tmp_path / "first"), str(tmp_path / "second")]
    monkeypatch.setenv("LABELMEM_DATA", os.pathsep.join(folders))
    with caplog.at_level(logging.INFO):
        data = load("fsq-nyc", CheckinRecipe())
    assert data.source.paths == (path,)
    assert str(path) in caplog.text


def test_downloads_come_last(write: Write, tmp_path: Path, own_cache: Path) -> None:
    downloads = own_cache / "labelmem/data"
    (downloads / "fsq-nyc").mkdir(parents=True)
    (downloads / "fsq-nyc/dataset_TSMC2014_NYC.txt").write_bytes(LINE)
    assert source_of("fsq-nyc").paths[0].is_relative_to(own_cache)  # type: ignore[union-attr]
    path = write("dataset_TSMC2014_NYC.txt", LINE)
    assert source_of("fsq-nyc", tmp_path).paths == (path,)  # type: ignore[union-attr]


def test_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "elsewhere")
    assert cache_folder() == Path("elsewhere/labelmem")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache/labelmem"
    assert search_folders() == [cache_folder() / "data"]


def test_unknown_name_and_options() -> None:
    with pytest.raises(ConfigError, match=r"no data set 'fsq'; there are brightkite"):
        load("fsq")
    with pytest.raises(ConfigError, match="no option min_len; it has merge_repeats"):
        load("fsq-nyc", {"min_len": 3})
    with pytest.raises(ConfigError, match="OmniglotRecipe; it must be a CheckinRecipe"):
        load("fsq-nyc", OmniglotRecipe())
    with pytest.raises(ConfigError):
        default_recipe("fsq")
    with pytest.raises(ConfigError):
        source_of("fsq")


def test_lists_from_toml_become_tuples() -> None:
    with pytest.raises(ConfigError, match=r"box is \(4, 3, 2, 1\)"):
        load("geolife", {"box": [4, 3, 2, 1]})


@pytest.mark.parametrize("name", names())
def test_every_data_set_has_facts(name: str) -> None:
    facts = info(name)
    assert facts.title
    assert facts.licence
    if name != "synthetic":
        assert facts.citation
        assert facts.homepage.startswith("http")
        assert facts.files or facts.manual
    for file in facts.files:
        assert isinstance(file, RemoteFile)
        assert file.url.startswith("http")
        assert len(file.sha256) in (0, 64)
        assert len(file.md5) in (0, 32)
    assert default_recipe(name) == default_recipe(name)


@pytest.mark.parametrize("name", [name for name in names() if name != "synthetic"])
def test_what_is_fetched_is_what_is_looked_for(name: str) -> None:
    from labelmem_paper.datasets.loading import _DATASETS

    fetched = tuple(file.name for file in info(name).files)
    if fetched:
        assert fetched in [layout.files for layout in _DATASETS[name].layouts]
