"""The approximate index: what it looks at, and that it always knows where the cells are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys import assert_same, make_adapter, random_stream, snapshot

from labelmem import LabeledMemory, MemoryConfig
from labelmem.config import IndexConfig, IndexedMemoryConfig
from labelmem.errors import ConfigError
from labelmem.fast import plainly
from labelmem.index.centres import centres_of, nearest, unit
from labelmem.reading import MemoryRead

pytest.importorskip("numba")

DIM = 6
SMALL = IndexConfig(lists=8, probes=2, least=30)
ALL = replace(SMALL, probes=8)


def clouds(seed: int, cells: int) -> np.ndarray:
    """Vectors about a dozen directions, as hidden states are."""
    generator = np.random.default_rng(seed)
    about = generator.normal(size=(12, DIM))
    return about[generator.integers(12, size=cells)] + 0.3 * generator.normal(size=(cells, DIM))


def grown(
    config: MemoryConfig, steps: int = 120, labels: int = 70, seed: int = 0, **options: Any
) -> LabeledMemory:
    """A memory after so many writes; every third is of a label believed wrongly."""
    memory = LabeledMemory(DIM, config, **options)
    for t, (h, y) in enumerate(steps_of(seed, steps, labels)):
        P = torch.full((1, labels), 1 / labels)
        P[0, int(y)] = 0.0 if t % 3 == 0 else 0.5
        memory.write(h, y, P)
    return memory


def steps_of(seed: int, steps: int, labels: int) -> Any:
    ys = np.random.default_rng(seed + 1).integers(labels, size=steps)
    hs = torch.from_numpy(clouds(seed, steps)).float()
    return [(hs[t : t + 1], torch.tensor([int(y)])) for t, y in enumerate(ys)]


def queries(count: int = 8) -> list[torch.Tensor]:
    return list(torch.from_numpy(clouds(5, count)).float()[:, None])


def assert_same_told(near: MemoryRead, exact: MemoryRead, width: int, atol: float) -> None:
    """Reads of the same cells in another order agree label by label."""
    for name in ("score", "strength", "cosine"):
        a, b = getattr(near, name) * near.leads, getattr(exact, name) * exact.leads
        assert torch.allclose(near.spread(a, width), exact.spread(b, width), atol=atol), name
    for name in ("alpha", "weight", "age"):
        a, b = ((x.label[0], getattr(x, name)[0]) for x in (near, exact))
        pairs = [sorted(zip(*(x.tolist() for x in told), strict=True)) for told in (a, b)]
        np.testing.assert_allclose(*pairs, atol=atol)


CONFIGS = [
    pytest.param({}, id="one cell"),
    pytest.param({"capacity": 40}, id="at capacity"),
    pytest.param({"capacity": 40, "evict": "weight"}, id="by weight"),
]


# ---------------------------------------------------------------- what a read tells


@pytest.mark.parametrize("options", CONFIGS)
def test_all_lists_together_are_the_exact_read(options: Any) -> None:
    memory = grown(IndexedMemoryConfig(index=ALL, **options))
    for h in queries():
        near = memory.read(h)
        with plainly():
            exact = memory.read(h)
        assert_same_told(near, exact, 70, 1e-4)


@pytest.mark.parametrize("options", CONFIGS)
def test_a_read_is_the_exact_read_of_a_memory_of_the_cells_looked_at(options: Any) -> None:
    memory = grown(IndexedMemoryConfig(index=SMALL, **options))
    saved = memory.tensors()
    centres = saved.pop("centres")[0].numpy()
    home = nearest(saved["v"][0].numpy(), centres)
    for h in queries():
        near = memory.read(h)
        lists = np.argsort(-(centres @ h[0].numpy()))[: SMALL.probes]
        at = torch.from_numpy(np.flatnonzero(np.isin(home, lists)))
        assert 0 < len(at) < len(memory)
        part = {name: x[:, at] if x.ndim > 1 else x for name, x in saved.items()}
        part["group"] = torch.arange(len(at))[None]
        part["used"] = torch.tensor([len(at)])
        small = LabeledMemory(DIM, MemoryConfig(**options), fast=False)
        small.restore(part)
        assert_same_told(near, small.read(h), 70, 1e-4)
        assert float(near.score.sum()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "blocks"), [({"cells_per_label": 3}, None), ({}, ()), ({}, (2, 4))]
)
def test_with_several_cells_or_watched_blocks_reads_are_exact(options: Any, blocks: Any) -> None:
    memory = grown(IndexedMemoryConfig(index=SMALL, **options), blocks=blocks)
    for h in queries():
        near = memory.read(h)
        with plainly():
            exact = memory.read(h)
        assert near.label.shape == exact.label.shape
        assert_same_told(near, exact, 70, 1e-5)
    assert "centres" not in memory.tensors()


def test_what_is_not_looked_at_counts_as_nothing() -> None:
    memory = grown(IndexedMemoryConfig(index=SMALL))
    read = memory.read(queries()[0])
    unseen = set(memory.label[0, : len(memory)].tolist()) - set(read.label[0].tolist())
    assert unseen
    assert not read.scores(70)[0, sorted(unseen)].any()


def test_a_zero_vector_and_zero_cells_are_read() -> None:
    memory = LabeledMemory(2, IndexedMemoryConfig(index=IndexConfig(lists=2, probes=2, least=3)))
    for y, h in enumerate([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]):
        memory.write(torch.tensor([h]), torch.tensor([y]))
    assert memory.read(torch.zeros(1, 2)).scores(4)[0].tolist() == pytest.approx([0.25] * 4)
    with plainly():
        exact = memory.read(torch.tensor([[1.0, 1.0]])).scores(4)
    assert torch.allclose(memory.read(torch.tensor([[1.0, 1.0]])).scores(4), exact, atol=1e-6)


# ---------------------------------------------------------------- when it is used


def test_small_memories_other_paths_and_many_streams_are_read_exactly() -> None:
    config = IndexedMemoryConfig(index=SMALL)
    few, many = grown(config, steps=20), grown(config)
    h = queries()[0]
    assert len(few) < SMALL.least and few.read(h).label.shape[1] == len(few)
    assert many.read(h).label.shape[1] < len(many)
    with plainly():
        assert many.read(h).label.shape[1] == len(many)
    assert many.read(h, lam=torch.tensor(5.0)).label.shape[1] == len(many)
    slow = grown(config, fast=False)
    assert slow.read(h).label.shape[1] == len(slow)
    two = LabeledMemory(DIM, config, streams=2)
    for h, y in steps_of(0, 80, 70):
        two.write(h.expand(2, -1), y.expand(2))
    assert two.read(h.expand(2, -1)).label.shape[1] >= SMALL.least
    assert "centres" not in two.tensors()


def test_centres_are_found_anew_when_the_memory_has_doubled() -> None:
    memory = LabeledMemory(DIM, IndexedMemoryConfig(index=IndexConfig(probes=1, least=9)))
    seen = {}
    for y, h in enumerate(torch.from_numpy(clouds(0, 40)).float()):
        memory.write(h[None], torch.tensor([y]))
        seen[y + 1] = memory.tensors().get("centres")
    assert seen[8] is None
    assert [int(seen[n].shape[1]) for n in (9, 17, 18, 35, 36)] == [3, 3, 4, 4, 6]
    assert torch.equal(seen[9], seen[17]) and torch.equal(seen[18], seen[35])


# ---------------------------------------------------------------- it follows the cells


@pytest.mark.parametrize("options", CONFIGS)
def test_writes_by_the_reference_in_between_change_nothing(options: Any) -> None:
    config = IndexedMemoryConfig(index=ALL, **options)
    memory = LabeledMemory(DIM, config)
    for t, (h, y) in enumerate(steps_of(3, 200, 50)):
        P = torch.rand(1, 50, generator=torch.Generator().manual_seed(t))
        near = memory.read(h)
        with plainly():
            exact = memory.read(h)
        assert_same_told(near, exact, 50, 1e-4)
        if t % 7 == 0:
            with plainly():
                memory.write(h, y, P)
        else:
            memory.write(h, y, P)


# ---------------------------------------------------------------- saving


@pytest.mark.parametrize("kind", ["fixed", "dense"])
def test_a_saved_stream_continues_as_if_it_had_not_been_saved(kind: str, tmp_path: Path) -> None:
    index = IndexConfig(lists=4, probes=1, least=10)
    adapter = make_adapter(kind, IndexedMemoryConfig(margin=50.0, index=index))
    stream = adapter.stream()
    x, ys = random_stream(2, 60, range(4), range(10, 30))
    for t in range(40):
        stream.predict(x[t])
        stream.observe(ys[t])
    stream.save(tmp_path / "stream")
    other = adapter.load_stream(tmp_path / "stream")
    for t in range(40, 60):
        assert torch.allclose(stream.predict(x[t]).probs, other.predict(x[t]).probs, atol=1e-6)
        stream.observe(ys[t])
        other.observe(ys[t])
    mine, theirs = (
        {name: x for name, x in snapshot(each).items() if name.startswith("memory.")}
        for each in (stream, other)
    )
    assert_same(mine, theirs)
    assert mine["memory.centres"].shape == (1, 4, 5)


def test_an_adapter_is_saved_with_its_index(tmp_path: Path) -> None:
    make_adapter("fixed", IndexedMemoryConfig(index=SMALL)).save(tmp_path / "adapter")
    adapter = make_adapter("fixed")
    adapter.load(tmp_path / "adapter")
    assert adapter.memory.index == SMALL


def test_a_memory_saved_without_an_index_gets_one() -> None:
    plain = grown(MemoryConfig())
    memory = LabeledMemory(DIM, IndexedMemoryConfig(index=SMALL))
    memory.restore(plain.tensors())
    assert 0 < memory.read(queries()[0]).label.shape[1] < len(plain)
    other = LabeledMemory(DIM, IndexedMemoryConfig(index=replace(SMALL, lists=5)))
    other.restore(memory.tensors())
    other.read(queries()[0])
    assert other.tensors()["centres"].shape[1] == 5
    plain.restore(memory.tensors())
    assert plain.read(queries()[0]).label.shape[1] == len(plain)


# ---------------------------------------------------------------- centres


def test_centres_are_where_the_cells_are() -> None:
    about = np.eye(DIM)[:3]
    v = np.repeat(about, 40, axis=0) * np.linspace(1, 9, 120)[:, None]
    v += 0.05 * np.random.default_rng(0).normal(size=v.shape)
    centres = centres_of(v, 12)
    np.testing.assert_allclose(np.linalg.norm(centres, axis=1), 1)
    # Every cell is close to a centre, and no centre is far from all cells.
    cosine = unit(v) @ centres.T
    assert cosine.max(axis=1).min() > 0.97 and cosine.max(axis=0).min() > 0.97
    np.testing.assert_array_equal(nearest(v, centres), cosine.argmax(axis=1))
    np.testing.assert_array_equal(centres, centres_of(v, 12))


def test_cells_that_are_all_the_same_make_one_list() -> None:
    v = np.ones((20, 3), np.float32)
    assert len(set(nearest(v, centres_of(v, 4)).tolist())) == 1


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lists": 0}, "lists is 0; it must be a whole number from 1, or None"),
        ({"probes": 1.5}, "probes is 1.5; it must be a whole number from 1"),
        ({"least": True}, "least is True"),
        ({"lists": 4, "probes": 5}, "probes is 5, lists is 4"),
        ({"lists": 40, "probes": 5, "least": 30}, "lists is 40, least is 30"),
    ],
)
def test_what_makes_no_sense_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        IndexConfig(**options)


def test_an_index_is_configured_by_its_own_settings() -> None:
    with pytest.raises(ConfigError, match="index is 'ivf'; it must be an IndexConfig"):
        IndexedMemoryConfig(index="ivf")  # type: ignore[arg-type]


def test_settings_survive_json() -> None:
    config = IndexedMemoryConfig(index=SMALL)
    assert MemoryConfig.from_plain(json.loads(json.dumps(config.plain()))) == config
    assert "index" not in MemoryConfig().plain() and MemoryConfig().index is None
