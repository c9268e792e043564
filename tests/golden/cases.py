"""Adapters and streams that files were saved of; settings and weights are in the files alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from golden import models
from golden.arithmetic import habits, tokens, vectors
from golden.trajectory import Case
from safetensors.torch import load_file

from labelmem import Adapter
from labelmem.keys import Hidden, Joined, RecentTokens
from labelmem.models import GRUModel, HistoryModel, LSTMModel

FILES = Path(__file__).parent / "files"
STREAMS = FILES / "streams"
MODELS = FILES / "models"
STEPS = 48
LABELS = ("ant", "bee", "cat", "dog", "elk")
OWN = ("fox", 7, True, ("gnu", 3), 2.5, None, b"hen", frozenset({"ibis"}))
"""Labels of a user's own, of every type that can be saved."""
TOKENS = 9


def opened(case: Case) -> Any:
    """A case's adapter, with the settings and weights of its file."""
    adapter = case.method()
    adapter.load(STREAMS / f"{case.name}.adapter")
    return adapter


def _vectors(
    name: str,
    own: Sequence[Any] = OWN[:2],
    labels: Sequence[Any] | None = LABELS,
    model: Callable[[int], Any] = models.perceptron,
    late: bool = False,
    batch: bool = True,
    **options: Any,
) -> Case:
    """A stream of vectors; ``labels=None`` is a model of no labels."""
    known = () if labels is None else labels

    def method() -> Adapter:
        made = models.embedding() if labels is None else model(len(known))
        return Adapter(made, labels=known, **({"combiner": 0.5} if known else {}) | options)

    seed = sum(name.encode())
    y = habits(known or own[:2], own if known else own[2:], STEPS, seed)
    return Case(name, method, vectors(y, models.INPUTS, seed), y, late, batch)


def _tokens(name: str, model: Callable[[], Any], **options: Callable[[], Any]) -> Case:
    """A stream of tokens, for a model of the library; some labels are the user's own."""

    def method() -> Adapter:
        made = model()
        made.load_state_dict(load_file(MODELS / f"{name}.safetensors"))
        made_of = {key: value() for key, value in options.items()}
        return Adapter(made, **{"combiner": 0.5} | made_of)

    y = habits(range(TOKENS), ("mine", "own"), STEPS, sum(name.encode()))
    return Case(name, method, tokens(y, TOKENS), y)


def _recent() -> Joined:
    return Joined(RecentTokens(last=2, dim=8, pair=True, seed=3), Hidden(0.3))


MODELS_BY_CASE: dict[str, Callable[[], Any]] = {
    "gru": lambda: GRUModel(TOKENS, dim=6),
    "lstm": lambda: LSTMModel(TOKENS, dim=6, embedding=4, layers=2),
    "history": lambda: HistoryModel(TOKENS, dim=6, decays=(0.0, 0.7, 1.0)),
}
"""Models whose weights are saved."""

CASES = [
    _vectors("fixed"),
    _vectors("own-labels", OWN),
    _vectors("numbers", (3, 11, 4), labels=(5, 10, 0)),
    _vectors("cells"),
    _vectors("oldest", OWN),
    _vectors("weight", OWN),
    _vectors("stream"),
    _vectors("stream-late", late=True, batch=False),
    _vectors("label"),
    _vectors("label-active", OWN),
    _vectors("recurrent", model=models.Recurrent),
    _vectors("recurrent-late", model=models.Recurrent, late=True, batch=False),
    _vectors("own-key", key=models.input_and_h),
    _vectors("few-shot", OWN, labels=None),
    _vectors("bits-16"),
    _vectors("double", model=lambda labels: models.perceptron(labels).double()),
    _vectors("index", OWN),
    _tokens("gru", MODELS_BY_CASE["gru"], key=lambda: RecentTokens(last=3, dim=6, fade=0.5)),
    _tokens("lstm", MODELS_BY_CASE["lstm"]),
    _tokens("history", MODELS_BY_CASE["history"], key=_recent, partition=lambda: True),
]
