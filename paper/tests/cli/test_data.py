from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from labelmem_paper.cli import app
from labelmem_paper.datasets import fetch as module
from labelmem_paper.datasets import info, names
from labelmem_paper.datasets.registry import Info
from typer.testing import CliRunner

runner = CliRunner()

LINE = "1\tv\tc\tn\t1\t1\t0\tTue Apr 03 18:00:09 +0000 2012\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LABELMEM_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "cache"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def publisher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Serve a folder in place of every publisher."""
    folder = tmp_path / "published"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()

    def local(name: str) -> Info:
        facts = info(name)
        base = f"http://127.0.0.1:{server.server_port}/"
        files = tuple(dataclasses.replace(file, url=base + file.name) for file in facts.files)
        return dataclasses.replace(facts, files=files)

    monkeypatch.setattr(module, "info", local)
    yield folder
    server.shutdown()
    server.server_close()
    thread.join()


def test_list_shows_what_is_here(tmp_path: Path) -> None:
    (tmp_path / "dataset_TSMC2014_NYC.txt").write_text(LINE)
    shown = runner.invoke(app, ["data", "list", "--root", str(tmp_path)])
    assert shown.exit_code == 0, shown.output
    for name in names():
        assert name in shown.output
    assert "CC BY-NC-ND 4.0" in shown.output
    (row,) = [line for line in shown.output.splitlines() if "fsq-nyc" in line]
    assert "yes, raw" in row


def test_list_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dataset_TSMC2014_NYC.txt"
    path.write_text(LINE)
    monkeypatch.setenv("LABELMEM_DATA", str(tmp_path))
    rows = {
        row["name"]: row
        for row in json.loads(runner.invoke(app, ["data", "list", "--json"]).stdout)
    }
    assert list(rows) == list(names())
    assert rows["fsq-nyc"]["here"]["paths"] == [str(path)]
    assert rows["geolife"]["here"] is None
    assert rows["omniglot"]["licence"] == "MIT"


def test_stats(tmp_path: Path) -> None:
    line = "{}\t2010-10-17T01:48:53Z\t39.7\t-104.9\tvenue{}\n"
    text = "".join(line.format(user, n) for user in range(10) for n in range(60))
    (tmp_path / "loc-brightkite_totalCheckins.txt").write_text(text)
    root = ["--root", str(tmp_path)]
    rows = json.loads(runner.invoke(app, ["data", "stats", "--json", *root]).stdout)
    assert rows[0]["ours"] == {"train": 8, "test": 2, "mean_length": 60.0, "labels": 60}
    assert rows[1]["ours"] is None
    markdown = runner.invoke(app, ["data", "stats", "--markdown", *root]).stdout
    assert markdown.startswith("| data set |")
    plain = runner.invoke(app, ["data", "stats", *root])
    assert "22,811" in plain.stdout
    assert "not here" in plain.stdout


def test_stats_of_a_broken_file(tmp_path: Path) -> None:
    (tmp_path / "loc-brightkite_totalCheckins.txt").write_text("nonsense [/]\n")
    shown = runner.invoke(app, ["data", "stats", "--root", str(tmp_path)])
    assert shown.exit_code == 2
    assert "line 1: found 'nonsense [/]', expected 5 fields" in shown.stderr
    assert "Traceback" not in shown.output


def test_fetch_shows_licence_citation_and_checksum(publisher: Path, own_cache: Path) -> None:
    for part in ("train", "test"):
        (publisher / f"{part}.csv").write_text("text,category\nhello,greet\n")
    shown = runner.invoke(app, ["data", "fetch", "banking77"])
    assert shown.exit_code == 0, shown.output
    for text in ("CC BY 4.0", "Casanueva", "sha256", "not known beforehand"):
        assert text in shown.stderr
    assert (own_cache / "labelmem/data/banking77/test.csv").exists()
    listed = json.loads(runner.invoke(app, ["data", "list", "--json"]).stdout)
    assert next(row for row in listed if row["name"] == "banking77")["here"]["form"] == "raw"


def test_fetch_into_a_folder(publisher: Path, tmp_path: Path) -> None:
    (publisher / "text8.zip").write_bytes(b"x")
    shown = runner.invoke(app, ["data", "fetch", "text8", "--to", str(tmp_path / "mine")])
    assert shown.exit_code == 0, shown.output
    assert "LABELMEM_DATA" in shown.stderr
    assert (tmp_path / "mine/text8.zip").read_bytes() == b"x"


def test_fetch_of_an_altered_file(publisher: Path, own_cache: Path) -> None:
    (publisher / "images_background.zip").write_bytes(b"altered")
    shown = runner.invoke(app, ["data", "fetch", "omniglot"])
    assert shown.exit_code == 2
    assert "its md5 is" in shown.stderr
    assert list((own_cache / "labelmem/data/omniglot").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [("geolife", "Accept Microsoft's licence"), ("nothing", "there is no data set 'nothing'")],
)
def test_fetch_that_cannot_be_done(name: str, text: str) -> None:
    shown = runner.invoke(app, ["data", "fetch", name])
    assert shown.exit_code == 2
    assert text in shown.stderr


def test_fetch_of_what_is_made_here() -> None:
    shown = runner.invoke(app, ["data", "fetch", "synthetic"])
    assert shown.exit_code == 0
    assert "nothing to fetch" in shown.stderr
