"""Probabilities of the classifiers of scikit-learn and river."""

from __future__ import annotations

from golden.classifiers import CLASSIFIERS, RUNS
from safetensors.torch import save_file


def write() -> None:
    """All runs in one file."""
    save_file({name: run() for name, run in RUNS.items()}, CLASSIFIERS)
