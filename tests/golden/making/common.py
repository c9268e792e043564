"""Following a stream once, saving it on the way, and making sure that it can be relied on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from golden.arithmetic import numbers
from golden.trajectory import Case, Record, assert_follows, explained, follow, recorded


def write_case(case: Case, method: Any, folder: Path) -> Record:
    """Save a stream at half of its steps, and what was predicted before and after."""
    stream = method.stream()
    before = follow(stream, case, 0, case.half)
    stream.save(folder / f"{case.name}.stream")
    loaded = method.load_stream(folder / f"{case.name}.stream")
    reason = explained(loaded, loaded.predict(case.x[case.half]))
    after = follow(stream, case, case.half)
    names = {"labels": [repr(label) for label in stream.labels], "explained": reason}
    record = recorded([*before, *after], names)
    record.write(folder / f"{case.name}.safetensors")
    assert_follows(follow(loaded, case, case.half), record, case.half)
    return record


def spread(record: Record) -> str:
    """The lowest and the highest probability of a step's best label."""
    best = record.probs.max(dim=1).values
    return f"{float(best.min()):.3f} to {float(best.max()):.3f}"


def assert_steady(method: Any, case: Case, record: Record) -> None:
    """No decision of this stream hangs on the last digits of its inputs."""
    if not case.x.is_floating_point():
        return
    draw = numbers(99)
    noise = torch.tensor([2 * next(draw) - 1 for _ in range(case.x.numel())]).view_as(case.x)
    moved = replace(case, x=case.x + 3e-7 * noise)
    assert_follows(follow(method.stream(), moved), record)
