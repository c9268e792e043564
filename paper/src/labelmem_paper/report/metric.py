"""How each metric is called, written and judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

__all__ = ["Metric", "metric_of"]


@dataclass(frozen=True)
class Metric:
    """What a report must know of a metric."""

    title: str
    """Its name in a heading."""
    format: str
    """How our figures are written."""
    printed: str
    """How the paper's are: it gave fewer digits."""
    best: Literal["high", "low"] | None
    """Which end is good; None where nobody can tell."""
    meaning: str
    """One sentence for those who do not know it."""

    @property
    def percent(self) -> bool:
        """Whether it is a share."""
        return self.format.endswith("%")


def _share(title: str, meaning: str) -> Metric:
    return Metric(title, ".1%", ".1%", "high", meaning)


_METRICS = {
    "log_perplexity": Metric(
        "log-perplexity", ".2f", ".2f", "low",
        "Mean of -log P(true label) in nats; lower is better.",
    ),
    "perplexity": Metric(
        "perplexity", ".1f", ".1f", "low",
        "exp of the log-perplexity: as many equally likely labels would be as hard to guess.",
    ),
    "bits": Metric("bits per token", ".2f", ".2f", "low", "The log-perplexity in bits."),
    "mrr": Metric(
        "MRR", ".3f", ".2f", "high",
        "Mean of 1 / rank of the true label; 1 if it always came first.",
    ),
    "accuracy": _share("accuracy", "Share of labels that were predicted first."),
    "accuracy_new": _share("accuracy, new", "The same for labels the model was not trained on."),
    "accuracy_seen": _share("accuracy, seen", "The same for labels the model was trained on."),
    "log_loss": Metric(
        "log-loss", ".2f", ".2f", "low",
        "Mean of -log P(true label) in nats, P not below 1e-10; lower is better.",
    ),
    "gain_known": Metric(
        "gain, known", "+.1%", "+.1%", "high",
        "Accuracy on known labels minus that of the model alone on the same steps.",
    ),
    "floored": Metric(
        "floored", ".0f", ".0f", "low", "Labels that got less than the least probability counted."
    ),
}  # fmt: skip


def metric_of(name: str) -> Metric:
    """The metric of a name in tables and records; a name nobody knows is shown as it is.

    Examples
    --------
    >>> metric_of("mrr").title, metric_of("shot2").title, metric_of("accuracy_rare").title
    ('MRR', '2-shot accuracy', 'accuracy, rare')
    >>> metric_of("few-new.accuracy").title
    'few-new: accuracy'
    >>> metric_of("charm").best is None
    True
    """
    if name in _METRICS:
        return _METRICS[name]
    if "." in name:
        form, _, figure = name.partition(".")
        found = metric_of(figure)
        return replace(found, title=f"{form}: {found.title}")
    if name.startswith("shot") and name[4:].isdigit():
        shots = int(name[4:])
        return _share(f"{shots}-shot accuracy", f"Accuracy once a label was shown {shots} times.")
    if name.startswith("accuracy_"):
        group = name.removeprefix("accuracy_").replace("_", " ")
        return _share(f"accuracy, {group}", f"Accuracy on the labels of the group {group}.")
    return Metric(name.replace("_", " "), ".3f", ".3f", None, "As recorded.")
