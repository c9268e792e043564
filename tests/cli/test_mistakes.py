"""What a person may get wrong around a log: one line that says what to do, and no traceback."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logs.habits import SMALL, write_log
from typer.testing import CliRunner

from labelmem.cli import app
from labelmem.logs.fit_command import fit_log
from labelmem.logs.rows import Columns

COLUMNS = "--user user --item place --time ts --device cpu"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log, a model of it, and files that are no use."""
    desk = tmp_path_factory.mktemp("desk")
    log = write_log(desk / "events.csv")
    fit_log(log, Columns("user", "place", "ts"), desk / "model", recipe=SMALL, show=False)
    noise = bytes(np.random.default_rng(0).integers(256, size=2000, dtype=np.uint8))
    for suffix in ("csv", "jsonl", "parquet", "csv.gz", "npz"):
        (desk / f"noise.{suffix}").write_bytes(b"\xff" + noise)
    (desk / "empty.csv").write_bytes(b"")
    (desk / "latin.csv").write_bytes("user,place,ts\nann,café,1\n".encode("latin-1"))
    (desk / "folder").mkdir()
    vectors = {"embeddings": np.eye(4, dtype=np.float32), "labels": np.array(list("abab"))}
    np.savez(desk / "vectors.npz", **vectors)
    return desk


def call(desk: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(desk)
    return CliRunner().invoke(app, line.split())


FILES = {
    "nowhere.csv": "there is no file nowhere.csv",
    "folder": "folder is a folder",
    "empty.csv": "empty.csv is",
    "noise.csv": "noise.csv is",
    "noise.jsonl": "noise.jsonl",
    "noise.parquet": "cannot be read as Parquet",
    "noise.csv.gz": "noise.csv.gz",
    "latin.csv": "latin.csv is",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "command",
    [f"fit %s {COLUMNS} --out new", "adapt model %s --device cpu", "adapt-embeddings %s"],
    ids=["fit", "adapt", "adapt-embeddings"],
)
def test_a_file_that_is_no_use(
    desk: Path, name: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = call(desk, command % name, monkeypatch)
    assert isinstance(shown.exception, SystemExit), shown.exception
    assert shown.exit_code == 2
    assert FILES[name] in shown.stderr and len(shown.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"fit events.csv {COLUMNS} --out no/new", "does not exist; make it first"),
        (f"fit events.csv {COLUMNS} --out events.csv", "exists already"),
        (f"fit events.csv {COLUMNS} --out model", "exists already"),
        (f"fit events.csv {COLUMNS} --out new --effort inf", "--effort"),
        (f"fit events.csv {COLUMNS} --out new --seed -1", "--seed"),
        ("fit events.csv --no-header --user 1 --item 9 --out new", "no column 9"),
        ("adapt model events.csv --top 0", "--top"),
        ("adapt model events.csv --user nope --device cpu", "no column nope"),
        ("adapt nowhere events.csv", "no model folder"),
        ("adapt events.csv events.csv", "no model folder"),
        ("adapt model events.csv --out model", "is a folder"),
        ("adapt model events.csv --report no/page.html", "does not exist"),
        ("predict model --user ann --top -1", "--top"),
        ("predict model", "--user"),
        ("explain model --user ann --item nope", "knows the item 'nope'"),
        ("inspect model --user ann", "nothing is kept of user 'ann'"),
        ("forget folder --user ann", "no model folder"),
        ("adapt-embeddings noise.npz", "cannot be read as npz"),
        ("adapt-embeddings events.csv", "neither npz nor Parquet"),
        ("adapt-embeddings vectors.npz --labels nope", "no array nope"),
        ("adapt-embeddings vectors.npz --lam -1", "--lam"),
        ("adapt-embeddings vectors.npz --margin nan", "margin is nan"),
        ("adapt-embeddings vectors.npz --states model", "holds something else"),
        ("adapt-embeddings vectors.npz --out folder", "is a folder"),
    ],
)
def test_a_call_that_cannot_be_meant(
    desk: Path, line: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = call(desk, line, monkeypatch)
    assert isinstance(shown.exception, SystemExit), shown.exception
    assert shown.exit_code == 2 and told in shown.stderr and "Traceback" not in shown.stderr
    assert not (desk / "new").exists()


@pytest.mark.parametrize("how", ["gone", "cut", "noise", "other"])
@pytest.mark.parametrize(
    "name", ["config.json", "labels.json", "model.safetensors", "combiner.safetensors"]
)
def test_a_model_folder_that_is_not_whole(
    desk: Path, name: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(desk / "model", tmp_path / "model")
    path = tmp_path / "model" / name
    content = path.read_bytes()
    path.unlink()
    if how != "gone":
        noise = (desk / "noise.csv").read_bytes()
        path.write_bytes({"cut": content[: len(content) // 2], "noise": noise, "other": b"7"}[how])
    shown = call(tmp_path, "predict model --user ann", monkeypatch)
    assert isinstance(shown.exception, SystemExit), shown.exception
    assert shown.exit_code == 2 and name in shown.stderr


def test_who_was_never_seen_is_said_to_be(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("predict", "explain"):
        shown = call(desk, f"{command} model --user ann", monkeypatch)
        assert shown.exit_code == 0 and "user ann was never seen" in shown.stderr


def test_one_is_not_many(desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(desk / "model", tmp_path / "model")
    write_log(tmp_path / "one.csv", [("ann", "place 1", 1_600_000_000)])
    shown = call(tmp_path, "adapt model one.csv --device cpu", monkeypatch)
    assert shown.exit_code == 0 and "1 event of 1 user and 1 item;" in shown.stderr
    assert "1 new user;" in shown.stdout
    assert "user ann: 1 event, " in call(tmp_path, "inspect model --user ann", monkeypatch).stdout
