"""What the tasks of all kinds of tables have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from labelmem_paper.experiments.keeping import keep
from labelmem_paper.experiments.records import digest
from labelmem_paper.experiments.table import Run

__all__ = ["RunTask"]

M = TypeVar("M", bound=nn.Module)


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

    def kept(
        self,
        kind: str,
        of: list[Any],
        make: Callable[[], M],
        train: Callable[[M, Path], None],
        about: dict[str, Any],
    ) -> M:
        """A frozen network, trained once and kept.

        Parameters
        ----------
        of
            What decides its weights beside the data set and the seed; the file is named after it.
        make
            Gives the network as it is before training.
        train, about
            See :func:`keep`.
        """
        # Forked, so that the weights depend on the run's seed and on nothing else.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.run.seed)
            network = make().to(self.device)
        name = f"{kind}-{digest([self.run.dataset, self.run.seed, *of])}.safetensors"
        keep(self.work / name, kind, network, lambda at: train(network, at), about)
        return network.eval().requires_grad_(False)
