"""Choosing what suits recorded users; from the default form on, and back to it if that is best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from labelmem.lmn import LMN
from labelmem.online import Recorded
from labelmem.search import Grid, Point
from labelmem.starting import HELD_OUT
from labelmem.tuning.climbing import apply, replay_loss
from labelmem.tuning.default_form import tune_default_form
from labelmem.tuning.options import GRID, TuneOptions
from labelmem.tuning.paper_forms import tune_paper_form
from labelmem.tuning.result import TuneResult

__all__ = ["GRID", "TuneResult", "apply", "replay_loss", "tune"]


def tune(
    adapter: LMN,
    sequences: Iterable[Recorded],
    trials: int = 40,
    metric: str = "log_perplexity",
    grid: Grid = GRID,
    batch_size: int = 64,
    show: bool | None = None,
    starts: Sequence[Point] = (),
    guard: float | None = None,
    held_out: float = HELD_OUT,
    seed: int = 0,
) -> TuneResult:
    """Choose what suits these streams best, and give it to the adapter.

    **The default form** (``combiner=None``) is compared with itself beginning otherwise: with the
    weights that the recorded users ended with, with what known labels looked like to them, or with
    both; and with LMN-fixed, whose settings are searched. All of that is learned from a part of the
    streams and judged on the others. The default form is kept unless another is better there by
    more than chance, with no more known labels missed than ``guard`` allows; so an adapter may
    become LMN-fixed.

    **LMN-fixed**: one coordinate of lam, delta, margin and theta after another is moved along its
    grid while that helps, so few trials go a long way. The model runs over the streams once; each
    trial replays the memory, on all streams. A :class:`Combiner` is put back to LMN-fixed with the
    chosen theta, from where ``fit`` can train it.

    An error or an interrupt on the way is passed on and leaves the adapter as it was.

    Parameters
    ----------
    sequences
        Pairs of inputs and labels, from streams that are neither trained nor tested on.
    trials
        The most settings of LMN-fixed to try.
    metric
        ``log_perplexity`` or ``accuracy``.
    grid
        The values of the settings of LMN-fixed.
    starts
        Settings from where LMN-fixed is searched too, each a part of a point such as
        ``{"theta": 0.8}``: a search ends in the nearest optimum.
    guard
        How much lower the accuracy on known labels may become. None is 0.01 for the default form
        and no guard for the others.
    held_out, seed
        The share of the streams that judge where the default form is tuned, and how they are drawn.
    """
    options = TuneOptions(
        trials, metric, grid, batch_size, show, tuple(starts), guard, held_out, seed
    )
    if adapter.online is not None:
        return tune_default_form(adapter, sequences, options)
    return tune_paper_form(adapter, sequences, options)
