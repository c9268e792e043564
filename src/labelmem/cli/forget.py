"""``labelmem forget``: delete all of a user's state."""

from __future__ import annotations

import json
from typing import Any

import typer

from labelmem.cli.shared import AsJson, Model, User

__all__ = ["app"]

app = typer.Typer()


@app.command()
def forget(model: Model, user: User, as_json: AsJson = False) -> None:
    """Delete all that a model folder keeps of a user, and check that nothing is left.

    The user's row is overwritten with zeros and the file of the states is written anew; then every
    file of the folder is searched for the user's id and state. Exit code 1 if anything is found.

    What is not in the folder is not touched: prediction files that `adapt` wrote and the logs
    themselves hold the user's events; they are named here and are yours to delete. The model has no
    user's name or state in it, but if it was fitted on a log with this user, their events took part
    in its training: fit it again without them if that must go as well.

      labelmem forget model --user 42
    """
    from labelmem.logs.users import forget_user

    told = forget_user(model, user)
    if as_json:
        typer.echo(json.dumps(told, indent=2))
    else:
        _show(told)
    if not told["verified"]:
        raise typer.Exit(1)


def _show(told: dict[str, Any]) -> None:
    from labelmem.logs.words import counted

    removed = told["removed"]
    if removed is None:
        typer.echo(f"nothing was kept of user {told['user']}")
    else:
        typer.echo(
            f"forgot user {told['user']}: the state after {counted(removed['events'], 'event')} "
            f"({removed['bytes']:,} bytes) and {counted(removed['own_items'], 'item')} of their own"
        )
    if told["left_in"]:
        typer.echo(f"STILL in {', '.join(told['left_in'])}; delete these files", err=True)
    elif removed is not None:
        typer.echo("checked: no file of the folder holds the state any more")
    for output in told["outputs"]:
        typer.echo(f"may hold predictions for this user, not touched: {output}")
    for run in told["unfinished"]:
        typer.echo(f"not finished, would meet this user again when it goes on: {run}", err=True)
