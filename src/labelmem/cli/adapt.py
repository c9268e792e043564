"""``labelmem adapt``: predict and learn every event of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from labelmem.cli.shared import (
    Abandon,
    AsJson,
    Device,
    Header,
    Model,
    Predictions,
    SkipBad,
    Strict,
    policy_of,
    print_json,
    resolved,
    show_figures,
)

__all__ = ["adapt"]


def _column(what: str) -> Any:
    return typer.Option(help=f"The {what} column.", show_default="as it was fitted")


def adapt(
    model: Model,
    events: Annotated[Path, typer.Argument(help="A log, as for `labelmem fit`.")],
    out: Predictions = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page of figures, as HTML.", show_default=False)
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Predictions written for each event.")] = 5,
    user: Annotated[str | None, _column("user")] = None,
    item: Annotated[str | None, _column("item")] = None,
    time: Annotated[str | None, _column("time")] = None,
    header: Header = True,
    abandon: Abandon = False,
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
    from labelmem.logs.page import page_of
    from labelmem.logs.rows import Columns
    from labelmem.logs.words import counted
    from labelmem.targets import check_file

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
        print_json(outcome)
    elif outcome["already"]:
        show_figures(outcome)
    else:
        users = counted(outcome["new_users"], "new user")
        show_figures(outcome, f"{users}; {outcome['events_per_second']:,.0f} events a second")
