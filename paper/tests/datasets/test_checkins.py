from __future__ import annotations

import gzip
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from labelmem_paper.datasets import CheckinRecipe, load

from labelmem.errors import DataError, MissingDataError

Write = Callable[[str, bytes], Path]
ALL = CheckinRecipe(test_share=0.5)

SNAP = (
    "0\t2010-10-17T01:48:53Z\t39.747652\t-104.99251\tbbb\n"
    "0\t2010-10-16T06:02:04Z\t39.891383\t-105.070814\taaa\n"
    "0\t2010-10-16T06:02:04Z\t39.891077\t-105.068532\tccc\n"
    "7\t\t\t\t\n"
    "1\t2010-10-15T01:00:00Z\t0.0\t0.0\t00000000000000000000000000000000\n"
    "1\t2010-10-14T01:00:00Z\t39.750469\t-104.999073\t\n"
    "1\t2010-10-12T00:00:00Z\t39.752713\t-104.996337\taaa\n"
)

TSMC = (
    "470\tv2\tcat\tArts & Crafts Store\t40.719\t-74.002\t-240\tTue Apr 03 18:00:09 +0000 2012\n"
    "979\tv1\tcat\tCaf\xe9\t40.606\t-74.044\t-240\tTue Apr 03 18:00:25 +0000 2012\n"
    "470\tv1\tcat\tBridge\t40.606\t-74.044\t-240\tTue Apr 03 17:59:00 +0000 2012\n"
).encode("latin-1")


@pytest.mark.parametrize(
    "name", ["loc-brightkite_totalCheckins.txt", "Brightkite_totalCheckins.txt"]
)
def test_snap_runs_backwards_and_has_holes(write: Write, tmp_path: Path, name: str) -> None:
    write(name, SNAP.encode())
    data = load("brightkite", ALL, root=tmp_path)
    assert data.users.tolist() == [0, 1]
    assert [[data.names[y] for y in sequence] for sequence in data] == [
        ["ccc", "aaa", "bbb"],
        ["aaa"],
    ]
    assert (data.source.form, data.source.subset) == ("raw", False)


def test_snap_as_it_is_downloaded(write: Write, tmp_path: Path) -> None:
    write("brightkite/loc-brightkite_totalCheckins.txt.gz", gzip.compress(SNAP.encode()))
    assert len(load("brightkite", ALL, root=tmp_path)) == 2


@pytest.mark.parametrize(("name", "city"), [("fsq-nyc", "NYC"), ("fsq-tokyo", "TKY")])
@pytest.mark.parametrize("packed", [False, True])
def test_tsmc2014(write: Write, tmp_path: Path, name: str, city: str, packed: bool) -> None:
    if packed:
        with zipfile.ZipFile(tmp_path / "dataset_tsmc2014.zip", "w") as archive:
            archive.writestr("dataset_tsmc2014/readme.txt", "hello")
            archive.writestr(f"dataset_tsmc2014/dataset_TSMC2014_{city}.txt", TSMC)
    else:
        write(f"dataset_TSMC2014_{city}.txt", TSMC)
    data = load(name, ALL, root=tmp_path)
    assert data.users.tolist() == [470, 979]
    assert [[data.names[y] for y in sequence] for sequence in data] == [["v1", "v2"], ["v1"]]


def test_archive_without_the_city(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "dataset_tsmc2014.zip", "w") as archive:
        archive.writestr("dataset_tsmc2014/dataset_TSMC2014_NYC.txt", TSMC)
    with pytest.raises(DataError, match=r"holds no dataset_TSMC2014_TKY\.txt"):
        load("fsq-tokyo", ALL, root=tmp_path)


COMPACT_NYC = (
    "user\tunix_utc\tvenue\tlat\tlon\ttime_quality\n"
    "1\t100\tb\t1.0\t1.0\t0\n1\t50\ta\t1.0\t1.0\t0\n1\t70\tc\t1.0\t1.0\t3\n"
)
COMPACT_TOKYO = (
    "user\torder\tvenue\tlat\tlon\tsession\tsource_split\n"
    "0\t1\t20\t35.7\t139.8\t0\ttrain\n0\t0\t10\t35.7\t139.8\t0\ttrain\n"
)
COMPACT_BRIGHTKITE = (
    "user\torder\tunix_utc\tvenue\tlat\tlon\n5\t1\t123\tbb\t1.0\t1.0\n5\t0\t\taa\t1.0\t1.0\n"
)


def test_compact_files(write: Write, tmp_path: Path) -> None:
    write("fsq_nyc.tsv.gz", gzip.compress(COMPACT_NYC.encode()))
    write("fsq_tokyo.tsv.gz", gzip.compress(COMPACT_TOKYO.encode()))
    write("brightkite.tsv.xz", lzma.compress(COMPACT_BRIGHTKITE.encode()))
    nyc = load("fsq-nyc", ALL, root=tmp_path)
    assert [nyc.names[y] for y in nyc[0]] == ["a", "c", "b"]
    exact = load("fsq-nyc", CheckinRecipe(exact_times_only=True), root=tmp_path)
    assert [exact.names[y] for y in exact[0]] == ["a", "b"]
    tokyo, brightkite = (load(n, ALL, root=tmp_path) for n in ("fsq-tokyo", "brightkite"))
    assert [tokyo.names[y] for y in tokyo[0]] == ["10", "20"]
    assert [brightkite.names[y] for y in brightkite[0]] == ["aa", "bb"]
    assert (nyc.source.subset, tokyo.source.subset, brightkite.source.subset) == (False, True, True)


def test_raw_is_preferred_to_compact_in_the_same_folder(write: Write, tmp_path: Path) -> None:
    write("fsq_nyc.tsv.gz", gzip.compress(COMPACT_NYC.encode()))
    write("dataset_TSMC2014_NYC.txt", TSMC)
    assert load("fsq-nyc", ALL, root=tmp_path).source.form == "raw"


def test_empty_after_filtering_names_file_and_remedy(write: Write, tmp_path: Path) -> None:
    write("dataset_TSMC2014_NYC.txt", TSMC)
    with pytest.raises(
        DataError, match=r"nothing is left of the 3 check-ins in .*NYC\.txt.*Loosen"
    ):
        load("fsq-nyc", root=tmp_path)


@pytest.mark.parametrize(
    ("bad", "what"),
    [("1\tv\n", "8 fields"),
     ("x\tv\tc\tn\t1\t1\t0\tTue Apr 03 18:00:09 +0000 2012\n", "whole number"),
     ("1\t\tc\tn\t1\t1\t0\tTue Apr 03 18:00:09 +0000 2012\n", "a venue"),
     ("1\tv\tc\tn\t1\t1\t0\tyesterday\n", "a time")],
)  # fmt: skip
def test_malformed_line(write: Write, tmp_path: Path, bad: str, what: str) -> None:
    write("dataset_TSMC2014_NYC.txt", TSMC + bad.encode())
    with pytest.raises(DataError, match=rf"dataset_TSMC2014_NYC\.txt, line 4: .*{what}"):
        load("fsq-nyc", ALL, root=tmp_path)


def test_wrong_header(write: Write, tmp_path: Path) -> None:
    write("fsq_nyc.tsv.gz", gzip.compress(b"a\tb\n"))
    with pytest.raises(DataError, match="line 1: found"):
        load("fsq-nyc", ALL, root=tmp_path)


@pytest.mark.parametrize("content", [b"", gzip.compress(b"")], ids=["empty", "empty archive"])
def test_empty_file(write: Write, tmp_path: Path, content: bytes) -> None:
    name = "loc-brightkite_totalCheckins.txt" + (".gz" if content else "")
    write(name, content)
    with pytest.raises(DataError, match="is empty"):
        load("brightkite", ALL, root=tmp_path)


def test_cut_off_archives(write: Write, tmp_path: Path) -> None:
    write("loc-brightkite_totalCheckins.txt.gz", gzip.compress(SNAP.encode() * 99)[:-20])
    with pytest.raises(DataError, match="cannot be unpacked"):
        load("brightkite", ALL, root=tmp_path)
    write("dataset_tsmc2014.zip", b"PK\x03\x04 nonsense")
    with pytest.raises(DataError, match="cannot be unpacked"):
        load("fsq-nyc", ALL, root=tmp_path)


def test_missing_file_says_what_was_looked_for_and_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError) as caught:
        load("brightkite", root=tmp_path)
    for part in ("loc-brightkite_totalCheckins.txt", str(tmp_path), "data fetch brightkite"):
        assert part in str(caught.value)
