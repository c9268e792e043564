"""``labelmem-paper reproduce``: run the cells of a table and record them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer()


@app.command()
def reproduce(
    table: Annotated[
        str, typer.Argument(help="A table of the paper, e.g. table2, or a TOML file.")
    ],
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only these data sets; may be given several times.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only these methods; may be given several times.")
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="Only these seeds; may be given several times.")
    ] = None,
    size: Annotated[
        str, typer.Option(help="paper: the real thing. smoke: seconds, to see that it runs.")
    ] = "paper",
    device: Annotated[
        str, typer.Option(help="cpu, cuda, or auto: cuda where there is one.")
    ] = "auto",
    executor: Annotated[
        str, typer.Option(help="local: one run after another. ray: spread over a Ray cluster.")
    ] = "local",
    results: Annotated[
        Path, typer.Option(help="Folder of the records, one JSON line per finished run.")
    ] = Path("results"),
    prepare: Annotated[
        bool,
        typer.Option("--prepare", help="Search and train, but test and record nothing yet."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what became of each run as JSON.")
    ] = False,
) -> None:
    """Run methods on data sets with seeds, and append one record for each finished run.

    A run that is recorded with the same configuration is skipped. One that was interrupted goes on
    from its checkpoint. Several processes may work on one table at the same time.

      labelmem-paper reproduce table2 --dataset fsq-nyc --method lmn --seed 0

      labelmem-paper report

    --prepare keeps what was searched and trained under .work in --results; the same command
    without it finds all of that and only tests. Prepare many runs side by side, then test them one
    after another on a quiet machine: only then can their microseconds per token be compared.

      labelmem-paper reproduce table2 --prepare && labelmem-paper reproduce table2
    """
    import torch

    from labelmem_paper.experiments.executors import run_all
    from labelmem_paper.experiments.table import load_table

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    runs = list(load_table(table).runs(size, dataset, method, seed))
    outcomes = run_all(runs, results, device, executor, prepare)
    if as_json:
        rows = [run.identity() | {"outcome": outcome} for run, outcome in outcomes]
        typer.echo(json.dumps(rows, indent=2))
        return
    for run, outcome in outcomes:
        typer.echo(f"{outcome:<9} {run}")
    counted = Counter(outcome for _, outcome in outcomes)
    typer.echo(", ".join(f"{n} {outcome}" for outcome, n in counted.items()) + f" in {results}")
