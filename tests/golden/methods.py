"""Methods to compare with, and streams that were saved of them. What they fit, they fit here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from golden import models
from golden.arithmetic import habits, vectors
from golden.trajectory import Case

from labelmem.baselines import make

BASELINES = Path(__file__).parent / "files" / "baselines"
STEPS = 32
LABELS = ("ant", "bee", "cat", "dog", "elk")
OWN = ("fox", 7)
_SEED = 5


def _case(
    name: str,
    method: str,
    fit: bool = False,
    model: Any = None,
    batch: bool = True,
    **options: Any,
) -> Case:
    """Around a model if there is one; ``model=()`` is a model of no labels."""

    def made() -> Any:
        around: dict[str, Any] = {"labels": LABELS}
        if model == ():
            around = {"model": torch.nn.Identity(), "labels": ()}
        elif model is not None:
            around["model"] = model(len(LABELS))
        found = make(method, **around, **options)
        if fit:
            found.fit([stream(seed) for seed in range(30, 42)])
        return found

    x, y = stream(_SEED, OWN)
    return Case(name, made, x, y, batch=batch)


def stream(seed: int, own: Sequence[Any] = ()) -> tuple[torch.Tensor, list[Any]]:
    """A user; all of them mean the same by a label."""
    y = habits(LABELS, own, STEPS, seed)
    return vectors(y, models.INPUTS, _SEED), y


CASES = [
    _case("unigram", "unigram", fit=True, smoothing=0.5),
    _case("counter", "counter", fit=True, theta=0.7, decay=0.9, power=1.3),
    _case("session-knn", "session-knn", fit=True, theta=0.6, neighbours=5, candidates=9),
    _case("static", "static", model=models.perceptron),
    _case("static-recurrent", "static", model=models.Recurrent),
    _case("ncm", "ncm", model=()),
    _case("ncm-cosine", "ncm", fit=True, model=models.perceptron, metric="cosine", theta=0.6),
    _case("slda", "slda", model=(), temperature=5.0),
    _case("slda-fitted", "slda", fit=True, model=models.perceptron, shrinkage=0.1),
    _case("knn", "knn", model=models.perceptron),
    _case("knn-few", "knn", model=(), neighbours=3, capacity=9, sharpness=4.0),
    _case("sgd-head", "sgd-head", model=models.perceptron, lr=0.3),
    _case("sgd-head-imprint", "sgd-head", model=models.Recurrent, lr=0.2, init="imprint"),
    _case("sgd-all", "sgd-all", model=models.perceptron, lr=0.1, decay=0.05),
    # vmap, which takes streams at once, warns that it is slow with this model's layers.
    _case("sgd-all-recurrent", "sgd-all", model=models.Recurrent, batch=False, lr=0.05),
]
