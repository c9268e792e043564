"""A stream of known inputs and labels, what was predicted along it, and the files that keep that.

Everything goes through public names, so that the same files judge later versions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

TOLERANCE = 1e-5
"""How far a probability may be from the recorded one."""
_NAMES = "golden"  # the entry of the file's metadata that holds the recorded names


@dataclass(frozen=True)
class Case:
    """A method and a stream for it. The stream is saved after half of its steps."""

    name: str
    method: Callable[[], Any]
    """Makes the method, as far as its own file does not hold it."""
    x: Tensor
    y: Sequence[Any]
    late: bool = False
    """Whether the labels of every two steps arrive together, the later one first."""
    batch: bool = True
    """Whether streams in lockstep must predict the same."""

    @property
    def half(self) -> int:
        """Steps before the stream is saved."""
        return len(self.y) // 4 * 2


@dataclass(frozen=True)
class Record:
    """What was predicted at each step; labels are written as ``repr`` has them."""

    probs: Tensor
    """(T, W), zeros beyond the labels that the stream knew."""
    theta: Tensor | None
    """(T, W), where there is a mixture."""
    width: Tensor
    """(T,) how many labels the stream knew."""
    names: dict[str, Any]
    """``labels`` at the end, and ``explained``: the first step after the stream was loaded."""

    def write(self, path: Path) -> None:
        """To one file."""
        tensors = {"probs": self.probs, "theta": self.theta, "width": self.width}
        kept = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        save_file(kept, path, {_NAMES: json.dumps(self.names)})

    @classmethod
    def read(cls, path: Path) -> Record:
        """From that file."""
        with safe_open(path, framework="pt") as file:
            kept = {name: file.get_tensor(name) for name in file.keys()}
            names = json.loads(file.metadata()[_NAMES])
        return cls(kept["probs"], kept.get("theta"), kept["width"], names)


def follow(stream: Any, case: Case, first: int = 0, last: int | None = None) -> list[Any]:
    """Predict and observe the steps from ``first`` to ``last``; the predictions."""
    predictions: list[Any] = []
    waiting: list[int] = []
    for t in range(first, len(case.y) if last is None else last):
        predictions.append(stream.predict(case.x[t]))
        waiting.append(t)
        while waiting and (not case.late or t % 2):
            at = waiting.pop()
            stream.observe(named(case.y[at], stream.labels), prediction=predictions[at - first])
    return predictions


def named(label: Any, known: Sequence[Any]) -> Any:
    """None was a label once: a saved stream may have it, but a new one is told another name."""
    return "none" if label is None and None not in known else label


def spelled(labels: Sequence[Any]) -> list[str]:
    """Labels as the records name them."""
    return ["None" if label == "none" else repr(label) for label in labels]


def recorded(predictions: Sequence[Any], names: dict[str, Any]) -> Record:
    """What is kept of predictions."""
    theta = None
    if predictions[0].theta is not None:
        theta = _padded([p.theta for p in predictions])
    width = torch.tensor([len(p.labels) for p in predictions])
    return Record(_padded([p.probs for p in predictions]), theta, width, names)


def explained(stream: Any, prediction: Any) -> dict[str, Any] | None:
    """Why the best label was predicted; None where the method cannot say."""
    from labelmem.errors import UnsupportedError

    try:
        found = stream.explain(prediction)
    except UnsupportedError:
        return None
    cells = [[repr(c.label), c.weight, c.alpha, c.share] for c in found.cells]
    numbers = [found.probability, found.theta, found.model_share, found.memory_share]
    return {"label": repr(found.label), "numbers": numbers, "cells": sorted(cells)}


def assert_follows(predictions: Sequence[Any], record: Record, first: int = 0) -> None:
    """The predictions are those recorded from step ``first`` on."""
    for t, p in enumerate(predictions, first):
        width = int(record.width[t])
        expected = record.names["labels"][:width]
        assert spelled(p.labels) == expected, f"step {t}"
        assert_near(p.probs, record.probs[t, :width], f"probabilities of step {t}")
        if record.theta is not None:
            assert_near(p.theta, record.theta[t, :width], f"theta of step {t}")


def assert_lockstep(method: Any, case: Case, record: Record) -> None:
    """Two streams side by side predict it; the second is masked out every other time."""
    batch = method.streams(2)
    for tick in range(case.half):
        at = (tick, tick // 2)
        probs = batch.predict(case.x[list(at)])
        for row, t in zip(probs, at, strict=True):
            width = int(record.width[t])
            assert_near(row[:width], record.probs[t, :width], f"probabilities of step {t}")
            assert not row[width:].any()
        batch.observe([named(case.y[t], ()) for t in at], mask=[True, tick % 2 == 1])


def assert_near(seen: Any, expected: Any, what: str, tolerance: float = TOLERANCE) -> None:
    """Numbers agree within the tolerance."""
    seen, expected = (torch.as_tensor(x, dtype=torch.float64) for x in (seen, expected))
    assert seen.shape == expected.shape, f"{what}: {tuple(seen.shape)}"
    far = float((seen - expected).abs().max()) if seen.numel() else 0.0
    assert far <= tolerance, f"{what}: {far:.2g} from the recorded ones"


def assert_explained(seen: dict[str, Any] | None, expected: dict[str, Any] | None) -> None:
    """An explanation says what was recorded."""
    assert (seen is None) == (expected is None)
    if seen is None or expected is None:
        return
    assert seen["label"] == expected["label"]
    assert [cell[0] for cell in seen["cells"]] == [cell[0] for cell in expected["cells"]]
    for name in ("numbers", "cells"):
        for a, b in zip(_flat(seen[name]), _flat(expected[name]), strict=True):
            assert a == b if b is None or isinstance(b, str) else abs(a - b) <= 10 * TOLERANCE


def _padded(rows: Sequence[Tensor]) -> Tensor:
    most = max(len(row) for row in rows)
    return torch.stack([torch.nn.functional.pad(row, (0, most - len(row))) for row in rows])


def _flat(values: Sequence[Any]) -> list[Any]:
    return [x for value in values for x in (value if isinstance(value, list) else [value])]
