"""``labelmem predict``, ``explain``, ``inspect`` and ``forget``: one user of a model folder."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labelmem.cli.shared import AsJson, Model, User, print_json

__all__ = ["explain", "forget", "inspect", "predict"]


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

    answer = predict_user(model, user, top)
    if as_json:
        return print_json(answer)
    if not answer["known"]:
        typer.echo(f"user {user} was never seen; these are for newcomers", err=True)
    for row in answer["top"]:
        typer.echo(f"{row['p']:7.2%}  {row['item']}")


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

    answer = explain_user(model, user, item)
    if as_json:
        return print_json(answer)
    if not answer["known"]:
        typer.echo(f"user {user} was never seen; this is for newcomers", err=True)
    typer.echo(f"{answer['item']}: probability {answer['p']:.2%} (theta {answer['theta']:.3f})")
    shares = f"{answer['model_share']:.0%} from the model, {answer['memory_share']:.0%} from memory"
    typer.echo(f"  {shares}")
    for cell in answer["cells"]:
        typer.echo(f"  {cell['share']:7.2%}  {cell['item']}  (alpha {cell['alpha']:.2f})")


def inspect(model: Model, user: User, as_json: AsJson = False) -> None:
    """Show all that is remembered of a user: items, their weight, how often and how long ago.

    The age counts the user's own events: 1 is the latest.

      labelmem inspect model --user 42
    """
    from labelmem.logs.users import inspect_user

    answer = inspect_user(model, user)
    if as_json:
        return print_json(answer)
    from rich.console import Console
    from rich.table import Table

    from labelmem.logs.words import counted

    size = f"{counted(answer['events'], 'event')}, {answer['bytes']:,} bytes"
    table = Table("item", title=f"user {user}: {size}")
    for heading in ("weight", "events", "age"):
        table.add_column(heading, justify="right")
    for row in answer["memory"]:
        table.add_row(row["item"], f"{row['weight']:.2f}", f"{row['events']:,}", f"{row['age']:,}")
    Console(highlight=False, markup=False).print(table)
    if answer["last_event"]:
        typer.echo(f"latest event: {answer['last_event']} UTC")


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

    answer = forget_user(model, user)
    if as_json:
        print_json(answer)
    else:
        _show_forgotten(answer)
    if not answer["verified"]:
        raise typer.Exit(1)


def _show_forgotten(answer: dict[str, Any]) -> None:
    from labelmem.logs.words import counted

    removed = answer["removed"]
    if removed is None:
        typer.echo(f"nothing was kept of user {answer['user']}")
    else:
        state = f"the state after {counted(removed['events'], 'event')}"
        own = f"{counted(removed['own_items'], 'item')} of their own"
        typer.echo(f"forgot user {answer['user']}: {state} ({removed['bytes']:,} bytes) and {own}")
    if answer["left_in"]:
        typer.echo(f"STILL in {', '.join(answer['left_in'])}; delete these files", err=True)
    elif removed is not None:
        typer.echo("checked: no file of the folder holds the state any more")
    for output in answer["outputs"]:
        typer.echo(f"may hold predictions for this user, not touched: {output}")
    for run in answer["unfinished"]:
        typer.echo(f"not finished, would meet this user again when it goes on: {run}", err=True)
