"""What one sees, said in sentences that are made from the figures and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from labelmem.demo.curves import Curve, difference, growth, labels_met
from labelmem.demo.explained import Explained
from labelmem.demo.run import MethodResult, TaskResult
from labelmem.render.tables import Estimate

__all__ = [
    "along_the_stream",
    "by_meeting_sees",
    "cost_sees",
    "explained_sees",
    "growth_sees",
    "theta_sees",
    "verdict",
]


def verdict(done: TaskResult) -> list[str]:
    """LMN against the model alone, and against the best of the others."""
    lmn, static = done["lmn"], done["static"]
    sentences = []
    for new, word in ((True, "new"), (False, "seen")):
        key = f"accuracy_{word}"
        ours, theirs = lmn.result.metrics[key], static.result.metrics[key]
        if not math.isnan(ours):
            gap = difference(lmn.trace, static.trace, new)
            sentences.append(
                f"On {word} labels LMN is right {ours:.1%} of the time, the model alone "
                f"{theirs:.1%}: {_compared(gap)}."
            )
    others = [method for method in done.methods if method.name != "lmn"]
    sentences.append(_against_best(lmn, others, "log_perplexity", "log-perplexity", low=True))
    sentences.append(_against_best(lmn, others, "mrr", "MRR", low=False))
    return sentences


def along_the_stream(done: TaskResult, curves: Mapping[str, Curve]) -> str:
    """How accuracy changes from the first part of the streams to their second half."""
    said = []
    for name in ("lmn", "static"):
        _, y = curves[name]
        said.append((y[0], float(np.mean(y[len(y) // 2 :]))))
    (first, later), (alone_first, alone_later) = said
    return (
        f"LMN goes from {first:.0%} in the first part of the streams to {later:.0%} in their "
        f"second half; the model alone from {alone_first:.0%} to {alone_later:.0%}."
    )


def by_meeting_sees(done: TaskResult, curve: Curve) -> str:
    """What a few examples of a new label are worth to LMN."""
    x, y = curve
    if len(x) < 2:
        return "There are too few new labels here to tell."
    return (
        f"Before a new label was shown for the first time nobody can name it ({y[0]:.0%}). LMN "
        f"names it {y[1]:.0%} of the time after one example and {y[-1]:.0%} after {x[-1]:.0f}."
    )


def theta_sees(done: TaskResult) -> str:
    """How far the memory is trusted, early and late."""
    theta = done["lmn"].trace.theta
    tenth = max(1, theta.shape[1] // 10)
    early, late = np.nanmean(theta[:, :tenth]), np.nanmean(theta[:, -tenth:])
    low, high = np.nanquantile(theta, [0.1, 0.9])
    meaning = (
        "Theta is the belief that the next label is one in memory, which are left to the memory; "
        "the model speaks for the others."
        if done.task.memory_of.get("partition")
        else "Theta is the weight of the memory: 0 is the model alone, 1 the memory alone."
    )
    return (
        f"{meaning} Over all users it averages {early:.2f} in the first tenth of the streams and "
        f"{late:.2f} in the last; eight of ten values lie between {low:.2f} and {high:.2f}. The "
        "curves are running means over 7 steps."
    )


def growth_sees(done: TaskResult) -> str:
    """How large a memory becomes."""
    trace = done["lmn"].trace
    steps, cells = growth(trace.cells)
    last = trace.cells[:, int(steps[-1])]
    _, met = growth(labels_met(trace))
    return (
        f"After {steps[-1]:.0f} labels a user's memory holds {cells[-1]:.1f} cells on average, "
        f"from {np.nanmin(last):.0f} to {np.nanmax(last):.0f}. Users have shown {met[-1]:.1f} "
        "different labels by then: a label owns one cell here, however often it comes."
    )


def cost_sees(done: TaskResult) -> str:
    """What the best accuracy costs."""
    lmn, static = done["lmn"], done["static"]
    best = max(done.methods, key=lambda method: method.result.metrics["accuracy"])
    return (
        f"LMN takes {lmn.us_per_step:.0f} µs per step, {lmn.us_per_step - static.us_per_step:.0f} "
        f"more than the model alone. The most accurate method here is {best.title} "
        f"({best.result.metrics['accuracy']:.1%})."
    )


def explained_sees(seen: Explained) -> str:
    """Who said what about one input."""
    why = seen.explanation
    right = "which is right" if why.label == seen.truth else f"but it was {seen.truth}"
    own = next((cell for cell in why if cell.label == why.label), None)
    behind = "No cell of this label is in memory."
    if own is not None:
        behind = (
            f"The cell of {why.label} was written {len(seen.written)} times before and carries "
            f"{own.share:.0%} of what the memory reads."
        )
    return (
        f"Step {seen.step} of one test user. The model alone would say {seen.model_label} "
        f"({max(seen.model_probs):.0%}). LMN says {why.label} with {why.probability:.0%}, {right}: "
        f"{why.memory_share:.0%} of that comes from the memory, {why.model_share:.0%} from the "
        f"model. {behind}"
    )


def _compared(gap: Estimate) -> str:
    points = [f"{100 * value:+.1f}" for value in (gap.value, gap.low, gap.high)]
    word = "a clear gain" if gap.low > 0 else "a clear loss" if gap.high < 0 else "no clear change"
    return f"{points[0]} points (95% interval {points[1]} to {points[2]}), {word}"


def _against_best(
    lmn: MethodResult, others: Sequence[MethodResult], key: str, title: str, low: bool
) -> str:
    pick = min if low else max
    best = pick(others, key=lambda method: method.result.metrics[key])
    ours, theirs = lmn.result.metrics[key], best.result.metrics[key]
    ahead = ours < theirs if low else ours > theirs
    return (
        f"In {title} LMN is {'ahead of' if ahead else 'behind or level with'} the best of the "
        f"others, {best.title}: {ours:.3f} against {theirs:.3f}."
    )
