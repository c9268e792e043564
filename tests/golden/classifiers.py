"""Classifiers of scikit-learn and river, and what they are shown. They are not saved, only run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from golden import models
from golden.arithmetic import habits, vectors
from torch import Tensor

from labelmem import MemoryConfig
from labelmem.interop import river, sklearn

CLASSIFIERS = Path(__file__).parent / "files" / "classifiers.safetensors"
STEPS = 60
KNOWN, OWN = ("ant", "bee", "cat"), ("dog", "elk")
EVERY = sorted((*KNOWN, *OWN))
NAMES = ("height", "width", "depth", "age")
Y = habits(KNOWN, OWN, STEPS, 8)
X = vectors(Y, models.INPUTS, 9).double()
ASKED = vectors(habits(EVERY, (), 8, 10), models.INPUTS, 9).double()


def _sklearn(**options: Any) -> Tensor:
    """(16, 5) what is predicted after half of the rows, and after all."""
    rows, half = X.numpy(), STEPS // 2
    classifier = sklearn.LabelMemClassifier(**options)
    classifier.partial_fit(rows[:half], Y[:half], classes=EVERY)
    before = classifier.predict_proba(ASKED.numpy())
    classifier.partial_fit(rows[half:], Y[half:])
    after = classifier.predict_proba(ASKED.numpy())
    return torch.cat([torch.tensor(before), torch.tensor(after)])


def _sklearn_shown(**options: Any) -> Tensor:
    """(8, 3) what is predicted after ``fit``, which shows the data to the memory beside a model."""
    known = [t for t, y in enumerate(Y) if y in KNOWN]
    classifier = sklearn.LabelMemClassifier(**options)
    classifier.fit(X[known].numpy(), [Y[t] for t in known])
    return torch.tensor(classifier.predict_proba(ASKED.numpy()))


def _river(vary: bool = False, **options: Any) -> Tensor:
    """(60, 5) what is predicted at each step; zeros for labels that were not known."""
    classifier = river.LabelMemClassifier(**options)
    rows = []
    for t, (x, y) in enumerate(zip(X.tolist(), Y, strict=True)):
        there = NAMES[: 3 if vary and t % 5 == 2 else 4][1 if vary and t < 20 else 0 :]
        features = {name: x[NAMES.index(name)] for name in there}
        found: Mapping[Any, float] = classifier.predict_proba_one(features)
        rows.append([found.get(label, 0.0) for label in EVERY])
        classifier.learn_one(features, y)
    return torch.tensor(rows, dtype=torch.float64)


def _around(**options: Any) -> dict[str, Any]:
    return {"model": models.perceptron(len(KNOWN)), "labels": KNOWN, **options}


RUNS: dict[str, Callable[[], Tensor]] = {
    "sklearn": lambda: _sklearn(),
    "sklearn-window": lambda: _sklearn(window=12),
    "sklearn-memory": lambda: _sklearn(window=0, memory=MemoryConfig(lam=8.0, cells_per_label=3)),
    "sklearn-model": lambda: _sklearn(**_around(theta=0.7)),
    "sklearn-shown": lambda: _sklearn_shown(
        **_around(memory=MemoryConfig(cells_per_label=2), theta=0.5)
    ),
    "river": lambda: _river(),
    "river-features": lambda: _river(vary=True, window=15),
    "river-memory": lambda: _river(window=0, memory=MemoryConfig(capacity=6, margin=2.0)),
    "river-model": lambda: _river(**_around(features=NAMES, theta=0.3)),
}
"""By name, what gives the probabilities of a run."""
