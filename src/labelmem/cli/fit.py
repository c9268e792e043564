"""``labelmem fit``: from a log of events to a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labelmem.cli.shared import Device, Header, SkipBad, Strict, policy_of, print_json, resolved

__all__ = ["fit"]


def fit(
    events: Annotated[
        Path, typer.Argument(help="A CSV, JSON Lines or Parquet file, one event in each row.")
    ],
    user: Annotated[str, typer.Option(help="The column that names the user.")],
    item: Annotated[str, typer.Option(help="The column that names the item to be predicted.")],
    out: Annotated[Path, typer.Option(help="The model folder to make.")],
    time: Annotated[
        str | None,
        typer.Option(
            help="The column of the time: seconds or milliseconds since 1970, or ISO 8601.",
            show_default="rows are in order",
        ),
    ] = None,
    header: Header = True,
    quick: Annotated[
        bool, typer.Option("--quick", help="A minute's work, to see what comes out.")
    ] = False,
    effort: Annotated[
        float,
        typer.Option(min=0.01, max=1000, help="How much training is allowed: 2 is twice as much."),
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the split by user and of training.")] = 0,
    skip_bad: SkipBad = False,
    strict: Strict = False,
    device: Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the card as JSON.")] = False,
) -> None:
    """Learn from a log of events how users go on, and say honestly whether that is worth using.

    The file is read and described first: look at that before you trust the rest. Users are dealt
    out into parts; a model of what is new to a user, a memory and their combiner are trained on
    some users, tuned on others, and measured on the rest against counting each user's items. The
    folder holds the model and its card (card.md): data, figures, and when NOT to use it.

      labelmem fit events.csv --user user_id --item venue --time ts --out model

      labelmem fit events.jsonl --user u --item page --out model --quick --skip-bad

      labelmem fit visits.tsv --no-header --user 1 --item 2 --out model

    A call that was stopped goes on when it is made again. The folder appears when it is whole.

    Next:  labelmem adapt model events.csv --out predictions.jsonl
    """
    from labelmem.logs.fit_command import fit_log
    from labelmem.logs.rows import Columns

    card = fit_log(
        events,
        Columns(user, item, time, header),
        out,
        policy=policy_of(skip_bad, strict),
        seed=seed,
        effort=effort,
        quick=quick,
        device=resolved(device),
        tell=lambda line: typer.echo(line, err=True),
    )
    if as_json:
        return print_json(card)
    from rich.console import Console

    from labelmem.logs.card import figures_table
    from labelmem.render.tables import to_rich

    Console(highlight=False).print(to_rich(figures_table(card)))
    typer.echo(card["verdict"]["sentence"])
    typer.echo(f"wrote {out}; read {out / 'card.md'}")
