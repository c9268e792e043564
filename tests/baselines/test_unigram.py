"""Counts of training."""

from __future__ import annotations

import math

import pytest
import torch

from labelmem.baselines.label_method import LabelOptions
from labelmem.baselines.unigram import Unigram
from labelmem.errors import ConfigError

TRAINING = [(None, ["a", "b", "a", "unheard"]), (None, []), (None, ["a"])]


def test_counts_by_hand() -> None:
    # a came 3 times, b once, c never: (3 + k, 1 + k, k) / (4 + 3 k).
    for k in (0.1, 1.0, 5.0):
        method = Unigram(["a", "b", "c"], LabelOptions(smoothing=k)).fit(TRAINING)
        probs = method.stream().predict(0).probs
        expected = torch.tensor([3 + k, 1 + k, k]) / (4 + 3 * k)
        torch.testing.assert_close(probs, expected)


def test_ids_given_as_a_tensor_count_the_same() -> None:
    names = Unigram(3).fit([(None, [0, 2, 2, 9, -1])])
    ids = Unigram(3).fit([(None, torch.tensor([0, 2, 2, 9, -1]))])
    assert names.counts.tolist() == ids.counts.tolist() == [1, 0, 2]


def test_it_does_not_learn_from_a_stream() -> None:
    stream = Unigram(["a", "b"]).fit(TRAINING).stream()
    before = stream.predict(0).probs
    for y in ("b", "new", "b"):
        stream.predict(0)
        stream.observe(y)
    after = stream.predict(0).probs
    assert torch.equal(after[:2], before) and after[2] == 0


def test_without_training_all_labels_are_equal_and_fitting_starts_afresh() -> None:
    method = Unigram(4)
    assert method.stream().predict(0).probs.tolist() == [0.25] * 4
    assert method.fit([(None, [1])]).fit([(None, [2])]).counts.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("k", [0, -1, math.nan, math.inf])
def test_smoothing_must_be_positive(k: float) -> None:
    with pytest.raises(ConfigError, match="smoothing"):
        LabelOptions(smoothing=k)
