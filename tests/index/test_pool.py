"""The compiled index: lists in one pool of rows, and where labels lie in a large memory."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from labelmem import LabeledMemory, MemoryConfig
from labelmem.config import IndexConfig, IndexedMemoryConfig
from labelmem.fast import plainly
from labelmem.index.near import NearRead

pytest.importorskip("numba")

from labelmem.engines.numba.index import Cells
from labelmem.engines.numba.places import add_place, drop_place, place_of, table_of
from labelmem.index.pool import Pool

DIM = 6
SMALL = IndexConfig(lists=8, probes=2, least=30)
OPTIONS = [
    pytest.param({}, id="one cell"),
    pytest.param({"capacity": 60}, id="at capacity"),
]


def clouds(seed: int, cells: int) -> torch.Tensor:
    """Vectors about a dozen directions, as hidden states are."""
    generator = torch.Generator().manual_seed(seed)
    about = torch.randn(12, DIM, generator=generator)
    home = torch.randint(12, (cells,), generator=generator)
    return about[home] + 0.3 * torch.randn(cells, DIM, generator=generator)


def written(memory: LabeledMemory, steps: int, labels: int, seed: int = 0) -> LabeledMemory:
    ys = torch.randint(labels, (steps,), generator=torch.Generator().manual_seed(seed))
    wrong = torch.full((1, labels), 1 / labels)
    for t, h in enumerate(clouds(seed, steps)):
        memory.write(h[None], ys[t : t + 1], wrong)
        if t % 9 == 0:
            memory.read(h[None])  # the index is made by the first read that needs it
    return memory


def pool_of(memory: LabeledMemory) -> Pool:
    """The same lists as the memory has, made from scratch."""
    tensors = memory.tensors()
    cells = Cells(*(tensors[name][0].numpy() for name in Cells._fields))
    return Pool(cells, len(memory), tensors["centres"][0].numpy())


# ---------------------------------------------------------------- the pool


@pytest.mark.parametrize("options", OPTIONS)
def test_a_pool_that_followed_is_one_made_from_scratch(options: Any) -> None:
    index = IndexConfig(lists=8, probes=1, least=30)
    memory = LabeledMemory(DIM, IndexedMemoryConfig(margin=50.0, index=index, **options))
    written(memory, 400, 120)
    fresh, seen = pool_of(memory), 0
    for i, centre in enumerate(fresh.centres):
        mine = memory.read(torch.from_numpy(centre)[None])  # looks at this one list
        assert isinstance(mine, NearRead)
        at, cosine = fresh.look(centre, 1)
        assert fresh.contents(i)[0].tolist() == at.tolist()
        assert torch.equal(mine.label[0], memory.label[0, at])
        assert torch.equal(mine.cosine[0], torch.from_numpy(cosine))
        exact = torch.cosine_similarity(memory.v[0, at], torch.from_numpy(centre)[None])
        assert (mine.cosine[0] - exact).abs().max() < 1e-4
        seen += len(at)
    assert seen == len(memory)


def test_a_look_at_all_lists_finds_all_cells_and_what_they_are() -> None:
    memory = written(LabeledMemory(DIM, IndexedMemoryConfig(margin=50.0, index=SMALL)), 300, 100)
    pool = pool_of(memory)
    for h in clouds(5, 12):
        at, cosine = pool.look(h.numpy(), SMALL.lists or 0)
        assert sorted(at) == list(range(len(memory)))
        exact = torch.cosine_similarity(memory.v[0, at], h[None]).numpy()
        assert np.abs(cosine - exact).max() < 2e-4
        assert isinstance(memory.read(h[None]), NearRead)


def test_empty_lists_are_passed_over() -> None:
    v = np.float32([[1.0, 0.0]])
    one = Cells(v, np.ones(1, np.float32), np.arange(1), np.arange(1, dtype=np.int32))
    pool = Pool(one, 1, np.float32([[0.0, 1.0], [1.0, 0.0]]))
    assert pool.look(np.float32([0.0, 1.0]), probes=1)[0].tolist() == [0]


def test_all_lists_together_are_the_exact_read_and_reads_stay_as_they_were() -> None:
    index = IndexConfig(lists=8, probes=8, least=30)
    memory = written(LabeledMemory(DIM, IndexedMemoryConfig(margin=50.0, index=index)), 200, 90)
    h = clouds(7, 1)
    read = memory.read(h)
    with plainly():
        exact = memory.read(h)
    assert torch.allclose(read.scores(90), exact.scores(90), atol=1e-5)
    before = [exact.scores(90), exact.age.sort().values, exact.alpha.sort().values]
    written(memory, 50, 90, seed=3)
    after = [read.scores(90), read.age.sort().values, read.alpha.sort().values]
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(before, after, strict=True))


def test_zero_vectors_are_kept_and_asked_for() -> None:
    memory = LabeledMemory(2, IndexedMemoryConfig(index=IndexConfig(lists=2, probes=2, least=3)))
    for y, h in enumerate([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]):
        memory.write(torch.tensor([h]), torch.tensor([y]))
    assert memory.read(torch.zeros(1, 2)).scores(4)[0].tolist() == pytest.approx([0.25] * 4)


def test_one_list_may_grow_beyond_all_others() -> None:
    memory = LabeledMemory(2, IndexedMemoryConfig(index=IndexConfig(lists=3, probes=1, least=9)))
    about = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    for y in range(17):  # at 18 the centres would be found anew
        h = about[y % 3] if y < 9 else about[0]
        memory.write(h[None] + 0.01 * y, torch.tensor([y]))
        memory.read(h[None])
    pool = pool_of(memory)
    most = max(range(3), key=lambda i: len(pool.contents(i)[0]))
    for cell in range(300):  # of one cell, moved to and fro, and of many new ones
        v = np.zeros((400, 2), np.float32)
        v[:, most % 2] = 1.0
        names = np.arange(400)
        pool.follow(17 + cell, Cells(v, np.ones(400, "f"), names, names.astype(np.int32)))
    held = [pool.contents(i)[0].tolist() for i in range(3)]
    assert sorted(cell for cells in held for cell in cells) == list(range(317))
    assert all(cells == sorted(cells) for cells in held)


def test_a_copy_has_lists_of_its_own() -> None:
    config = IndexedMemoryConfig(margin=50.0, index=SMALL)
    memory = written(LabeledMemory(DIM, config), 120, 90)
    other, h = copy.deepcopy(memory), clouds(8, 1)
    before = memory.read(h).scores(200)
    for y in range(100, 130):
        other.write(h, torch.tensor([y]))
    assert torch.equal(memory.read(h).scores(200), before)
    assert float(other.read(h).scores(200)[0, 100:].sum()) > 0


# ---------------------------------------------------------------- where labels lie


def test_labels_are_found_where_they_are() -> None:
    generator = np.random.default_rng(0)
    label = np.full(3000, -1)
    label[:1500] = generator.permutation(10**6)[:1500] * 2**20
    table, used = table_of(label, 1500), 1500
    where = {int(y): i for i, y in enumerate(label[:used])}
    for step in range(4000):
        if step % 3 == 0 and used < len(label):
            cell, used = used, used + 1
        else:
            cell = int(generator.integers(used))
            drop_place(cell, label, table)
            del where[int(label[cell])]
        label[cell] = 1 + 2 * step
        add_place(cell, label, table)
        where[int(label[cell])] = cell
        asked = int(generator.choice(label[:used])) if step % 2 else step * 4
        assert place_of(asked, label, used, table) == where.get(asked, -1)
    assert (table >= 0).sum() == used


def test_few_labels_need_no_table() -> None:
    label = np.array([5, 9, 7])
    table = table_of(label, 3)
    assert len(table) == 0
    assert [place_of(y, label, 3, table) for y in (5, 7, 8)] == [0, 2, -1]


def test_a_large_memory_at_capacity_is_as_specified() -> None:
    config = MemoryConfig(margin=50.0, capacity=1100)
    short, long = (LabeledMemory(2, config, fast=fast) for fast in (True, False))
    first = LabeledMemory(2, MemoryConfig(margin=50.0))
    for y in range(1100):
        first.write(torch.tensor([[1.0, y % 7]]), torch.tensor([y]))
    for memory in (short, long):
        memory.restore(first.tensors())
    for y in torch.randint(1800, (150,), generator=torch.Generator().manual_seed(0)):
        for memory in (short, long):
            memory.write(torch.tensor([[1.0, 2.0]]), y[None])
    for name, value in short.tensors().items():
        assert torch.equal(value, long.tensors()[name]), name
