"""Tuning of the paper's forms: LMN-fixed, and what a combiner is trained from."""

from __future__ import annotations

from collections.abc import Iterable

from labelmem.combiner import Combiner
from labelmem.lmn import LMN
from labelmem.online import Recorded
from labelmem.recording import lockstep_batches
from labelmem.replay import record
from labelmem.search import Point
from labelmem.tuning.climbing import Climb, apply
from labelmem.tuning.options import TuneOptions
from labelmem.tuning.result import TuneResult

__all__ = ["tune_paper_form"]


def tune_paper_form(
    adapter: LMN, sequences: Iterable[Recorded], options: TuneOptions
) -> TuneResult:
    """Climb from the settings of the adapter, and from others that are asked for."""
    given = options.batch_size, adapter.device, adapter.dtype
    recorded = [record(adapter, b) for b in lockstep_batches(sequences, adapter.known, *given)]
    current = _current(adapter)
    climb = Climb(adapter, recorded, options, guard=options.guarded(default=False))
    climb.run([current, *(current | start for start in options.starts)])
    best = climb.best()
    assert best is not None  # the settings of the adapter keep what they keep
    point = climb.point(best)
    apply(adapter, point)
    return TuneResult(
        best=point,
        loss=climb.log[best]["loss"],
        trials=climb.log,
        form="LMN-fixed",
        before=climb.figures[0],
        after=climb.figures[best],
    )


def _current(adapter: LMN) -> Point:
    combiner, memory = adapter.combiner, adapter.memory
    theta = combiner.start if isinstance(combiner, Combiner) else combiner
    return {"theta": theta, "lam": memory.lam, "delta": memory.delta, "margin": memory.margin}
