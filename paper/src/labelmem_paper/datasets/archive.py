"""Read named arrays from an ``.npz`` file that others made."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from labelmem_paper.datasets.layout import Arrays
from labelmem_paper.datasets.opening import damaged, unpacking

__all__ = ["load_arrays"]


def load_arrays(path: Path, names: tuple[str, ...]) -> Arrays:
    """Return the named arrays; pickled ones are refused."""
    with unpacking(path):
        try:
            # Opened here because numpy leaves the file open when it is no archive.
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                return {name: archive[name] for name in names}
        except (KeyError, ValueError, TypeError) as error:
            raise damaged(path, error) from error
