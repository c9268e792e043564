from __future__ import annotations

import random
from statistics import fmean

import pytest
from labelmem_paper.report.pairing import difference


def noisy(shift: float, seed: int, blocks: int = 60) -> tuple[list[int], list[float]]:
    """Streams that differ much from each other, and on which a method is off by ``shift``."""
    draw = random.Random(seed)
    tokens = [draw.randint(20, 200) for _ in range(blocks)]
    return tokens, [n * (draw.gauss(6, 2) + shift) + draw.gauss(0, 1) for n in tokens]


def slow_interval(
    tokens: list[int], ours: list[float], theirs: list[float], resamples: int = 3000
) -> tuple[float, float]:
    draw, means = random.Random(5), []
    for _ in range(resamples):
        picked = [draw.randrange(len(tokens)) for _ in tokens]
        gap = sum(ours[i] for i in picked) - sum(theirs[i] for i in picked)
        means.append(gap / sum(tokens[i] for i in picked))
    means.sort()
    return means[int(0.025 * resamples)], means[int(0.975 * resamples)]


def test_the_interval_is_that_of_a_slow_paired_bootstrap() -> None:
    tokens, theirs = noisy(0.0, 1)
    draw = random.Random(2)
    ours = [total - n * draw.gauss(0.3, 0.4) for n, total in zip(tokens, theirs, strict=True)]
    found = difference({0: (tokens, ours)}, {0: (tokens, theirs)})
    assert found is not None
    assert found.value == pytest.approx((sum(ours) - sum(theirs)) / sum(tokens))
    low, high = slow_interval(tokens, ours, theirs)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.02)


def test_pairs_tell_apart_what_intervals_of_their_own_do_not() -> None:
    tokens, theirs = noisy(0.0, 3)
    ours = [total - 0.05 * n for n, total in zip(tokens, theirs, strict=True)]
    found = difference({0: (tokens, ours)}, {0: (tokens, theirs)})
    assert found is not None and found.low == found.high == pytest.approx(-0.05)
    shuffled = random.Random(0).sample(range(len(tokens)), len(tokens))
    apart = difference(
        {0: (tokens, [tokens[i] * ours[j] / tokens[j] for i, j in enumerate(shuffled)])},
        {0: (tokens, theirs)},
    )
    assert apart is not None and apart.low < 0 < apart.high


def test_seeds_are_averaged_over_those_that_both_have() -> None:
    sets = {seed: noisy(0.0, seed) for seed in range(3)}
    better = {s: (t, [x - s * n for n, x in zip(t, total, strict=True)])
              for s, (t, total) in sets.items()}  # fmt: skip
    found = difference(better, {s: sets[s] for s in (1, 2)})
    assert found is not None
    assert (found.seeds, found.value) == (2, pytest.approx(-fmean([1, 2])))


@pytest.mark.parametrize("ours", [None, {}, {1: ([5], [1.0])}, {0: ([6], [1.0])}])
def test_nothing_in_common(ours: dict[int, tuple[list[int], list[float]]] | None) -> None:
    assert difference(ours, {0: ([5], [1.0])}) is None
