"""``labelmem adapt``: predict and learn every event of a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from labelmem.cli.shared import AsJson, Device, Model, SkipBad, Strict, policy_of, resolved

__all__ = ["app"]

app = typer.Typer()


@app.command()
def adapt(
    model: Model,
    events: Annotated[Path, typer.Argument(help="A log, as for `labelmem fit`.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write predictions, as JSON Lines.", show_default="nowhere"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page of figures, as HTML.", show_default=False)
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Predictions written for each event.")] = 5,
    user: Annotated[
        str | None, typer.Option(help="The user column.", show_default="as it was fitted")
    ] = None,
    item: Annotated[
        str | None, typer.Option(help="The item column.", show_default="as it was fitted")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="The time column.", show_default="as it was fitted")
    ] = None,
    header: Annotated[
        bool,
        typer.Option(help="Whether a CSV file names its columns; if not, they are 1, 2, ..."),
    ] = True,
    abandon: Annotated[
        bool,
        typer.Option("--abandon", help="Give up a file that was begun and cannot be finished."),
    ] = False,
    skip_bad: SkipBad = False,
    strict: Strict = False,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Predict every event of a log before it is revealed, learn from it, and remember each user.

    Users go on from where they ended: give it today's log today and tomorrow's tomorrow. The states
    are kept in the model folder. Each line of --out has the event's row, user and item, the item's
    probability and rank, and the top predictions; lines of one user are in order of time.

      labelmem adapt model monday.csv --out monday.jsonl --report monday.html

      labelmem adapt model tuesday.csv --out tuesday.jsonl

    If it is stopped or killed, make the same call again: it goes on where it was, loses nothing
    that was written and repeats nothing. A file that was taken in before is left alone, and of one
    that has grown only the new rows are taken in.
    """
    from labelmem.logs.adapt_command import adapt_log
    from labelmem.logs.folder import load_fitted
    from labelmem.logs.page import curve_table, figures_table, page_of
    from labelmem.logs.rows import Columns
    from labelmem.logs.targets import check_file
    from labelmem.logs.words import counted

    for target in (out, report):
        check_file(target)
    fitted = load_fitted(model).columns
    columns = Columns(
        user or fitted.user, item or fitted.item, time or fitted.time, fitted.header and header
    )
    outcome = adapt_log(
        model,
        events,
        out,
        columns=columns,
        policy=policy_of(skip_bad, strict),
        top=top,
        device=resolved(device),
        abandon=abandon,
        tell=lambda line: typer.echo(line, err=True),
    )
    if report is not None:
        page_of(outcome).write(report)
    if as_json:
        typer.echo(json.dumps(outcome, indent=2))
        return
    from rich.console import Console

    from labelmem.report.tables import to_rich

    console = Console(highlight=False)
    console.print(to_rich(figures_table(outcome)), to_rich(curve_table(outcome)))
    if not outcome["already"]:
        rate = outcome["events_per_second"]
        typer.echo(f"{counted(outcome['new_users'], 'new user')}; {rate:,.0f} events a second")
    if outcome["output"]:
        typer.echo(f"predictions: {outcome['output']}")
