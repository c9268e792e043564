"""What came of tuning, for people to read."""

from __future__ import annotations

from dataclasses import dataclass, field

from labelmem.search import Point, Trial
from labelmem.starting import Figures

__all__ = ["TuneResult"]


@dataclass(frozen=True, repr=False)
class TuneResult:
    """What was chosen, what it is good for, and every trial on the way."""

    best: Point
    """The settings that were chosen; empty where the adapter stays as it was."""
    loss: float
    """Their mean loss on the streams that judged: nats, or the share of misses when tuned for
    accuracy."""
    trials: list[Trial]
    """All settings of LMN-fixed that were tried, each with its loss."""
    form: str
    """The name of what was chosen."""
    before: Figures
    """Of the adapter as it was."""
    after: Figures
    """Of what was chosen."""
    judged: dict[str, Figures] = field(default_factory=dict)
    """All forms that were compared."""

    def __repr__(self) -> str:
        before, after = self.before, self.after
        return (
            f"TuneResult({self.form!r}, best={self.best}, loss={self.loss:.4f}, "
            f"accuracy {before.accuracy:.1%} -> {after.accuracy:.1%}, "
            f"known {before.accuracy_known:.1%} -> {after.accuracy_known:.1%}, "
            f"new {before.accuracy_new:.1%} -> {after.accuracy_new:.1%})"
        )

    def summary(self) -> str:
        """A small table: accuracy on known and on new labels, before and after.

        Examples
        --------
        >>> before = Figures(0.56, 0.86, 0.98, 0.71, steps=100, steps_known=60, steps_new=40)
        >>> after = Figures(0.45, 0.91, 0.98, 0.80, steps=100, steps_known=60, steps_new=40)
        >>> print(TuneResult({}, 0.45, [], "default primed", before, after).summary())
        chosen: default primed
                              before     after     steps
        log-perplexity         0.560     0.450       100
        accuracy               86.0%     91.0%       100
          on known labels      98.0%     98.0%        60
          on new labels        71.0%     80.0%        40
        """
        a, b = self.before, self.after
        nats = (f"{a.log_perplexity:.3f}", f"{b.log_perplexity:.3f}", a.steps)
        rows: list[tuple[object, ...]] = [
            ("", "before", "after", "steps"),
            ("log-perplexity", *nats),
            ("accuracy", _percent(a.accuracy), _percent(b.accuracy), a.steps),
            *(
                (f"  on {kind} labels", _percent(x), _percent(y), steps)
                for kind, x, y, steps in (
                    ("known", a.accuracy_known, b.accuracy_known, a.steps_known),
                    ("new", a.accuracy_new, b.accuracy_new, a.steps_new),
                )
            ),
        ]
        lines = [f"{row[0]:<18}" + "".join(f"{cell:>10}" for cell in row[1:]) for row in rows]
        return "\n".join([f"chosen: {self.form}", *lines])

    __str__ = summary


def _percent(share: float) -> str:
    return "-" if share != share else f"{share:.1%}"  # nan where there were none
