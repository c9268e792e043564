"""One user of a model folder: what comes next, why, what is remembered, and forgetting it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from labelmem.errors import InputError
from labelmem.labels import KnownLabels, LabelSpace
from labelmem.lmn import LMNState, LMNStep
from labelmem.logs.folder import WEIGHTS, Fitted, load_fitted
from labelmem.logs.packing import unpack
from labelmem.logs.states import FILE, Kept, States
from labelmem.logs.times import shown
from labelmem.logs.traces import occurrences
from labelmem.logs.vocabulary import tokens_of

__all__ = ["explain_user", "forget_user", "inspect_user", "predict_user"]

_PROBE = 64  # bytes of a state that are looked for after it was removed
_TELLING = 6  # characters from which a user's id is not looked for in vain among other bytes
_WORDS = ("card.json", "card.md", "config.json", "embeddings.json", "labels.json")
"""Files in words, without users. The name of an item or a word of ours may be someone's id."""


def predict_user(folder: Path, user: str, top: int = 5, device: str = "cpu") -> dict[str, Any]:
    """The items that a user will most likely have next. Changes nothing."""
    one = _OneUser(folder, user, device)
    best = one.step.probs[0].topk(min(top, one.step.probs.shape[1]))
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return one.about() | {
        "top": [{"item": one.space.name(i), "p": p} for i, p in pairs if p > 0],
    }


def explain_user(
    folder: Path, user: str, item: str | None = None, device: str = "cpu"
) -> dict[str, Any]:
    """Why the most likely item, or another one, is predicted."""
    one = _OneUser(folder, user, device)
    number = int(one.step.probs[0].argmax()) if item is None else one.space.find(item)
    if number is None:
        raise InputError(
            f"neither the model nor user {user!r} knows the item {item!r}; name one that "
            "`labelmem inspect` or labels.json lists"
        )
    told = one.fitted.adapter.explain(one.step, number).named(one.space)
    cells = [asdict(cell) for cell in told.cells]
    return one.about() | {
        "item": told.label,
        "p": told.probability,
        "theta": told.theta,
        "model_share": told.model_share,
        "memory_share": told.memory_share,
        "cells": [{"item": cell.pop("label")} | cell for cell in cells],
    }


def inspect_user(folder: Path, user: str, device: str = "cpu") -> dict[str, Any]:
    """What is remembered of a user: items, how often, how strong, how long ago."""
    one = _OneUser(folder, user, device)
    if one.kept is None:
        raise InputError(f"nothing is kept of user {user!r} in {folder}; `adapt` keeps users")
    memory = one.state.memory
    now, cells = int(memory.time[0]), int(memory.used[0])
    columns = [x[0, :cells].tolist() for x in (memory.label, memory.alpha, memory.writes)]
    ages = (now - memory.written[0, :cells] + 1).tolist()
    rows = [
        {"item": one.space.name(label), "weight": alpha, "events": writes, "age": age}
        for label, alpha, writes, age in zip(*columns, ages, strict=True)
    ]
    last = None if one.kept.time is None else shown(one.kept.time)
    return one.about() | {
        "last_event": last,
        "bytes": len(one.kept.state),
        "memory": sorted(rows, key=lambda row: row["age"]),
    }


def forget_user(folder: Path, user: str) -> dict[str, Any]:
    """Remove all that is kept of a user, and look whether anything is left."""
    if not (folder / FILE).exists():
        load_fitted(folder)  # if it is no model folder, that is a mistake and no good news
    with States(folder) as states:
        probes = _probes(folder, states.get([user]).get(user))
        kept = states.forget(user)
        named = [user.encode()] if len(user) >= _TELLING and not states.mentions(user) else []
        runs = states.runs()
    left = [
        path.name
        for path in sorted(folder.rglob("*"))
        if _holds(path, probes if path.name in _WORDS else probes + named)
    ]
    return {
        "user": user,
        "found": kept is not None,
        "removed": None if kept is None else _removed(kept),
        "verified": not left,
        "probes": len(probes) + len(named),
        "left_in": left,
        "outputs": sorted({run.output for run in runs if run.output}),
        "unfinished": [run.output or run.digest for run in runs if not run.finished],
    }


def _removed(kept: Kept) -> dict[str, int]:
    return {"events": kept.observed, "own_items": len(kept.own), "bytes": len(kept.state)}


def _probes(folder: Path, kept: Kept | None) -> list[bytes]:
    """Pieces of a user's state that the file of all states holds exactly once, the model not.

    What others have as well, such as the trace of a common item, would be found again and says
    nothing. So would the vector of an item, which a state may hold as the model has it.
    """
    if kept is None:
        return []
    every = max(_PROBE, len(kept.state) // 16)
    pieces = [kept.state[i : i + _PROBE] for i in range(0, len(kept.state) - _PROBE, every)]
    states, *weights = (occurrences(folder / name, pieces) for name in (FILE, *_weights(folder)))
    return [
        piece
        for piece, count, *others in zip(pieces, states, *weights, strict=True)
        if count == 1 and not any(others)
    ]


def _weights(folder: Path) -> list[str]:
    """What `fit` wrote and nobody since: there is no user in it."""
    return [name for name in WEIGHTS if (folder / name).is_file()]


def _holds(path: Path, probes: list[bytes]) -> bool:
    return path.is_file() and any(occurrences(path, probes))


class _OneUser:
    """A user's state, and the prediction of what comes next."""

    def __init__(self, folder: Path, user: str, device: str) -> None:
        self.fitted: Fitted = load_fitted(folder, device)
        self.user, self.kept = user, _kept(folder, user)
        own = [] if self.kept is None else list(self.kept.own)
        adapter, vocabulary = self.fitted.adapter, self.fitted.vocabulary
        self.space = LabelSpace(KnownLabels(vocabulary.names), own)
        packed = None if self.kept is None else self.kept.state
        self.state: LMNState = unpack(adapter, [packed])
        previous = torch.tensor([-1 if self.kept is None else self.kept.previous])
        x = tokens_of(previous, len(vocabulary)).to(adapter.device)
        self.step: LMNStep = adapter.advance(self.state, x, len(self.space))

    def about(self) -> dict[str, Any]:
        """Who, and since when."""
        events = 0 if self.kept is None else self.kept.observed
        return {"user": self.user, "known": self.kept is not None, "events": events}


def _kept(folder: Path, user: str) -> Kept | None:
    if not (folder / FILE).exists():
        return None
    with States(folder) as states:
        return states.get([user]).get(user)
