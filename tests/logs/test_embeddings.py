from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from logs.habits import lines_of
from torch import nn

from labelmem import Adapter, MemoryConfig
from labelmem.errors import ConfigError, DataError, MismatchError, StorageError
from labelmem.logs.embeddings import adapt_embeddings
from labelmem.logs.states import States
from labelmem.logs.users import forget_user
from labelmem.logs.vectors import VectorColumns, read_vectors

MEMORY = MemoryConfig(lam=10.0, cells_per_label=2)


def clouds(rows: int = 60, labels: int = 4, seed: int = 0) -> dict[str, Any]:
    """Points about one centre for each label."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(labels, 6))
    y = rng.integers(labels, size=rows)
    x = centres[y] + 0.3 * rng.normal(size=(rows, 6))
    users = np.array([f"u{i}" for i in rng.integers(3, size=rows)])
    return {
        "embeddings": x.astype(np.float32),
        "labels": np.array(["a", "b", "c", "d"])[y],
        "who": users,
    }


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_a_memory_alone_learns_the_labels(tmp_path: Path) -> None:
    data = clouds()
    path = saved(tmp_path / "points.npz", **data)
    out = tmp_path / "out.jsonl"
    told = adapt_embeddings(path, out, memory=MEMORY, show=False)
    assert told["events"] == 60 and told["figures"]["accuracy"] > 0.8
    assert told["baselines"]["most_common_so_far"] < 0.5
    stream = Adapter(nn.Identity(), labels=(), memory=MEMORY).stream()
    for line, x, y in zip(lines_of(out), data["embeddings"], data["labels"], strict=True):
        best = stream.predict(torch.from_numpy(x)).top(5)
        assert line["item"] == y
        assert [p for _, p in line["top"]] == pytest.approx([p for _, p in best if p > 0], abs=2e-5)
        stream.observe(str(y))


def test_memories_are_kept_for_each_user_and_continued(tmp_path: Path) -> None:
    data, columns = clouds(), VectorColumns(user="who")
    whole = saved(tmp_path / "whole.npz", **data)
    one = adapt_embeddings(whole, tmp_path / "whole.jsonl", columns=columns, memory=MEMORY)
    parts = []
    for i, part in enumerate((slice(0, 30), slice(30, 60))):
        path = saved(tmp_path / f"{i}.npz", **{name: x[part] for name, x in data.items()})
        out = tmp_path / f"{i}.jsonl"
        told = adapt_embeddings(path, out, tmp_path / "kept", columns=columns, memory=MEMORY)
        assert adapt_embeddings(path, out, tmp_path / "kept", columns=columns, memory=MEMORY)[
            "already"
        ]
        parts += [(line["user"], line["row"] + 30 * i, line["rank"]) for line in lines_of(out)]
        assert told["users"] == 3
    lines = lines_of(tmp_path / "whole.jsonl")
    assert sorted(parts) == sorted((line["user"], line["row"], line["rank"]) for line in lines)
    assert one["events"] == 60
    assert forget_user(tmp_path / "kept", "u1")["found"]


def test_other_settings_do_not_go_on(tmp_path: Path) -> None:
    path = saved(tmp_path / "points.npz", **clouds())
    adapt_embeddings(path, None, tmp_path / "kept", memory=MEMORY)
    with pytest.raises(MismatchError, match="was begun with"):
        adapt_embeddings(path, None, tmp_path / "kept", memory=MemoryConfig(lam=3.0))
    with pytest.raises(StorageError, match="something else"):
        adapt_embeddings(path, None, tmp_path, memory=MEMORY)


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """Examples of the labels a and b; c and d are new then."""
    data = clouds(rows=80)
    old = np.isin(data["labels"], ["a", "b"])
    return saved(tmp_path / "known.npz", **{name: x[old] for name, x in data.items()})


def met(path: Path, part: slice = slice(None)) -> Path:
    data = clouds(rows=140)
    return saved(path, **{name: x[80:][part] for name, x in data.items()})


def test_known_labels_are_known_at_once_and_new_ones_soon(known: Path, tmp_path: Path) -> None:
    out, told = tmp_path / "out.jsonl", []
    outcome = adapt_embeddings(
        met(tmp_path / "met.npz"), out, known=known, tell=told.append, show=False
    )
    lines = lines_of(out)
    first = [line for line in lines[:20] if line["item"] in "ab"]
    later = [line for line in lines[30:] if line["item"] in "cd"]
    assert first and all(line["rank"] == 1 for line in first)
    assert later and np.mean([line["rank"] == 1 for line in later]) > 0.8
    assert outcome["head_alone"] == np.mean([line["item"] in "ab" for line in lines])
    assert any(line.startswith("known from") for line in told)


def test_continued_beside_a_head_it_ends_as_if_it_were_one_run(known: Path, tmp_path: Path) -> None:
    """Two files, the first of which is stopped after a piece; and the head is not trained again."""
    options: dict[str, Any] = {"columns": VectorColumns(user="who"), "known": known, "show": False}
    options |= {"steps": 6}
    whole = adapt_embeddings(met(tmp_path / "whole.npz"), tmp_path / "whole.jsonl", **options)
    parts = []
    for i, part in enumerate((slice(0, 30), slice(30, 60))):
        path, out, kept = (
            met(tmp_path / f"{i}.npz", part),
            tmp_path / f"{i}.jsonl",
            tmp_path / "kept",
        )
        if i == 0:
            with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
                stop_after(patch, 1)
                adapt_embeddings(path, out, kept, **options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("labelmem.logs.known.train_head", None)
            told = adapt_embeddings(path, out, kept, **options)
            assert not told["already"] and told["users"] == 3
            assert adapt_embeddings(path, out, kept, **options)["already"]
        parts += [line | {"row": line["row"] + 30 * i} for line in lines_of(out)]
    whole_lines = lines_of(tmp_path / "whole.jsonl")
    order = sorted(range(60), key=lambda i: parts[i]["row"])
    for line, other in zip(
        (parts[i] for i in order), sorted(whole_lines, key=lambda line: line["row"]), strict=True
    ):
        assert (line["row"], line["user"], line["rank"]) == (
            other["row"],
            other["user"],
            other["rank"],
        )
        assert line["p"] == pytest.approx(other["p"], abs=2e-6)
    assert whole["events"] == 60
    forgotten = forget_user(tmp_path / "kept", "u1")
    assert forgotten["found"] and forgotten["verified"] and forgotten["probes"]


def stop_after(patch: pytest.MonkeyPatch, pieces: int) -> None:
    """Interrupt the commit that follows so many."""
    commit, calls = States.commit, []

    def stopped(self: States, *arguments: Any) -> None:
        if len(calls) == pieces:
            raise KeyboardInterrupt
        calls.append(1)
        commit(self, *arguments)

    patch.setattr(States, "commit", stopped)


def test_a_file_that_was_begun_beside_a_head_can_be_given_up(known: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        stop_after(patch, 0)
        adapt_embeddings(met(tmp_path / "a.npz"), None, kept, known=known)
    other = met(tmp_path / "b.npz", slice(30))
    with pytest.raises(StorageError, match="begun and not finished"):
        adapt_embeddings(other, None, kept, known=known)
    assert adapt_embeddings(other, None, kept, known=known, abandon=True)["events"] == 30


def test_other_known_examples_do_not_go_on(known: Path, tmp_path: Path) -> None:
    path, kept, free = met(tmp_path / "met.npz"), tmp_path / "kept", tmp_path / "free"
    adapt_embeddings(path, None, kept, known=known)
    fewer = saved(tmp_path / "fewer.npz", **{n: x[1:] for n, x in np.load(known).items()})
    for given in (fewer, None):
        with pytest.raises(MismatchError, match=r"with known examples, not with these; give the"):
            adapt_embeddings(path, None, kept, known=given)
    adapt_embeddings(path, None, free)
    with pytest.raises(MismatchError, match="without known examples; leave --known out"):
        adapt_embeddings(path, None, free, known=known)


def test_known_examples_that_cannot_be_used(known: Path, tmp_path: Path) -> None:
    path = met(tmp_path / "met.npz")
    wide = saved(tmp_path / "wide.npz", embeddings=np.ones((3, 9)), labels=np.array(list("aba")))
    with pytest.raises(DataError, match=r"wide.npz have 9 dimensions, those of .*met.npz have 6"):
        adapt_embeddings(path, known=wide)
    empty = saved(tmp_path / "empty.npz", embeddings=np.ones((0, 6)), labels=np.array([], "U1"))
    with pytest.raises(DataError, match=r"empty.npz: the embeddings have shape \(0, 6\)"):
        adapt_embeddings(path, known=empty)
    with pytest.raises(DataError, match=r"there is no file nowhere\.npz"):
        adapt_embeddings(path, known=Path("nowhere.npz"))
    with pytest.raises(ConfigError, match="lam, cells and margin"):
        adapt_embeddings(path, known=known, memory=MEMORY)


def test_bad_rows_of_the_known_file_are_told_or_left_out(known: Path, tmp_path: Path) -> None:
    path, arrays, told = met(tmp_path / "met.npz"), dict(np.load(known)), []
    arrays["embeddings"][2, 0] = np.nan
    saved(known, **arrays)
    with pytest.raises(DataError, match=r"known.npz: 1 row .*\(row 3\)"):
        adapt_embeddings(path, known=known)
    adapt_embeddings(path, known=known, policy="skip", tell=told.append, show=False)
    assert any("(row 3)" in line for line in told)


def test_parquet_is_read_the_same(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    data = clouds(rows=12)
    table = {"vector": data["embeddings"].tolist(), "labels": data["labels"].tolist()}
    parquet.write_table(arrow.table(table), tmp_path / "points.parquet")
    log, matrix = read_vectors(tmp_path / "points.parquet", VectorColumns(embedding="vector"))
    assert np.array_equal(matrix, data["embeddings"])
    assert [log.items[i] for i in log.item] == data["labels"].tolist()


def test_rows_that_cannot_be_used(tmp_path: Path) -> None:
    data = clouds(rows=12)
    data["embeddings"][4, 2] = np.nan
    data["labels"][7] = ""
    path = saved(tmp_path / "points.npz", **data)
    with pytest.raises(DataError, match=r"no item \(row 8\).*embedding.*\(row 5\)"):
        read_vectors(path, VectorColumns())
    log, matrix = read_vectors(path, VectorColumns(), "skip")
    assert len(log) == len(matrix) == 10 and log.problems.counts == {"vector": 1, "item": 1}


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"embeddings": np.zeros((3, 2))}, "has no array labels; its arrays are embeddings"),
        ({"embeddings": np.zeros((3, 2)), "labels": np.zeros(2)}, "3 embeddings, 2 labels"),
        ({"embeddings": np.zeros(3), "labels": np.zeros(3)}, r"shape \(3,\)"),
        ({"embeddings": np.array(["x"]), "labels": np.zeros(1)}, "are not numbers"),
    ],
    ids=["no labels", "too few", "flat", "text"],
)
def test_files_that_do_not_fit_are_explained(
    arrays: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=told):
        read_vectors(saved(tmp_path / "points.npz", **arrays), VectorColumns())


def test_nonsense_is_explained(tmp_path: Path) -> None:
    (tmp_path / "points.npz").write_bytes(b"nonsense")
    with pytest.raises(DataError, match="cannot be read as npz"):
        read_vectors(tmp_path / "points.npz", VectorColumns())
