"""Models, keys and adapters of the user's own making: what they override is never passed by."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from toys import filled, random_combiner

from conformance.comparing import assert_close, run_users
from conformance.forms import form, recent
from conformance.habits import LABELS, history_model
from conformance.users import Output
from conformance.ways import REFERENCE, WAYS, Way
from labelmem import Adapter
from labelmem.keys import Joined, RecentTokens
from labelmem.models import HistoryModel


class OwnModel(HistoryModel):
    def forward(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        logits, state = super().forward(x, state)
        return logits, tuple(0.5 * part for part in state)


class OwnKey(RecentTokens):
    def __call__(self, x: Any, h: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        key, state = super().__call__(x, h, state)
        return key.flip(1), torch.zeros_like(state)


class OwnAdapter(Adapter):
    def encode(self, *args: Any) -> Any:
        h, key, logits, recurrent = super().encode(*args)
        return h, -key, 2 * logits, recurrent


def adapter(name: str) -> Adapter:
    kind = OwnAdapter if name == "adapter" else Adapter
    model: Any = history_model()
    if name == "model":
        model = filled(OwnModel(LABELS, dim=5, prior=1.5, norm=1.0).eval(), seed=1, scale=0.5)
    key = Joined(OwnKey(dim=6, pair=True)) if name == "key" else recent()
    parts = 3 if name == "key" else 4
    combiner = random_combiner(5, kind="stream", rescorer=6, parts=parts)
    return kind(model, key=key, combiner=combiner)


def run(way: Way, name: str) -> list[Output]:
    history = form("history")
    recorded = [history.recorded(seed, 8) for seed in (20, 21)]
    return [output for user in run_users(way.users(adapter(name), 2), recorded) for output in user]


@pytest.mark.parametrize("name", ["adapter", "model", "key"])
@pytest.mark.parametrize("way", [way for way in WAYS if way.follows], ids=str)
def test_own_parts_are_run(way: Way, name: str) -> None:
    expected, plain = run(REFERENCE, name), run(REFERENCE, "")
    differ = [a.probs - b.probs for a, b in zip(expected, plain, strict=True)]
    assert max(float(x.abs().max()) for x in differ) > 1e-3
    for output, right in zip(run(way, name), expected, strict=True):
        assert_close(output, right, 1e-5)
