"""``labelmem demo``: the whole idea on data that comes with the dependencies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    out: Annotated[
        Path, typer.Option(help="Where to write the report, one self-contained HTML file.")
    ] = Path("report.html"),
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Seeds users, models and training: the same seed, the same figures."
        ),
    ] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="A tiny run of a few seconds; its figures mean little.")
    ] = False,
    json: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Also write all figures as JSON; - is the standard output."
        ),
    ] = None,
) -> None:
    """Train two small models, let them meet new users, and compare ways to adapt them online.

    Digits: a classifier that knows 0 to 6 meets users who also draw 7, 8 and 9.
    Habits: a model of visits to venues meets users with favourites of their own, some of them
    venues it has never heard of.

    Every method predicts each label before it is revealed. What can be chosen (learning rates, the
    weight of the memory, ...) is chosen on validation users; the test users are scored once.

    Needs the extra:  pip install 'labelmem[demo]'
    """
    from labelmem.demo.command import run_command

    run_command(out=out, seed=seed, quick=quick, json_target=json)
