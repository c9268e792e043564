"""Weights as numpy sees them: found once, and found again where they moved."""

from __future__ import annotations

import copy

import torch
from torch import nn

from labelmem.fast import arrays


def test_weights_are_seen_where_they_lie() -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    module.register_buffer("own", torch.zeros(2))
    module.register_buffer("nothing", None)
    seen = arrays(module)
    assert arrays(module) is seen
    assert set(seen) == {"own", *(name for name, _ in module[:2].state_dict().items())}
    with torch.no_grad():
        module[0].weight.fill_(7.0)  # in place, as training does
    assert bool((arrays(module)["0.weight"] == 7.0).all())


def test_what_moved_is_found_again() -> None:
    module = nn.Sequential(nn.Linear(2, 3))
    before = arrays(module)
    twin = copy.deepcopy(module)
    module[0].weight = nn.Parameter(torch.full((3, 2), 5.0))
    assert bool((arrays(module)["0.weight"] == 5.0).all())
    assert not bool((before["0.weight"] == 5.0).all())
    with torch.no_grad():
        twin[0].weight.fill_(2.0)
    assert bool((arrays(twin)["0.weight"] == 2.0).all())
    assert bool((arrays(module)["0.weight"] == 5.0).all())
    module[0].bias = None
    assert "0.bias" not in arrays(module)
