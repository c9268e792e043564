"""A frugal search over grids: one coordinate after another, as long as it helps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from labelmem.errors import ConfigError
from labelmem.progress import progress_bar

__all__ = ["Grid", "Point", "Trial", "best_point", "climb", "climb_from"]

Point = dict[str, Any]
Grid = Mapping[str, Sequence[Any]]
Trial = dict[str, Any]
"""A point with its ``loss``."""


def climb(
    loss: Callable[[Point], float],
    start: Point,
    grid: Grid,
    trials: int,
    log: list[Trial] | None = None,
    on_trial: Callable[[list[Trial]], None] | None = None,
) -> list[Trial]:
    """Move from ``start`` along the grid while the loss falls; every trial in order.

    Values of a coordinate are ordered; a step goes to the next one up or down. A point is never
    tried twice, and a search that was interrupted continues from its ``log``.

    Parameters
    ----------
    loss
        What to minimise.
    trials
        The most points to try.
    log
        Trials made earlier by the same search, taken as done; extended in place.
    on_trial
        Called with the log after each new trial.

    Examples
    --------
    >>> log = climb(lambda p: abs(p["x"] - 3) + p["y"], {"x": 1, "y": 2},
    ...             {"x": [1, 2, 3, 4], "y": [0, 1, 2]}, trials=20)
    >>> min(log, key=lambda trial: trial["loss"])
    {'x': 3, 'y': 0, 'loss': 0}
    """
    if trials < 1:
        raise ConfigError(f"trials is {trials}; at least one is needed")
    log = [] if log is None else log

    def known(point: Point) -> float | None:
        return next((t["loss"] for t in log if _point(t) == point), None)

    def tried(point: Point) -> float | None:
        """The loss of a point; None when the trials are used up."""
        found = known(point)
        if found is None and len(log) < trials:
            found = loss(point)
            log.append(point | {"loss": found})
            if on_trial is not None:
                on_trial(log)
        return found

    best, best_loss = dict(start), tried(dict(start))
    moved = True
    while moved:
        moved = False
        for name in grid:
            for direction in (1, -1):
                while (point := _neighbour(best, name, grid[name], direction)) is not None:
                    here = tried(point)
                    if here is None or best_loss is None:
                        return log
                    if here >= best_loss:
                        break
                    best, best_loss, moved = point, here, True
    return log


def climb_from(
    loss: Callable[[Point], float],
    starts: Iterable[Point],
    grid: Grid,
    trials: int,
    on_trial: Callable[[list[Trial]], None] | None = None,
) -> list[Trial]:
    """Try all starts, then :func:`climb` from each, the best first, while there are trials left.

    A climb ends where no single step helps, which may be far from the best point; one from
    elsewhere may end higher. With one start this is the same as ``climb``.

    Examples
    --------
    >>> hills = {0: 2, 1: 1, 2: 3, 3: 5, 4: 4, 5: 0}
    >>> starts = [{"x": 0}, {"x": 4}]
    >>> log = climb_from(lambda p: hills[p["x"]], starts, {"x": range(6)}, trials=20)
    >>> min(log, key=lambda trial: trial["loss"])
    {'x': 5, 'loss': 0}
    """
    log: list[Trial] = []
    for start in starts:
        climb(loss, start, {}, trials, log, on_trial)
    for trial in sorted(log, key=lambda trial: trial["loss"]):
        climb(loss, _point(trial), grid, trials, log, on_trial)
    return log


def best_point(
    title: str,
    loss: Callable[[Point], float],
    start: Point,
    grid: Grid,
    trials: int,
    show: bool | None = None,
) -> Point:
    """The best point that :func:`climb` tries, with a progress bar of this title."""
    with progress_bar(title, trials, show) as report:
        log = climb(
            loss,
            start,
            grid,
            trials,
            on_trial=lambda log: report(1, f"best {min(t['loss'] for t in log):.4f} nats"),
        )
        best = min(log, key=lambda trial: trial["loss"])
        report(trials - len(log), f"best {best['loss']:.4f} nats")  # often fewer are needed
    return _point(best)


def _point(trial: Trial) -> Point:
    return {name: value for name, value in trial.items() if name != "loss"}


def _neighbour(point: Point, name: str, values: Sequence[Any], direction: int) -> Point | None:
    """The next grid value of one coordinate in a direction; None at the end of the grid."""
    here = point[name]
    beyond = [v for v in values if (v > here if direction > 0 else v < here)]
    if not beyond:
        return None
    return point | {name: min(beyond) if direction > 0 else max(beyond)}
