"""Where runs are executed: here, one after another, or spread over a Ray cluster."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from labelmem.errors import ConfigError, MissingExtraError
from labelmem_paper.experiments.runner import Outcome, execute, execute_all
from labelmem_paper.experiments.table import Run

__all__ = ["run_all"]


def run_all(
    runs: Sequence[Run],
    results: Path,
    device: str,
    executor: str = "local",
    prepare: bool = False,
) -> list[tuple[Run, Outcome]]:
    """Execute or prepare runs with the executor ``local`` or ``ray``; the records are the same."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError("the device is cuda, but torch sees none; use --device cpu")
    if executor == "local":
        return execute_all(runs, results, device, prepare=prepare)
    if executor == "ray":
        return _on_ray(runs, results, device, prepare)
    raise ConfigError(f"the executor is {executor!r}; it must be 'local' or 'ray'")


def _on_ray(
    runs: Sequence[Run], results: Path, device: str, prepare: bool
) -> list[tuple[Run, Outcome]]:
    """One Ray task per run. The results folder must be shared by all nodes of the cluster."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError(
            "the executor ray needs Ray, which is not installed: pip install 'labelmem-paper[ray]'"
        ) from error
    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.WARNING)
    try:
        gpus = 1 if device.startswith("cuda") else 0
        task: Any = ray.remote(num_cpus=1, num_gpus=gpus)(execute)
        waiting = [task.remote(run, results.resolve(), device, False, prepare) for run in runs]
        return list(zip(runs, ray.get(waiting), strict=True))
    finally:
        if started:
            ray.shutdown()
