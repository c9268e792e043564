from __future__ import annotations

import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch
from logs.habits import events, lines_of, write_log

from labelmem.errors import DataError, StorageError
from labelmem.logs.adapt_command import adapt_log
from labelmem.logs.folder import load_fitted
from labelmem.logs.states import FILE, States
from labelmem.logs.vocabulary import tokens_of

SMALL: dict[str, Any] = {"abreast": 12, "steps": 6, "show": False}


@pytest.fixture(scope="module")
def calm(model_folder: Path, log_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model that has been through the log undisturbed, and its ``out.jsonl``."""
    place = tmp_path_factory.mktemp("calm")
    shutil.copytree(model_folder, place / "model")
    adapt_log(place / "model", log_file, place / "out.jsonl", **SMALL)
    return place


def states_of(folder: Path, users: list[str]) -> dict[str, Any]:
    with States(folder) as states:
        return states.get(users)


def test_predictions_are_those_of_streams_one_by_one(calm: Path) -> None:
    """The slow way: one stream for each user, one event after another."""
    out, fitted = calm / "out.jsonl", load_fitted(calm / "model")
    names, labels = list(fitted.vocabulary.names), len(fitted.vocabulary)
    by_user = defaultdict(list)
    for line in lines_of(out):
        by_user[line["user"]].append(line)
    assert sum(len(lines) for lines in by_user.values()) == len(events())
    for user in ("person-0000", "person-0011"):
        truth = [place for who, place, _ in events() if who == user]
        assert [line["item"] for line in by_user[user]] == truth
        stream, own, previous = fitted.adapter.stream(), [], -1
        for line in by_user[user]:
            x = tokens_of(torch.tensor(previous), labels)
            probs = stream.predict(x).probs
            known = names + own
            best = [(known[i], float(probs[i])) for i in probs.topk(5).indices.tolist()]
            assert [name for name, _ in line["top"]] == [name for name, p in best if p > 0]
            assert [p for _, p in line["top"]] == pytest.approx([p for _, p in best], abs=2e-5)
            item = line["item"]
            if item not in known:
                assert line["p"] == 0 and line["rank"] is None
                own.append(item)
            else:
                assert line["p"] == pytest.approx(float(probs[known.index(item)]), abs=2e-5)
            previous = (names + own).index(item)
            stream.observe(previous)


def test_figures_follow_from_the_predictions(calm: Path, log_file: Path) -> None:
    told = adapt_log(calm / "model", log_file, calm / "out.jsonl", **SMALL)
    ranks = [line["rank"] for line in lines_of(calm / "out.jsonl")]
    hits = sum(rank is not None and rank < 1.5 for rank in ranks) / len(ranks)
    assert told["figures"]["accuracy"] == pytest.approx(hits)
    assert told["events"] == len(ranks) == sum(part["events"] for part in told["by_position"])


def test_two_days_are_the_same_as_one(calm: Path, folder: Path, tmp_path: Path) -> None:
    rows = events()
    cut = rows[len(rows) // 2][2]
    days = [[row for row in rows if (row[2] < cut) == first] for first in (True, False)]
    for i, day in enumerate(days):
        path = write_log(tmp_path / f"day{i}.csv", day)
        adapt_log(folder, path, tmp_path / f"day{i}.jsonl", **SMALL)
    both = [lines_of(tmp_path / f"day{i}.jsonl") for i in range(2)]
    key = ("user", "time", "item", "rank")
    parts = [[line[name] for name in key] for day in both for line in day]
    whole = [[line[name] for name in key] for line in lines_of(calm / "out.jsonl")]
    assert sorted(parts, key=str) == sorted(whole, key=str)
    users = sorted({row[0] for row in rows})
    one, two = states_of(calm / "model", users), states_of(folder, users)
    for user in users:
        assert one[user].own == two[user].own and one[user].observed == two[user].observed


def test_a_file_is_taken_in_once(calm: Path, log_file: Path, tmp_path: Path) -> None:
    files = calm / "out.jsonl", calm / "model" / FILE
    before = [path.read_bytes() for path in files]
    again = adapt_log(calm / "model", log_file, tmp_path / "new.jsonl", **SMALL)
    assert again["already"] and again["events"] == len(events())
    assert [path.read_bytes() for path in files] == before
    assert not (tmp_path / "new.jsonl").exists()


def test_of_a_file_that_has_grown_only_the_new_rows_count(folder: Path, tmp_path: Path) -> None:
    rows, path, told = events(), tmp_path / "grows.csv", []
    write_log(path, rows[:200])
    adapt_log(folder, path, tmp_path / "a.jsonl", **SMALL)
    write_log(path, rows)
    adapt_log(folder, path, tmp_path / "b.jsonl", tell=told.append, **SMALL)
    assert any("going on after row 201" in line for line in told)
    assert len(lines_of(tmp_path / "b.jsonl")) == len(rows) - 200
    assert min(line["row"] for line in lines_of(tmp_path / "b.jsonl")) == 202
    with path.open("a") as file:
        file.write("\n")
    assert adapt_log(folder, path, tmp_path / "c.jsonl", **SMALL)["events"] == 0


def test_events_that_a_user_had_already_are_passed_over(folder: Path, tmp_path: Path) -> None:
    rows = events()
    adapt_log(folder, write_log(tmp_path / "a.csv", rows[:200]), None, **SMALL)
    path = write_log(tmp_path / "b.csv", [*rows[:200], *rows[200:]][::-1])  # another file
    with pytest.raises(DataError, match="earlier than a row above"):
        adapt_log(folder, path, None, policy="strict", **SMALL)
    told = adapt_log(folder, path, tmp_path / "b.jsonl", **SMALL)
    assert told["problems"]["late"] == 200 and told["events"] == len(rows) - 200


KILLED = """
import os, signal, sys
from pathlib import Path
from labelmem.logs.adapt_command import adapt_log
from labelmem.logs.states import States
folder, log, out = sys.argv[1:]
commit, calls = States.commit, []

def killed(self, *arguments):
    calls.append(1)
    if len(calls) == 3:  # the predictions of the third piece are written, nothing else is
        os.kill(os.getpid(), signal.SIGKILL)
    commit(self, *arguments)

States.commit = killed
adapt_log(Path(folder), Path(log), Path(out), abreast=12, steps=6, show=False)
"""


def test_killed_in_the_middle_it_ends_as_if_it_were_not(
    calm: Path, folder: Path, log_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    arguments = [str(folder), str(log_file), str(out)]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], timeout=120, check=False)
    assert done.returncode == -9
    half = out.read_bytes()
    whole = (calm / "out.jsonl").read_bytes()
    assert 0 < len(half) < len(whole)
    told: list[str] = []
    adapt_log(folder, log_file, out, tell=told.append, **SMALL)
    assert any("after piece 2 of" in line for line in told)
    assert out.read_bytes() == whole
    users = sorted({row[0] for row in events()})
    assert states_of(folder, users) == states_of(calm / "model", users)  # bit for bit


def test_a_changed_output_is_refused(folder: Path, log_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        _stop_after(patch, 3)
        adapt_log(folder, log_file, out, **SMALL)
    kept = out.read_bytes()
    out.write_bytes(kept[:10])
    with pytest.raises(StorageError, match="shorter than"):
        adapt_log(folder, log_file, out, **SMALL)
    with pytest.raises(StorageError, match="call it as it was begun"):
        adapt_log(folder, log_file, tmp_path / "other.jsonl", **SMALL)
    out.write_bytes(kept)
    assert adapt_log(folder, log_file, out, **SMALL)["events"] == len(events())


@pytest.mark.parametrize("pieces", [0, 4])
def test_stopped_anywhere_it_ends_as_if_it_were_not(
    pieces: int, calm: Path, folder: Path, log_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        _stop_after(patch, pieces)
        adapt_log(folder, log_file, out, **SMALL)
    adapt_log(folder, log_file, out, **SMALL)
    assert out.read_bytes() == (calm / "out.jsonl").read_bytes()
    users = sorted({row[0] for row in events()})
    assert states_of(folder, users) == states_of(calm / "model", users)


def _stop_after(patch: pytest.MonkeyPatch, pieces: int) -> None:
    commit, calls = States.commit, []

    def stopped(self: States, *arguments: Any) -> None:
        if len(calls) == pieces:
            raise KeyboardInterrupt
        calls.append(1)
        commit(self, *arguments)

    patch.setattr(States, "commit", stopped)


def test_one_file_after_the_other(folder: Path, log_file: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        _stop_after(patch, 1)
        adapt_log(folder, log_file, None, **SMALL)
    other = write_log(tmp_path / "other.csv", events(users=3, seed=1))
    with pytest.raises(StorageError, match=r"begun and not finished \(1 of"):
        adapt_log(folder, other, None, **SMALL)
    told: list[str] = []
    assert adapt_log(folder, other, None, abandon=True, tell=told.append, **SMALL)["events"] > 0
    assert told[0] == "gave up 1 unfinished file"


def test_an_output_that_is_there_is_not_overwritten(
    folder: Path, log_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "out.jsonl").write_text("mine")
    with pytest.raises(StorageError, match="exists already"):
        adapt_log(folder, log_file, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text() == "mine"


def test_an_output_that_cannot_be_made_begins_nothing(
    folder: Path, log_file: Path, tmp_path: Path
) -> None:
    with pytest.raises(StorageError, match="cannot write"):
        adapt_log(folder, log_file, tmp_path / "no" / "out.jsonl")
    assert adapt_log(folder, log_file, tmp_path / "out.jsonl", show=False)["events"] > 0
