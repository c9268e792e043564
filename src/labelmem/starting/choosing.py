"""When a form is better than the default form, on streams that it has not learned from."""

from __future__ import annotations

import math
from collections.abc import Sequence

from labelmem.starting.outcome import Outcome

__all__ = ["chosen", "surpasses"]

_ROUNDING = 1e-9


def surpasses(found: Outcome, default: Outcome, metric: str, guard: float) -> bool:
    """Whether it gained more than chance may have given, at almost no cost for known labels.

    Parameters
    ----------
    found, default
        Of the same steps.
    metric
        ``log_perplexity`` or ``accuracy``. The mean gain must be above its standard error.
    guard
        The most that accuracy on known labels may be below the default form's.
    """
    gain = default.costs(metric) - found.costs(metric)
    if len(gain) < 2 or not float(gain.mean()) > float(gain.std()) / math.sqrt(len(gain)):
        return False
    before, after = default.figures.accuracy_known, found.figures.accuracy_known
    return not after < before - guard - _ROUNDING  # nan, where no label was known, is no loss


def chosen(outcomes: Sequence[Outcome], metric: str, guard: float) -> int:
    """Which is the best of those that surpass the first; 0, the first itself, if none does."""
    better = [i for i, o in enumerate(outcomes) if surpasses(o, outcomes[0], metric, guard)]
    return min(better, key=lambda i: outcomes[i].mean(metric), default=0)
