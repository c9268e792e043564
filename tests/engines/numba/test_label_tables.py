"""Several cells per label, in tables and in crowds, against plain loops over the cells."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from labelmem.engines.numba.groups import Grouped, read_groups
from labelmem.engines.numba.label_tables import Groups


def grouped(label: np.ndarray) -> np.ndarray:
    """The positions of the leading cells."""
    return np.array([np.flatnonzero(label == y)[0] for y in label])


def read(groups: Groups, v: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Eq. 2's alpha, the cosine with M and its length, in the order of the leading cells."""
    shares = np.zeros(len(groups.room), np.float32)
    found = np.empty((4, len(groups)), np.float32)
    cells = Grouped(v, groups.place[: len(v)], *groups.tables, groups.room)
    read_groups(cells, h, 3.0, 1.0, shares, found)
    return found[:3, np.argsort(groups.lead)]


def test_groups_made_at_once_are_those_made_one_by_one() -> None:
    generator = np.random.default_rng(0)
    v = generator.normal(size=(12, 4)).astype(np.float32)
    label = np.array([5, 5, 7, 5, 7, 9, 9, 2, 2, 2, 2, 5])
    group, alpha = grouped(label), generator.uniform(size=12).astype(np.float32)
    at_once = Groups(v, alpha, label, group)
    grown = Groups(v[:0], alpha[:0], label[:0], group[:0])
    for y in (9, 3, 5, 7, 2):
        cells = np.flatnonzero(label == y) if y != 3 else np.array([0])
        grown.update(y, cells, v, alpha, group)
    assert 3 in grown
    grown.update(3, np.array([], int), v, alpha, group)
    assert 3 not in grown and [grown.owner(cell) for cell in range(12)] == label.tolist()
    h = generator.normal(size=4).astype(np.float32)
    assert sorted(at_once.lead) == sorted(grown.lead)
    mine, theirs = read(at_once, v, h), read(grown, v, h)
    assert np.array_equal(mine, theirs)
    cosine = v @ h / np.linalg.norm(v, axis=1) / np.linalg.norm(h)
    for column, lead in enumerate(np.unique(group)):
        w = np.exp(3.0 * cosine) * (group == lead)
        w /= w.sum()
        M = w @ v
        size = np.linalg.norm(M)
        told = [w @ alpha, M @ h / size / np.linalg.norm(h), size]
        assert np.allclose(mine[:, column], told, atol=1e-5)


@pytest.mark.parametrize("labels", [2, 9])
@pytest.mark.parametrize("seed", range(3))
def test_each_cell_has_its_place_while_labels_come_and_go(seed: int, labels: int) -> None:
    generator = np.random.default_rng(seed)
    v = generator.normal(size=(80, 3)).astype(np.float32)
    alpha = generator.uniform(size=80).astype(np.float32)
    label = np.full(80, -1)
    groups = Groups(v[:0], alpha[:0], label[:0], label[:0])
    crowded = 0
    for step in range(300):
        cell, y = generator.integers(80), generator.integers(labels)
        if step % 180 > 120:  # now and then labels lose their cells
            y = -1
        before, label[cell] = label[cell], y
        v[cell], alpha[cell] = generator.normal(size=3), generator.uniform()
        for changed in dict.fromkeys((int(before), int(y))):
            own = np.flatnonzero(label == changed)
            if changed >= 0 and (len(own) or changed == before):
                groups.update(changed, own, v, alpha, np.arange(80))
        held = label >= 0
        member, known, gram = groups.tables
        of_cell = groups.crowds.of_cell
        apart = held & (of_cell >= 0)
        crowded += apart.any()
        listed = np.flatnonzero(held & ~apart)
        assert sorted(member[member >= 0]) == listed.tolist()
        assert len(np.unique(groups.place[held])) == held.sum() <= len(groups.room)
        # A label's cells are in its column of the table, or in a crowd of that column.
        column = np.where(apart, -1, groups.place % max(member.shape[1], 1))
        column[apart] = groups.crowds.columns[of_cell[apart]]
        assert np.array_equal(label[groups.lead[column[held]]], label[held])
        assert [groups.owner(cell) for cell in np.flatnonzero(held)] == label[held].tolist()
        assert np.allclose(groups.crowds.length[apart], np.linalg.norm(v[apart], axis=1))
        assert (groups.place[apart] >= member.size).all()
        nothing, inverse, strength = known[..., : len(groups)]
        members = member[:, : len(groups)]
        there = members >= 0
        cells = members[there]
        lengths = np.linalg.norm(v[cells], axis=1)
        nothing = np.delete(nothing, groups.crowds.columns, axis=1)
        absent = ~np.delete(there, groups.crowds.columns, axis=1)
        assert (nothing[absent] == -np.inf).all() and not nothing[~absent].any()
        assert np.array_equal(member.reshape(-1)[groups.place[listed]], listed)
        assert np.allclose(inverse[there] * lengths, 1, atol=1e-5) and not inverse[~there].any()
        assert np.array_equal(strength[there], alpha[cells]) and not strength[~there].any()
        for t, u in np.ndindex(*gram.shape[:2]):
            both = there[t] & there[u]
            a, b = (v[members[rank, both]] for rank in (t, u))
            assert np.allclose(gram[t, u, : len(groups)][both], (a * b).sum(axis=1), atol=1e-5)
    assert crowded > 20 if labels == 2 else not crowded


def test_a_crowd_moves_with_its_column_and_keeps_its_cells() -> None:
    v, alpha = np.ones((60, 2), np.float32), np.ones(60, np.float32)
    label = np.array([3] + [5] * 20 + [7] * 30 + [9] * 9)
    groups = Groups(v, alpha, label, np.arange(60))
    assert groups.crowds.columns.tolist() == [1, 2]
    groups.update(9, np.array([], int), v, alpha, np.arange(60))
    groups.update(3, np.array([], int), v, alpha, np.arange(60))  # the last, 7, takes its column
    assert groups.crowds.columns.tolist() == [1, 0] and groups.lead.tolist() == [21, 1]
    groups.update(5, np.array([], int), v, alpha, np.arange(60))
    assert groups.crowds.columns.tolist() == [0]
    assert np.flatnonzero(groups.crowds.of_cell == 0).tolist() == list(range(21, 51))
    groups.update(7, np.arange(21, 30), v, alpha, np.arange(60))
    assert not groups.crowds and groups.tables[0][:, 0].tolist() == [*range(21, 30)]


def test_a_label_with_thousands_of_cells_has_no_table_of_their_products() -> None:
    v = np.zeros((20_000, 2), dtype=np.float32)
    same = np.zeros(len(v), dtype=np.int64)
    groups = Groups(v, v[:, 0], same, same)
    assert len(groups.crowds) == 1 and sum(table.size for table in groups.tables) < 10
