"""How a step grows with labels, cells, dimension and hidden units."""

from __future__ import annotations

from steps import costs, methods, tokens

from labelmem.models import GRUModel

USUAL = {"labels": 10_000, "cells": 200, "dim": 128, "hidden": 16}
SIZES = {
    "labels": (1_000, 10_000, 40_000),
    "cells": (50, 200, 1_000),
    "dim": (32, 128, 512),
    "hidden": (4, 16, 64),
}


def growth() -> list[dict[str, object]]:
    """Own steps of LMN, and the model's forward, one size at a time away from the usual."""
    rows: list[dict[str, object]] = []
    for name, sizes in SIZES.items():
        for size in sizes:
            now = USUAL | {name: size}
            model = GRUModel(now["labels"], now["dim"]).eval()
            made = methods(model, now["hidden"])
            lmn = {key: method for key, method in made.items() if key.startswith("LMN")}
            found = costs(model, lmn, tokens(now["labels"], now["cells"], 40), 40, plain=False)
            times = {"the model's forward": found["LMN-fixed"].forward}
            times |= {key: cost.own for key, cost in found.items()}
            rows += [
                {"grows": name, "size": size, "part": key, "us": us} for key, us in times.items()
            ]
    return rows
