"""One prediction of LMN, taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelmem import functional as F
from labelmem.adapter import Adapter
from labelmem.demo.task import Task
from labelmem.demo.trace import Trace
from labelmem.explain import Explanation

__all__ = ["Explained", "explain_one"]


@dataclass(frozen=True)
class Explained:
    """A prediction with everything that stands behind it."""

    step: int
    """Which of the user's steps it is, counted from 1."""
    truth: Any
    labels: list[Any]
    probs: list[float]
    model_probs: list[float]
    memory_probs: list[float]
    explanation: Explanation
    picture: Any
    """The input as rows and columns."""
    written: list[Any]
    """The earlier inputs, as pictures, that the memory wrote under the predicted label."""

    @property
    def label(self) -> Any:
        """What was predicted."""
        return self.explanation.label

    @property
    def model_label(self) -> Any:
        """What the model alone would have said."""
        return self.labels[int(np.argmax(self.model_probs))]


def explain_one(lmn: Adapter, task: Task, trace: Trace) -> Explained:
    """Replay a test user up to the first new label in the second half that LMN gets right.

    If there is none, the last step of the first user is taken, whatever happened there.
    """
    user, last = _pick(trace)
    inputs, labels = task.test[user]
    stream, written = lmn.stream(), []
    for t in range(last):
        p = stream.predict(inputs[t])
        if _writes(lmn, p.probs, stream.space.find(labels[t])):
            written.append((labels[t], inputs[t]))
        stream.observe(labels[t])
    p = stream.predict(inputs[last])
    assert p.model_probs is not None and p.memory_probs is not None
    return Explained(
        step=last + 1,
        truth=labels[last],
        labels=p.labels,
        probs=p.probs.tolist(),
        model_probs=p.model_probs.tolist(),
        memory_probs=p.memory_probs.tolist(),
        explanation=stream.explain(p),
        picture=_picture(task, inputs[last]),
        written=[_picture(task, x) for y, x in written if y == p.label],
    )


def _pick(trace: Trace) -> tuple[int, int]:
    half = trace.hit.shape[1] // 2
    good = (trace.hit == 1) & (trace.new == 1)
    good[:, :half] = False
    if good.any():
        user, step = np.argwhere(good)[0].tolist()
        return user, step
    return 0, int((~np.isnan(trace.hit[0])).sum()) - 1


def _writes(lmn: Adapter, probs: Tensor, label: int | None) -> bool:
    """Whether the memory is going to write: the rule of the margin."""
    y = torch.tensor([len(probs) if label is None else label])
    loss, _ = F.margin_loss(probs[None], y, lmn.memory.margin)
    return bool(loss > 0)


def _picture(task: Task, x: Tensor) -> Any:
    assert task.pictures is not None
    return x.reshape(task.pictures).numpy()
