"""Many users in lockstep: predict each next item, reveal it, go on."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelmem.logs.lanes import Lane
from labelmem.logs.packing import pack, unpack
from labelmem.logs.scores import COLUMNS, measured
from labelmem.logs.states import Kept
from labelmem.stepping import Stepping

__all__ = ["BUCKETS", "Feed", "Replay", "Source", "empty_tally"]

Integers = npt.NDArray[np.int64]
Feed = Callable[[Integers, Tensor], Tensor]
"""What enters the method: from the events' positions in the log (n,) and the numbers of the items
before (n,), -1 where there is none."""
BUCKETS = 24
"""Bucket b of the learning curve holds a user's events number 2**b to 2**(b+1) - 1, from 1."""


def empty_tally() -> list[list[float]]:
    """Nothing added up yet: for each bucket the columns of :mod:`labelmem.logs.scores`."""
    return [[0.0] * len(COLUMNS) for _ in range(BUCKETS)]


@dataclass(frozen=True)
class Source:
    """Whatever predicts: a method, the names of its labels, and what is fed to it."""

    method: Stepping[Any]
    names: Sequence[str]
    known: Callable[[Sequence[str]], Integers]
    """Numbers of the log's items among these, -1 for others."""
    feed: Feed
    top: int = 5
    """How many predictions are written for each event."""


class Replay:
    """A lane on its way through its events."""

    def __init__(self, source: Source, lane: Lane) -> None:
        method = source.method
        self.source, self.lane, self.method = source, lane, method
        self.state = unpack(method, [past.state if past else None for past in lane.kept])
        self.previous = torch.from_numpy(lane.previous).to(method.device)
        self.met = torch.from_numpy(lane.met).to(method.device)

    @torch.no_grad()
    def run(self, tally: list[list[float]]) -> list[str]:
        """Predict and learn every event; the lines to write. ``tally`` is added to."""
        lane, sums = self.lane, np.array(tally)
        width, lines = lane.width, []
        for t in range(lane.y.shape[1]):
            events, there = lane.events(t)
            step = self.method.advance(self.state, self.source.feed(events, self.previous), width)
            y, mask = self._on_device(lane.y[:, t]), self._on_device(there)
            named = y < self.met
            worth = step.worth(y.where(named, -1), top=self.source.top)
            found = measured(worth.figures, named, self.source.top).cpu().double().numpy()
            chosen = worth.labels.tolist(), worth.probs.tolist()
            lines += self._lines(events, there, found, *chosen)
            self.method.commit(self.state, step, y, None if there.all() else mask)
            self.met = torch.where(mask, torch.maximum(self.met, y + 1), self.met)
            self.previous = torch.where(mask, y, self.previous)
            buckets = np.log2(lane.before[there] + t + 1).astype(np.int64).clip(max=BUCKETS - 1)
            np.add.at(sums, buckets, found[there])
        tally[:] = sums.tolist()
        return lines

    def kept(self) -> dict[str, Kept]:
        """What to keep of the users now."""
        return self.lane.kept_after(pack(self.method, self.state), self.previous.tolist())

    def _on_device(self, values: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.method.device)

    def _lines(
        self,
        events: Integers,
        there: npt.NDArray[np.bool_],
        found: npt.NDArray[np.float64],
        best: list[list[int]],
        probs: list[list[float]],
    ) -> list[str]:
        """One JSON object for each event, in words."""
        lane, log = self.lane, self.lane.log
        lines = []
        for i in np.flatnonzero(there).tolist():
            event = int(events[i])
            line = {"row": int(log.row[event]), "user": lane.names[i]}
            if log.time is not None:
                line["time"] = float(log.time[event])
            _, rank, _, _, named, nats = found[i].tolist()
            line["item"] = log.items[log.item[event]]
            line["p"] = round(math.exp(-nats), 6) if named else 0.0
            line["rank"] = round(1 / rank, 1) if rank else None
            chosen = zip(best[i], probs[i], strict=True)
            line["top"] = [[self._name(i, k), round(p, 6)] for k, p in chosen if p > 0]
            lines.append(json.dumps(line, ensure_ascii=False))
        return lines

    def _name(self, i: int, number: int) -> str:
        names = self.source.names
        known = len(names)
        return names[number] if number < known else self.lane.own[i][number - known]
