"""Tuning from the default form on: never below it, as far as held-out streams can tell."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from labelmem.lmn import LMN
from labelmem.online import Recorded
from labelmem.replay import Features
from labelmem.search import Point
from labelmem.starting import Outcome, chosen, judge_starts, lessons
from labelmem.tuning.climbing import Climb, apply, replay_point
from labelmem.tuning.options import TuneOptions
from labelmem.tuning.result import TuneResult

__all__ = ["tune_default_form"]

_STARTS: tuple[Point, ...] = tuple(
    {"theta": theta, "lam": lam, "delta": 1.0, "margin": 1.0, "cells_per_label": cells}
    for theta, (lam, cells) in itertools.product((0.2, 0.5, 0.8), ((5.0, 1), (20.0, 8)))
)
"""Where climbs of LMN-fixed begin: few cells that are read widely, or many that are read finely."""


def tune_default_form(
    adapter: LMN, sequences: Iterable[Recorded], options: TuneOptions
) -> TuneResult:
    """Choose among the default form, beginnings learned for it, and LMN-fixed."""
    metric, guard = options.metric, options.guarded(default=True)
    taught = lessons(
        adapter,
        sequences,
        share=options.held_out,
        seed=options.seed,
        batch_size=options.batch_size,
    )
    found = judge_starts(adapter, taught, options.show)
    climb, point = _climbed(adapter, taught.search, found.searched, options)
    names = [one.start.name for one in found.starts]
    outcomes = [one.outcome for one in found.starts]
    if point is not None:
        names.append("LMN-fixed")
        outcomes.append(replay_point(adapter, point, taught.held_out, metric)[1])
    best = chosen(outcomes, metric, guard)
    if best < len(found.starts):
        adapter.online, settings = found.starts[best].start.online, found.starts[best].start.learned
    else:
        assert point is not None
        apply(adapter, point)
        settings = point
    figures = [outcome.figures for outcome in outcomes]
    return TuneResult(
        best=settings,
        loss=outcomes[best].mean(metric),
        trials=climb.log,
        form=names[best],
        before=figures[0],
        after=figures[best],
        judged=dict(zip(names, figures, strict=True)),
    )


def _climbed(
    adapter: LMN, search: list[Features], default: Outcome, options: TuneOptions
) -> tuple[Climb, Point | None]:
    """The best settings of LMN-fixed, if any keep the known labels."""
    climb = Climb(adapter, search, options, options.guarded(default=True), default.figures)
    climb.run([_STARTS[0] | start for start in options.starts] or _STARTS)
    best = climb.best()
    return climb, None if best is None else climb.point(best)
