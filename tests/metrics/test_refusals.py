from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from labelmem.errors import ConfigError, InputError
from labelmem.metrics import StreamMetrics

GOOD: dict[str, Any] = {"probs": torch.full((2, 3), 1 / 3), "y": torch.tensor([0, 1])}


def test_nothing_counted_yet() -> None:
    metrics = StreamMetrics()
    assert math.isnan(metrics.running) and metrics.by_position(3) == []
    metrics.update(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64))
    metrics.update(torch.full((1, 1), 1.0), torch.tensor([0]), mask=torch.tensor([False]))
    with pytest.raises(InputError, match="no tokens"):
        metrics.result()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probs": torch.ones(2)}, r"probs is torch.float32 of shape \(2,\)"),
        ({"probs": torch.ones(2, 3).long()}, "expected floats"),
        ({"probs": torch.full((2, 3), math.nan)}, "probs holds nan"),
        ({"probs": torch.tensor([[0.5, math.nan, 0.5], [1, 0, 0]])}, "probs holds nan"),
        ({"probs": torch.full((2, 3), -1.0)}, r"probs holds -1.0.*not logits"),
        ({"probs": torch.tensor([[0.1, 3.0, 0], [1, 0, 0]])}, r"probs holds 3.0"),
        ({"y": torch.tensor([0])}, r"y is torch.int64 of shape \(1,\)"),
        ({"y": torch.tensor([0.0, 1.0])}, "expected whole numbers"),
        ({"mask": torch.tensor([1, 0])}, "mask is torch.int64"),
        ({"mask": torch.tensor([True])}, r"mask is torch.bool of shape \(1,\)"),
        ({"groups": {"new": torch.tensor([[True, True]])}}, "group 'new' is"),
        ({"streams": [1, 2, 3]}, "streams names 3 rows"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_told_and_changes_nothing(change: dict[str, Any], message: str) -> None:
    metrics = StreamMetrics()
    metrics.update(**GOOD)
    before = metrics.result()
    with pytest.raises(InputError, match=message):
        metrics.update(**(GOOD | change))
    assert metrics.result() == before


def test_bad_options_are_told() -> None:
    metrics = StreamMetrics()
    metrics.update(**GOOD)
    for options in ({"confidence": 0.0}, {"confidence": 95.0}, {"resamples": 0}):
        with pytest.raises(ConfigError):
            metrics.result(**options)
    with pytest.raises(ConfigError, match="bins is 0"):
        metrics.by_position(0)
