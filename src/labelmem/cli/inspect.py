"""``labelmem inspect``: what is remembered of a user."""

from __future__ import annotations

import json

import typer

from labelmem.cli.shared import AsJson, Model, User

__all__ = ["app"]

app = typer.Typer()


@app.command()
def inspect(model: Model, user: User, as_json: AsJson = False) -> None:
    """Show all that is remembered of a user: items, their weight, how often and how long ago.

    The age counts the user's own events: 1 is the latest.

      labelmem inspect model --user 42
    """
    from labelmem.logs.users import inspect_user

    told = inspect_user(model, user)
    if as_json:
        typer.echo(json.dumps(told, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    from labelmem.logs.words import counted

    size = f"{counted(told['events'], 'event')}, {told['bytes']:,} bytes"
    table = Table("item", title=f"user {user}: {size}")
    for heading in ("weight", "events", "age"):
        table.add_column(heading, justify="right")
    for row in told["memory"]:
        numbers = f"{row['weight']:.2f}", f"{row['events']:,}", f"{row['age']:,}"
        table.add_row(row["item"], *numbers)
    Console(highlight=False, markup=False).print(table)
    if told["last_event"]:
        typer.echo(f"latest event: {told['last_event']} UTC")
