"""What must hold on the real files, for every data set."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labelmem_paper.datasets import Images, Intents, Sequences, Text, load, names, source_of

ROOT = os.environ.get("LABELMEM_DATA")

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not ROOT, reason="LABELMEM_DATA is not set: no real data to read"),
]

SHAPES = {
    "brightkite": (2319, 205.38, 11340, (1618, 180, 521)),
    "fsq-nyc": (932, 91.34, 8279, (602, 67, 263)),
    "fsq-tokyo": (2173, 143.18, 7038, (1365, 152, 656)),
    "geolife": (240, 7491.18, 30669, (198, 22, 20)),
    "yoochoose": (58622, 12.57, 20141, (42208, 4690, 11724)),
}
"""Sequences, mean length, labels and parts that the compact files give."""

UNUSED = {"geolife": 4}
"""Cells that occur only outside the 240 longest sequences."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("real")


@pytest.fixture(autouse=True)
def one_cache(kept: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prepare every data set once for all tests here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept))


def get(name: str, seed: int = 0) -> Any:
    source = source_of(name, ROOT)
    if source is None:
        pytest.skip(f"{name} is not in LABELMEM_DATA")
    return load(name, seed=seed, root=ROOT)


def content(data: Any) -> str:
    """Hash everything a data set holds."""
    digest = hashlib.sha256()
    for field in ("tokens", "offsets", "users", "train", "valid", "test", "pixels", "character",
                  "drawer", "background", "categories"):  # fmt: skip
        if hasattr(data, field):
            digest.update(np.ascontiguousarray(getattr(data, field)).tobytes())
    for field in ("names", "vocabulary", "texts"):
        digest.update(repr(getattr(data, field, "")).encode())
    return digest.hexdigest()


def parts(data: Any) -> list[np.ndarray[Any, Any]]:
    return [data.split.train, data.split.valid, data.split.test]


@pytest.mark.parametrize("name", names())
def test_prepared_and_kept_are_the_same(name: str) -> None:
    fresh, kept = get(name), get(name)
    assert content(fresh) == content(kept)


@pytest.mark.parametrize("name", names())
def test_labels_are_contiguous(name: str) -> None:
    data = get(name)
    if isinstance(data, Sequences):
        tokens = data.tokens
    elif isinstance(data, Text):
        tokens = np.concatenate([data.train, data.valid, data.test])
    else:
        tokens = data.character if isinstance(data, Images) else data.categories
    counts = np.bincount(tokens, minlength=data.labels)
    assert len(counts) == data.labels
    if name != "synthetic":
        assert (counts == 0).sum() == UNUSED.get(name, 0)
        assert len(set(getattr(data, "names", None) or data.vocabulary)) == data.labels


@pytest.mark.parametrize("name", names())
def test_parts_are_disjoint_and_follow_the_seed(name: str) -> None:
    data, again, other = get(name), get(name), get(name, seed=1)
    if not isinstance(data, Sequences | Intents):
        assert content(data) == content(other)
        return
    whole = np.concatenate(parts(data))
    assert sorted(whole.tolist()) == list(range(len(data)))
    assert all((a == b).all() for a, b in zip(parts(data), parts(again), strict=True))
    same = all(np.array_equal(a, b) for a, b in zip(parts(data), parts(other), strict=True))
    assert same == (name == "yoochoose"), "only the split by time ignores the seed"
    if isinstance(data, Sequences):
        users = [set(data.users[part].tolist()) for part in parts(data)]
        assert not (users[0] & users[1] or users[0] & users[2] or users[1] & users[2])


@pytest.mark.parametrize("name", SHAPES)
def test_figures_of_the_compact_files(name: str) -> None:
    data = get(name)
    if data.source.form != "compact":
        pytest.skip("the figures are those of the compact files")
    sizes = tuple(len(part) for part in parts(data))
    assert (len(data), round(data.mean_length, 2), data.labels, sizes) == SHAPES[name]


def test_omniglot_is_complete() -> None:
    data = get("omniglot")
    assert (len(data), data.labels, int(data.background.sum())) == (32460, 1623, 964)
    assert (np.bincount(data.character) == 20).all()
    assert len(set(data.alphabets)) == 50
    assert abs(data.floats().mean() - 0.0805) < 0.0005
    train, test = data.kaiser_split()
    assert (train.labels * 4, test.labels) == (3856, 659)
    drawers = data.drawer.reshape(-1, 20)
    assert (np.sort(drawers, axis=1) == np.arange(1, 21)).all()


def test_texts_have_their_published_sizes() -> None:
    wiki = get("wikitext2")
    sizes = (len(wiki.train), len(wiki.valid), len(wiki.test), wiki.labels)
    assert sizes == (2_088_628, 217_646, 245_569, 33_278)
    text8 = get("text8")
    if text8.source.form == "compact":
        assert (len(text8.train), len(text8.valid), len(text8.test)) == (
            1_550_125,
            170_851,
            169_603,
        )
        assert np.bincount(text8.train)[1:].min() == 11


def test_banking77_is_complete() -> None:
    data = get("banking77")
    assert (len(data), data.labels, len(data.split.test)) == (13_083, 77, 3_080)
