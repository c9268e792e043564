from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from logs.habits import lines_of
from torch import nn

from labelmem import Adapter, MemoryConfig
from labelmem.errors import DataError, MismatchError, StorageError
from labelmem.logs.embeddings import adapt_embeddings
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
