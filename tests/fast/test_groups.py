"""Several cells per label, in tables and in crowds, against plain loops over the cells."""

from __future__ import annotations

import numpy as np
import pytest

from labelmem.fast.groups import Groups


def test_groups_made_at_once_are_those_made_one_by_one() -> None:
    generator = np.random.default_rng(0)
    v = generator.normal(size=(12, 4))
    label = np.array([5, 5, 7, 5, 7, 9, 9, 2, 2, 2, 2, 5])
    first = {int(y): int(np.flatnonzero(label == y)[0]) for y in label}
    group = np.array([first[int(y)] for y in label])
    alpha = generator.uniform(size=12)
    at_once = Groups(v, alpha, label, group)
    grown = Groups(v[:0], alpha[:0], label[:0], group[:0])
    for y in (9, 5, 3, 7, 2):
        cells = np.flatnonzero(label == y) if y != 3 else np.array([0])
        grown.update(y, cells, v, alpha, group)
    grown.update(3, np.array([], int), v, alpha, group)
    h = generator.normal(size=4)
    dot = v @ (h / np.linalg.norm(h))
    cosine = dot / np.linalg.norm(v, axis=1)
    a, b = (x.read(v, dot, 3.0) for x in (at_once, grown))
    order, other = np.argsort(at_once.lead), np.argsort(grown.lead)
    assert np.array_equal(at_once.lead[order], grown.lead[other])
    for name in ("strength", "dot", "size"):
        assert np.allclose(getattr(a, name)[order], getattr(b, name)[other])
    for column, lead in zip(order, at_once.lead[order], strict=True):
        w = np.exp(3.0 * cosine) * (group == lead)
        w /= w.sum()
        told = [a.strength[column], a.dot[column], a.size[column]]
        assert np.allclose(told, [w @ alpha, w @ dot, np.linalg.norm(w @ v)])


@pytest.mark.parametrize("labels", [2, 9])
@pytest.mark.parametrize("seed", range(3))
def test_each_cell_has_its_place_while_labels_come_and_go(seed: int, labels: int) -> None:
    generator = np.random.default_rng(seed)
    v, alpha = generator.normal(size=(80, 3)), generator.uniform(size=80)
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
        assert (groups.place[apart] >= member.size).all()
        nothing, inverse, strength = known[..., : len(groups)]
        there, cells = groups.there, groups.member[groups.there]
        lengths = np.linalg.norm(v[cells], axis=1)
        nothing = np.delete(nothing, groups.crowds.columns, axis=1)
        absent = ~np.delete(there, groups.crowds.columns, axis=1)
        assert (nothing[absent] == -np.inf).all() and not nothing[~absent].any()
        assert np.array_equal(member.reshape(-1)[groups.place[listed]], listed)
        assert np.allclose(inverse[there] * lengths, 1) and not inverse[~there].any()
        assert np.array_equal(strength[there], alpha[cells]) and not strength[~there].any()
        for t, u in np.ndindex(*gram.shape[:2]):
            both = there[t] & there[u]
            a, b = (v[groups.member[rank, both]] for rank in (t, u))
            assert np.allclose(gram[t, u, : len(groups)][both], (a * b).sum(axis=1))
    assert crowded > 20 if labels == 2 else not crowded


def test_a_crowd_moves_with_its_column_and_keeps_its_cells() -> None:
    v, alpha = np.ones((60, 2)), np.ones(60)
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
    assert not groups.crowds and groups.member[:, 0].tolist() == [*range(21, 30)]


def test_a_label_with_thousands_of_cells_has_no_table_of_their_products() -> None:
    v = np.zeros((20_000, 2), dtype=np.float32)
    same = np.zeros(len(v), dtype=np.int64)
    groups = Groups(v, v[:, 0], same, same)
    assert len(groups.crowds) == 1 and sum(table.size for table in groups.tables) < 10
