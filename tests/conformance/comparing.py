"""Running users, and comparing what they were told and what their streams keep."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from conformance.forms import Form
from conformance.users import Output, Users
from conformance.ways import REFERENCE

__all__ = ["PARTS", "assert_close", "reference_run", "run_users", "saved", "tensors"]

PARTS = ("probs", "theta", "model_probs", "memory_probs")


def run_users(users: Users, recorded: Sequence[tuple[Tensor, list[Any]]]) -> list[list[Output]]:
    """All outputs of each user; one whose stream has ended is masked and offered nonsense."""
    outputs: list[list[Output]] = [[] for _ in recorded]
    for t in range(max(len(y) for _, y in recorded)):
        mask = [t < len(y) for _, y in recorded]
        found = users.predict([x[t] if t < len(x) else x[0] for x, _ in recorded])
        for n, output in enumerate(found):
            outputs[n] += [output] if mask[n] else []
        labels = [y[t] if t < len(y) else ("nonsense", t) for _, y in recorded]
        users.observe(labels, None if all(mask) else mask)
    return outputs


@cache
def reference_run(form: Form) -> list[list[Output]]:
    """What the reference answers to the users of a form, each in a stream of his own."""
    return run_users(REFERENCE.users(form.build(**REFERENCE.options), len(form.users)), form.users)


def assert_close(found: Output, expected: Output, atol: float) -> None:
    """The same labels, and all tensors within ``atol``."""
    assert found.labels == expected.labels
    for name in PARTS:
        mine, theirs = getattr(found, name), getattr(expected, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            assert mine.shape == (len(found.labels),)
            torch.testing.assert_close(mine, theirs, rtol=0, atol=atol, msg=lambda m, n=name: n + m)


def saved(stream: Any) -> bytes:
    """All that a stream keeps, as the file it is saved in."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stream")
        stream.save(path)
        return path.read_bytes()


def tensors(stream: Any) -> dict[str, Tensor]:
    """The tensors of that file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stream")
        stream.save(path)
        return load_file(path)  # type: ignore[no-any-return]
