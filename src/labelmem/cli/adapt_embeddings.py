"""``labelmem adapt-embeddings``: the labeled memory with any encoder and no model of yours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from labelmem.cli.shared import (
    Abandon,
    AsJson,
    Predictions,
    SkipBad,
    policy_of,
    print_json,
    show_figures,
)

__all__ = ["adapt_embeddings"]

_USUAL: dict[str, Any] = {"lam": 10.0, "cells_per_label": 4, "margin": 1.0}
"""The memory without a head."""


def adapt_embeddings(
    file: Annotated[Path, typer.Argument(help="An npz or a Parquet file, rows in order of time.")],
    out: Predictions = None,
    states: Annotated[
        Path | None,
        typer.Option(
            help="A folder for the memories, continued the next time.", show_default="not kept"
        ),
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option(
            help="Labelled embeddings from before, in a file like it: those labels stay known.",
            show_default="none",
        ),
    ] = None,
    embeddings: Annotated[
        str, typer.Option(help="The array or column of the embeddings, (rows, d).")
    ] = "embeddings",
    labels: Annotated[str, typer.Option(help="The array or column of the labels.")] = "labels",
    users: Annotated[
        str | None,
        typer.Option(help="That of the users, one memory each.", show_default="one stream"),
    ] = None,
    lam: Annotated[
        float | None,
        typer.Option(min=0, help="How sharply near embeddings are preferred.", show_default="10"),
    ] = None,
    cells: Annotated[
        int | None,
        typer.Option(min=1, help="Prototypes that a label may have.", show_default="4"),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help="Nats by which the truth must lead for nothing to be written.", show_default="1"
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Predictions written for each row.")] = 5,
    abandon: Abandon = False,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """Classify embeddings of any encoder online: each label is predicted, then learned at once.

    No model and no training: a labeled memory holds a few prototypes for each label, and a new
    label is known from its first example on. Accuracy is over all rows, the first ones included.

      labelmem adapt-embeddings intents.npz --out predictions.jsonl

    If you have labelled examples from before, give them with --known. They train a linear head, in
    seconds, and streams begin with it: known labels are known from the first row on, and new ones
    are learned beside them. --lam, --cells and --margin do not apply then.

      labelmem adapt-embeddings intents.npz --known labelled.npz --states desk

      labelmem adapt-embeddings mails.parquet --embeddings vector --labels folder --users account
      --states memories
    """
    from labelmem.config import MemoryConfig
    from labelmem.logs.embeddings import adapt_embeddings as run
    from labelmem.logs.vectors import VectorColumns
    from labelmem.targets import check_file

    check_file(out)
    options = {"lam": lam, "cells_per_label": cells, "margin": margin}
    given = {name: value for name, value in options.items() if value is not None}
    outcome = run(
        file,
        out,
        states,
        known=known,
        columns=VectorColumns(embeddings, labels, users),
        memory=None if known and not given else MemoryConfig(**_USUAL | given),
        policy=policy_of(skip_bad, False),
        top=top,
        abandon=abandon,
        tell=lambda line: typer.echo(line, err=True),
    )
    if as_json:
        return print_json(outcome)
    guesses = outcome.get("baselines", {}).items()
    others = {f"guessing the label {name.replace('_', ' ')}": p for name, p in guesses}
    if "head_alone" in outcome:
        others["the head alone"] = outcome["head_alone"]
    show_figures(outcome, *(f"{name}: {p:.1%} right" for name, p in others.items()))
