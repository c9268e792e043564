"""Labels that are known before a stream begins: the head, and that streams do not lose them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from logs.habits import lines_of

from labelmem.logs.embeddings import adapt_embeddings
from labelmem.logs.known import Known, train_head
from labelmem.logs.vectors import VectorColumns, read_vectors


def test_a_head_says_the_same_on_any_scale() -> None:
    X, y = torch.randn(60, 5, generator=torch.Generator().manual_seed(0)), torch.arange(60) % 3
    said = train_head(X, y, 3)(X)
    for scale, shift in ((1e-3, 0.0), (50.0, 300.0)):
        moved = scale * X + shift
        torch.testing.assert_close(train_head(moved, y, 3)(moved), said, atol=0.01, rtol=0.0)


def test_every_example_trains_the_head() -> None:
    """Of a label with one example none is held out."""
    X, y = torch.eye(12), torch.arange(12)
    logits = train_head(X, y, 12)(X)
    lead = logits.diagonal() - (logits - torch.diag(torch.full((12,), torch.inf))).amax(1)
    assert lead.min() > 0.9 * lead.max()


def test_training_is_the_same_each_time() -> None:
    X, y = torch.randn(60, 5), torch.arange(60) % 3
    one, other = train_head(X, y, 3), train_head(X, y, 3)
    assert torch.equal(one.weight, other.weight) and torch.equal(one.bias, other.bias)


def test_rows_are_known_by_what_they_say_not_by_their_file(tmp_path: Path) -> None:
    X, y = np.eye(4, dtype=np.float32), np.array(list("abab"))
    swapped = np.array(list("baba"))

    def settings(name: str, **arrays: np.ndarray) -> dict[str, str]:
        np.savez(tmp_path / name, **arrays)
        return Known(*read_vectors(tmp_path / name, VectorColumns())).settings()

    one = settings("one.npz", embeddings=X, labels=y)
    assert one == settings("other.npz", labels=y, embeddings=X, more=y)
    assert one != settings("swapped.npz", embeddings=X, labels=swapped)
    assert one != settings("moved.npz", embeddings=X[::-1], labels=y)


def test_what_streams_begin_with_is_read_as_it_was_made(tmp_path: Path) -> None:
    X, y = np.random.default_rng(0).normal(size=(40, 5)), np.array(list("abcd") * 10)
    np.savez(tmp_path / "known.npz", embeddings=X, labels=y)
    known = Known(*read_vectors(tmp_path / "known.npz", VectorColumns()))
    made, read = known.adapter(tmp_path), known.adapter(tmp_path)
    assert made.online is not None and read.online is not None
    one = made.online.tensors() | made.backbone.model.state_dict()
    other = read.online.tensors() | read.backbone.model.state_dict()
    assert one.keys() == other.keys() >= {"weight", "bias", "statistics.scatter"}
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_known_digits_stay_known_and_new_ones_are_learned(tmp_path: Path) -> None:
    """Three users, each of whom shows six known digits and four new ones.

    With five draws of what is taught, .6 to 1.3 points of the known ones were lost.
    """
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = datasets.load_digits(return_X_y=True)
    X, order = X.astype(np.float32), np.random.default_rng(2).permutation(len(y))
    taught, met = order[:597][y[order[:597]] < 6], order[597:]
    users, known = np.repeat(np.arange(3), 400), y[met] < 6
    early = np.tile(np.arange(400) < 300, 3)
    np.savez(tmp_path / "known.npz", embeddings=X[taught], labels=y[taught])
    np.savez(tmp_path / "met.npz", embeddings=X[met], labels=y[met], who=users)
    columns, out = VectorColumns(user="who"), tmp_path / "out.jsonl"
    told = adapt_embeddings(
        tmp_path / "met.npz", out, known=tmp_path / "known.npz", columns=columns, show=False
    )
    lines = sorted(lines_of(out), key=lambda line: line["row"])
    right = np.array([line["rank"] == 1 for line in lines])
    head = train_head(torch.from_numpy(X[taught]), torch.from_numpy(y[taught]), 6)
    alone = head(torch.from_numpy(X[met])).argmax(1).numpy() == y[met]
    assert right[early & known].mean() >= alone[early & known].mean() - 0.015
    assert right[early & ~known].mean() > 0.75 and right[~early & ~known].mean() > 0.85
    assert told["head_alone"] == pytest.approx(alone.mean())
    assert told["figures"]["accuracy"] == pytest.approx(right.mean()) and right.mean() > 0.9
