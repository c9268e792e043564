from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np
import pytest
from labelmem_paper.datasets import CheckinRecipe, cache, load
from labelmem_paper.datasets.cache import entry_path, fingerprint, remember
from labelmem_paper.datasets.layout import Arrays

ROWS = "user\torder\tvenue\tlat\tlon\tsession\tsource_split\n0\t0\t10\t1\t1\t0\ttrain\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    import gzip

    path = tmp_path / "fsq_tokyo.tsv.gz"
    path.write_bytes(gzip.compress(ROWS.encode()))
    return path


def entries(own_cache: Path) -> list[Path]:
    return sorted((own_cache / "labelmem/prepared").iterdir())


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    from labelmem_paper.datasets import tables

    reads: list[int] = []
    original = tables.read_blocks

    def counted(path: Path, member: str = "") -> object:
        reads.append(1)
        return original(path, member)

    monkeypatch.setattr(tables, "read_blocks", counted)
    return reads


def test_second_load_does_not_read_the_file(
    path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = count_reads(monkeypatch)
    first, second = (load("fsq-tokyo", root=path.parent, seed=seed) for seed in (0, 1))
    assert len(reads) == 1
    assert len(entries(own_cache)) == 1
    assert (first.tokens == second.tokens).all()
    assert first.names == second.names


def test_another_recipe_or_file_is_another_entry(path: Path, own_cache: Path) -> None:
    load("fsq-tokyo", root=path.parent)
    load("fsq-tokyo", {"merge_repeats": True}, root=path.parent)
    assert len(entries(own_cache)) == 2
    import gzip

    path.write_bytes(gzip.compress((ROWS + "0\t1\t11\t1\t1\t0\ttrain\n").encode()))
    assert load("fsq-tokyo", root=path.parent).labels == 2
    assert len(entries(own_cache)) == 3


@pytest.mark.parametrize("how", ["cut", "flipped", "empty", "text", "single", "pickle"])
def test_damaged_entry_is_made_again(
    path: Path, own_cache: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    expected = load("fsq-tokyo", root=path.parent)
    (entry,) = entries(own_cache)
    content = entry.read_bytes()
    if how == "cut":
        entry.write_bytes(content[: len(content) // 2])
    elif how == "flipped":
        place = content.index(b"NUMPY") + 128
        entry.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    elif how == "empty":
        entry.write_bytes(b"")
    elif how == "text":
        entry.write_bytes(b"hello")
    elif how == "single":
        with entry.open("wb") as stream:
            np.save(stream, np.arange(3))
    else:
        np.savez(entry, tokens=np.array([object()], object))
    with caplog.at_level(logging.WARNING):
        data = load("fsq-tokyo", root=path.parent)
    assert (data.tokens == expected.tokens).all()
    assert "made again" in caplog.text
    assert entries(own_cache) == [entry]
    assert entry.read_bytes() == content


def test_failure_while_writing_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full)
    arrays: Arrays = {"a": np.arange(3)}
    with caplog.at_level(logging.WARNING):
        assert remember(tmp_path / "x/entry.npz", lambda: arrays) is arrays
    assert "disk full" in caplog.text
    assert list((tmp_path / "x").iterdir()) == []


def test_fingerprints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "data/a.txt"
    file.parent.mkdir()
    file.write_bytes(b"one")
    first, folder = fingerprint(file), fingerprint(file.parent)
    os.utime(file, (5, 5))
    assert fingerprint(file) == first
    assert fingerprint(file.parent) != folder
    monkeypatch.setattr(cache, "WHOLE", 2)
    monkeypatch.setattr(cache, "SAMPLE", 1)
    large = fingerprint(file)
    file.write_bytes(b"two")
    os.utime(file, (5, 5))
    assert fingerprint(file) != large
    other = fingerprint(file)
    os.utime(file, (6, 6))
    assert fingerprint(file) != other


def test_entry_names_tell_options_apart(path: Path) -> None:
    names = {entry_path("x", (path,), CheckinRecipe(min_length=n)).name for n in (1, 2, 3)}
    assert len(names) == 3
