"""``labelmem predict``: what a user will have next."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from labelmem.cli.shared import AsJson, Model, User

__all__ = ["app"]

app = typer.Typer()


@app.command()
def predict(
    model: Model,
    user: User,
    top: Annotated[int, typer.Option(min=1, help="How many items to name.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Name the items that a user will most likely have next, from what `adapt` has seen of them.

    Nothing is changed by asking. A user who was never seen gets what the model says of newcomers.

      labelmem predict model --user 42 --top 5
    """
    from labelmem.logs.users import predict_user

    told = predict_user(model, user, top)
    if as_json:
        typer.echo(json.dumps(told, indent=2))
        return
    if not told["known"]:
        typer.echo(f"user {user} was never seen; these are for newcomers", err=True)
    for row in told["top"]:
        typer.echo(f"{row['p']:7.2%}  {row['item']}")
