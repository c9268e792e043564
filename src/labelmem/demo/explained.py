"""One prediction of LMN, taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelmem.adapter import Adapter
from labelmem.demo.task import Task
from labelmem.demo.trace import Trace
from labelmem.explain import Explanation

__all__ = ["Explained", "explain_one"]


@dataclass(frozen=True)
class Explained:
    """A prediction and what stands behind it."""

    step: int
    """Which of the user's steps it is, counted from 1."""
    truth: Any
    model_label: Any
    """What the model alone would have said."""
    model_probability: float
    explanation: Explanation
    picture: Any
    """The input as rows and columns."""


def explain_one(lmn: Adapter, task: Task, trace: Trace) -> Explained:
    """Replay a test user up to the first new label in the second half that LMN gets right.

    If there is none, the last step of the first user is taken, whatever happened there.
    """
    user, last = _pick(trace)
    inputs, labels = task.test[user]
    stream = lmn.stream()
    for t in range(last):
        stream.predict(inputs[t])
        stream.observe(labels[t])
    p = stream.predict(inputs[last])
    assert p.model_probs is not None and task.pictures is not None
    return Explained(
        step=last + 1,
        truth=labels[last],
        model_label=p.labels[int(p.model_probs.argmax())],
        model_probability=float(p.model_probs.max()),
        explanation=stream.explain(p),
        picture=inputs[last].reshape(task.pictures).numpy(),
    )


def _pick(trace: Trace) -> tuple[int, int]:
    good = (trace.hit == 1) & (trace.new == 1)
    good[:, : trace.hit.shape[1] // 2] = False
    if good.any():
        user, step = np.argwhere(good)[0].tolist()
        return user, step
    return 0, int((~np.isnan(trace.hit[0])).sum()) - 1
