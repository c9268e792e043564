"""What the tasks of all kinds of tables have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from labelmem_paper.experiments.table import Run

__all__ = ["RunTask"]


@dataclass(frozen=True)
class RunTask:
    """One run of a table: where it computes, and where it keeps what takes long."""

    run: Run
    device: torch.device
    work: Path
    show: bool | None = None

    @property
    def config(self) -> Mapping[str, Any]:
        """All that the table says of the run."""
        return self.run.config
