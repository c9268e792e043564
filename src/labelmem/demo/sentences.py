"""What the figures show, in sentences that are made from the figures and from nothing else."""

from __future__ import annotations

import math

import numpy as np

from labelmem.demo.curves import Curve, difference
from labelmem.demo.explained import Explained
from labelmem.demo.run import TaskResult

__all__ = ["along_the_stream", "by_meeting_sees", "explained_sees", "verdict"]


def verdict(done: TaskResult) -> list[str]:
    """LMN against the model alone, and against the best of the others."""
    lmn, static = done["lmn"], done["static"]
    sentences = []
    for new, word in ((True, "new"), (False, "seen")):
        key = f"accuracy_{word}"
        ours, theirs = lmn.result.metrics[key], static.result.metrics[key]
        if not math.isnan(ours):
            gap = difference(lmn.trace, static.trace, new)
            size = "a clear gain" if gap.low > 0 else "a clear loss" if gap.high < 0 else ""
            sentences.append(
                f"On {word} labels LMN is right {ours:.1%} of the time, the model alone "
                f"{theirs:.1%}: {100 * gap.value:+.1f} points (95% interval {100 * gap.low:+.1f} "
                f"to {100 * gap.high:+.1f}), {size or 'no clear change'}."
            )
    return [*sentences, *(_against_best(done, key) for key in ("log_perplexity", "mrr"))]


def along_the_stream(lmn: Curve, static: Curve) -> str:
    """How accuracy changes from the first part of the streams to their second half."""
    (first, later), (alone_first, alone_later) = (
        (y[0], float(np.mean(y[len(y) // 2 :]))) for _, y in (lmn, static)
    )
    return (
        f"LMN goes from {first:.0%} in the first part of the streams to {later:.0%} in their "
        f"second half; the model alone from {alone_first:.0%} to {alone_later:.0%}."
    )


def by_meeting_sees(lmn: Curve) -> str:
    """What a few examples of a new label are worth to LMN."""
    x, y = lmn
    if len(x) < 2:
        return "There are too few new labels here to tell."
    return (
        f"Before a new label was shown for the first time nobody can name it ({y[0]:.0%}). LMN "
        f"names it {y[1]:.0%} of the time after one example and {y[-1]:.0%} after {x[-1]:.0f}."
    )


def explained_sees(seen: Explained) -> str:
    """Who said what about one input."""
    why = seen.explanation
    right = "which is right" if why.label == seen.truth else f"but it was {seen.truth}"
    return (
        f"Step {seen.step} of one test user. The model alone would say {seen.model_label} "
        f"({seen.model_probability:.0%}). LMN says {why.label} with {why.probability:.0%}, "
        f"{right}: {why.memory_share:.0%} of that comes from the memory, {why.model_share:.0%} "
        "from the model."
    )


def _against_best(done: TaskResult, key: str) -> str:
    title, sign = ("log-perplexity", -1) if key == "log_perplexity" else ("MRR", 1)
    others = [method for method in done.methods if method.name != "lmn"]
    best = max(others, key=lambda method: sign * method.result.metrics[key])
    ours, theirs = done["lmn"].result.metrics[key], best.result.metrics[key]
    ahead = "ahead of" if sign * ours > sign * theirs else "behind or level with"
    return (
        f"In {title} LMN is {ahead} the best of the others, {best.title}: "
        f"{ours:.3f} against {theirs:.3f}."
    )
