"""What holds of every form of stream, on a pool of tiny generated examples."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from labelmem_paper.experiments.adapt.forms import FORMS, NOISE, Pool, make_streams
from labelmem_paper.experiments.adapt.frozen import Stream

from labelmem.errors import InputError

KNOWN, LABELS, EACH = 9, 14, 40


def made(known: int = KNOWN, labels: int = LABELS, seed: int = 0) -> Pool:
    """Examples whose only feature is their number, so that each can be told from all others."""
    y = np.random.default_rng(seed).permutation(np.arange(labels * EACH) % labels)
    return Pool(torch.arange(len(y), dtype=torch.float32)[:, None], y, known)


def rows(stream: Stream) -> np.ndarray:
    return stream.h[:, 0].long().numpy()


@pytest.fixture(scope="module")
def pool() -> Pool:
    return made()


@pytest.fixture(scope="module")
def streams(pool: Pool) -> dict[str, list[Stream]]:
    return make_streams(pool, seed=3)


@pytest.mark.parametrize("form", FORMS)
def test_shapes_and_types(streams: dict[str, list[Stream]], form: str) -> None:
    for stream in streams[form]:
        assert stream.h.shape == (len(stream), 1)
        assert stream.y.shape == stream.truth.shape == (len(stream),)
        assert stream.y.dtype == stream.truth.dtype == torch.int64


@pytest.mark.parametrize("form", FORMS)
def test_an_example_comes_once_at_most(streams: dict[str, list[Stream]], form: str) -> None:
    for stream in streams[form]:
        assert len(set(rows(stream))) == len(stream) > 0


@pytest.mark.parametrize("form", ["new", "known", "few", "few-new", "noisy"])
def test_the_truth_is_the_label_of_the_example(
    pool: Pool, streams: dict[str, list[Stream]], form: str
) -> None:
    for stream in streams[form]:
        assert (stream.truth.numpy() == pool.y[rows(stream)]).all()


@pytest.mark.parametrize("form", ["new", "known", "few", "few-new", "swapped"])
def test_what_is_revealed_is_true(streams: dict[str, list[Stream]], form: str) -> None:
    assert all(stream.y is stream.truth for stream in streams[form])


@pytest.mark.parametrize("form", ["known", "few", "swapped"])
def test_known_labels_alone(streams: dict[str, list[Stream]], form: str) -> None:
    assert all(int(stream.y.max()) < KNOWN for stream in streams[form])


def test_everything_comes_in_new(streams: dict[str, list[Stream]]) -> None:
    (stream,) = streams["new"]
    assert sorted(rows(stream)) == list(range(LABELS * EACH))
    assert set(stream.y.tolist()) == set(range(LABELS))


def test_long_streams_are_cut() -> None:
    y = np.arange(6000) % 8
    streams = make_streams(Pool(torch.zeros(6000, 1), y, known=6), seed=0)
    lengths = {form: len(streams[form][0]) for form in FORMS}
    assert lengths == {
        "new": 4500,
        "known": 2500,
        "few": 150,
        "few-new": 200,
        "swapped": 2500,
        "noisy": 4500,
    }


def test_users_need_few_labels(streams: dict[str, list[Stream]]) -> None:
    needs = [frozenset(stream.y.tolist()) for stream in streams["few"]]
    assert {len(labels) for labels in needs} == {KNOWN // 3}
    assert len(needs) == 8 and len(set(needs)) > 1


def test_users_need_few_known_labels_and_three_new_ones(streams: dict[str, list[Stream]]) -> None:
    for stream in streams["few-new"]:
        labels = np.unique(stream.y.numpy())
        assert (labels < KNOWN).sum() == 7 and (labels >= KNOWN).sum() == 3


def test_users_take_what_new_labels_there_are() -> None:
    for stream in make_streams(made(known=4, labels=6), seed=0)["few-new"]:
        labels = np.unique(stream.y.numpy())
        assert (labels < 4).sum() == 2 and (labels >= 4).sum() == 2


@pytest.mark.parametrize("known", [2, 4, 9])
def test_half_of_the_labels_swap_half_way(known: int) -> None:
    pool = made(known, known + 2)
    (stream,) = make_streams(pool, seed=1)["swapped"]
    own, said, half = pool.y[rows(stream)], stream.y.numpy(), len(stream) // 2
    assert (own[:half] == said[:half]).all()
    meaning = dict(zip(own[half:].tolist(), said[half:].tolist(), strict=True))
    assert [meaning[a] for a in own[half:].tolist()] == said[half:].tolist()
    assert sorted(meaning.values()) == list(range(known))
    assert sum(a != b for a, b in meaning.items()) == max(2, known // 2)


def test_a_fifth_of_the_labels_is_another_one(streams: dict[str, list[Stream]]) -> None:
    (stream,) = streams["noisy"]
    wrong = stream.y != stream.truth
    assert int(wrong.sum()) == round(NOISE * len(stream))
    assert set(stream.y[wrong].tolist()) == set(range(LABELS))


def test_wrong_labels_are_uniform_over_the_others() -> None:
    y = np.full(4500, 1)
    y[:3] = [0, 2, 5]
    (stream,) = make_streams(Pool(torch.zeros(4500, 1), y, known=1), seed=0)["noisy"]
    said = stream.y[(stream.y != stream.truth) & (stream.truth == 1)]
    counts = said.bincount(minlength=6)
    assert set(said.tolist()) == {0, 2, 5}
    assert int(counts[[0, 2, 5]].min()) > 0.8 * len(said) / 3


def test_the_seed_decides() -> None:
    first, again, other = (make_streams(made(), seed)["new"][0] for seed in (0, 0, 1))
    assert torch.equal(first.h, again.h) and not torch.equal(first.h, other.h)


def test_every_feature_has_a_label() -> None:
    with pytest.raises(InputError, match="3 features came with 2 labels"):
        Pool(torch.zeros(3, 1), np.zeros(2, np.int64), known=1)
