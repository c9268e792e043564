"""``labelmem doctor``: what is installed here, and which engine takes the steps."""

from __future__ import annotations

import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelmem.cli.shared import AsJson, print_json

if TYPE_CHECKING:
    from labelmem.adapter import Adapter

__all__ = ["doctor"]

PACKAGES = ("labelmem", "torch", "numpy", "numba", "triton", "scikit-learn", "transformers")
MANY = 256
"""Streams of a batch, for which another engine may be chosen than for one."""


def doctor(
    model: Annotated[
        Path | None,
        typer.Argument(
            help="A model folder, as `labelmem fit` makes it.", show_default="all forms of adapters"
        ),
    ] = None,
    compile: Annotated[  # the name of the option
        bool, typer.Option("--compile", help="Compile all kernels now, and keep them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what is installed, which engine takes the steps of streams, and why not a faster one.

    The first step of the first stream compiles kernels, which takes some seconds. An image or a
    service can do it ahead:

      labelmem doctor --compile

    and the engine of your own model folder is shown by

      labelmem doctor model/
    """
    seconds = _compiled() if compile else None
    report: dict[str, dict[str, Any]] = {
        "packages": _packages(),
        "machine": _machine(),
        "engines": _engines(model),
    }
    if as_json:
        return print_json(report | ({} if seconds is None else {"compiled_seconds": seconds}))
    if seconds is not None:
        typer.echo(f"all kernels are compiled and kept ({seconds} s)\n")
    for name, found in (report["packages"] | report["machine"]).items():
        typer.echo(f"{name:14s} {found or 'not installed'}")
    for form, engines in report["engines"].items():
        typer.echo(f"\n{form}")
        for streams, engine in engines.items():
            typer.echo(f"  {streams:12s} {engine['runs']}")
            for name, reason in engine["not"].items():
                typer.echo(f"  {'':12s} not {name}: {reason}")


def _packages() -> dict[str, str | None]:
    """The versions of what is installed; None for what is not."""
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _machine() -> dict[str, str]:
    import torch

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "python": platform.python_version(),
        "threads": f"{torch.get_num_threads()} of torch",
        "gpu": ", ".join(gpus) or "none",
    }


def _engines(model: Path | None) -> dict[str, dict[str, Any]]:
    """By form of adapter and number of streams the engine that runs, and why not those before."""
    if model is None:
        adapters = _forms()
    else:
        from labelmem.logs.folder import load_fitted

        adapters = {str(model): load_fitted(model).adapter}
    return {
        form: {
            f"{n} stream{'s' * (n > 1)}": _chosen(adapter.engines(n), adapter.engine_of(n))
            for n in (1, MANY)
        }
        for form, adapter in adapters.items()
    }


def _chosen(reasons: dict[str, str | None], runs: str) -> dict[str, Any]:
    faster = list(reasons)[: list(reasons).index(runs)]
    return {"runs": runs, "not": {name: reasons[name] for name in faster}}


def _forms() -> dict[str, Adapter]:
    """A small adapter of each form."""
    from torch import nn

    from labelmem.adapter import Adapter
    from labelmem.combiner import Combiner

    combiners = {
        "the default form": None,
        "LMN-fixed": 0.5,
        "LMN with a stream combiner": Combiner(kind="stream"),
        "LMN with a label combiner": Combiner(kind="label"),
    }
    return {name: Adapter(nn.Linear(4, 3), combiner=made) for name, made in combiners.items()}


def _compiled() -> float:
    """Let streams of each form take a few steps; the seconds that took."""
    import torch

    begun = time.perf_counter()
    for name, adapter in _forms().items():
        typer.echo(f"compiling for {name}", err=True)
        stream = adapter.stream()
        for y in (0, 1, "new", 0):  # the first cells, a new label, and one that is written again
            stream.predict(torch.ones(4))
            stream.observe(y)
        batch = adapter.streams(2)
        for y in (0, 1):
            batch.look(torch.ones(2, 4)).worth(torch.tensor([y, y]), top=1)
            batch.predict(torch.ones(2, 4))
            batch.observe([y, y])
    return round(time.perf_counter() - begun, 1)
