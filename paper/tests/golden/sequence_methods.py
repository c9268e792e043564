"""Methods that are networks of their own, with weights that were trained once and saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from golden.arithmetic import habits
from golden.trajectory import Case
from safetensors.torch import load_file

from labelmem.baselines import make

METHODS = Path(__file__).parent / "files"
STEPS = 32
LABELS = ("ant", "bee", "cat", "dog", "elk")
OPTIONS: dict[str, dict[str, Any]] = {
    "dntm": {"dim": 6, "cells": 5, "content": 4, "address": 3},
    "rei": {"dim": 6, "vector": 4, "lr": 0.5, "decay": 0.1},
    "maml": {"dim": 6, "lr": 0.3},
}


def stream(seed: int, own: tuple[str, ...] = ()) -> tuple[torch.Tensor, list[Any]]:
    """A user; these methods see labels only."""
    return torch.zeros(STEPS, 1), habits(LABELS, own, STEPS, seed)


def untrained(name: str) -> Any:
    """A method as it is made."""
    return make(name, labels=LABELS, **OPTIONS[name])


def _case(name: str) -> Case:
    def method() -> Any:
        made = untrained(name)
        made.network.load_state_dict(load_file(METHODS / f"{name}.weights"))
        return made

    return Case(name, method, *stream(7, ("fox", "gnu")))


CASES = [_case(name) for name in OPTIONS]
