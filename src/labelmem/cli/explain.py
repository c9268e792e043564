"""``labelmem explain``: why an item is predicted for a user."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from labelmem.cli.shared import AsJson, Model, User

__all__ = ["app"]

app = typer.Typer()


@app.command()
def explain(
    model: Model,
    user: User,
    item: Annotated[
        str | None, typer.Option(help="Which item.", show_default="the most likely one")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say why an item is predicted for a user: the shares of model and memory, and the memories.

    theta is how much the combiner leaves to the memory. The share of a remembered item is its part
    of what the memory says now; its weight alpha counts how often it came, older times a bit less.

      labelmem explain model --user 42

      labelmem explain model --user 42 --item "Blue Bottle"
    """
    from labelmem.logs.users import explain_user

    told = explain_user(model, user, item)
    if as_json:
        typer.echo(json.dumps(told, indent=2))
        return
    if not told["known"]:
        typer.echo(f"user {user} was never seen; this is for newcomers", err=True)
    typer.echo(f"{told['item']}: probability {told['p']:.2%} (theta {told['theta']:.3f})")
    typer.echo(
        f"  {told['model_share']:.0%} from the model, {told['memory_share']:.0%} from memory"
    )
    for cell in told["cells"]:
        typer.echo(f"  {cell['share']:7.2%}  {cell['item']}  (alpha {cell['alpha']:.2f})")
