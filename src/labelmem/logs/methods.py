"""What the fitted model is measured against, and the measuring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from labelmem.baselines.counter import Counter
from labelmem.evaluation import replayed
from labelmem.logs.scores import Scores, measured
from labelmem.online import OnlineMethod
from labelmem.progress import progress_bar
from labelmem.recording import lockstep_batches
from labelmem.search import Grid, Point, best_point

__all__ = ["TOP", "scored", "tuned_counter"]

Recorded = tuple[Tensor, Tensor]
TOP = 5
"""How many predictions count as a short list."""
_ABREAST = 256
_COUNTER: Grid = {  # as for Table 2: the baseline to beat gets all it can choose
    "theta": (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.93, 0.95, 0.97, 0.98),
    "decay": (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 1.0),
    "power": (0.5, 0.7, 0.85, 1.0, 1.2, 1.5),
    "smoothing": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
}


@torch.no_grad()
def scored(
    method: OnlineMethod[Any], streams: Sequence[Recorded], show: bool | None = False
) -> Scores:
    """Predict every event of every stream before it is revealed."""
    scores, known = Scores(len(streams)), len(method.known)
    batches = lockstep_batches(streams, method.known, _ABREAST, method.device, method.dtype)
    total = sum(len(y) for _, y in streams)
    met = torch.empty(0)
    with progress_bar(f"measure {method.name}", total, show) as report:
        for seen in replayed(method, batches):
            y, mask = seen.y, seen.mask
            if seen.t == 0:
                met = torch.full_like(y, known)
            rows = mask.nonzero()[:, 0]
            named = y < met
            worth = seen.step.worth(y.where(named, -1))
            found = measured(worth.figures, named, TOP)[rows].cpu()
            users = [seen.order[row] for row in rows.tolist()]
            scores.add(users, found.double().numpy())
            met = torch.where(mask, torch.maximum(met, y + 1), met)
            report(len(found))
    return scores


def tuned_counter(
    labels: int,
    train: Sequence[Recorded],
    search: Sequence[Recorded],
    trials: int,
    device: torch.device,
    show: bool | None = False,
) -> Counter:
    """A per-user counter with the options that are best on the streams of ``search``."""
    counter = Counter(labels, device=device).fit(train)
    start = {"theta": 0.5, "decay": 0.98, "power": 1.0, "smoothing": 3.0}

    def loss(point: Point) -> float:
        return scored(counter.variant(**point), search).figures()["log_perplexity"]

    return counter.variant(**best_point("tune counter", loss, start, _COUNTER, trials, show))
