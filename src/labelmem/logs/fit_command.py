"""What ``labelmem fit`` does."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from labelmem import __version__
from labelmem.logs.card import card_of, write_card
from labelmem.logs.fitting import Fitter
from labelmem.logs.folder import save_fitted
from labelmem.logs.log import read_log
from labelmem.logs.parts import split_log
from labelmem.logs.problems import Policy
from labelmem.logs.recipe import VARIANTS, Recipe, recipe_for
from labelmem.logs.rows import Columns
from labelmem.logs.summary import summary_of
from labelmem.logs.words import counted
from labelmem.logs.workshop import Workshop
from labelmem.targets import check_free

__all__ = ["digest_of", "fit_log"]


def fit_log(
    path: Path,
    columns: Columns,
    out: Path,
    *,
    policy: Policy = "stop",
    seed: int = 0,
    effort: float = 1.0,
    quick: bool = False,
    recipe: Recipe | None = None,
    device: str = "cpu",
    tell: Callable[[str], None] = lambda line: None,
    show: bool | None = None,
) -> dict[str, Any]:
    """Fit a model to a log and write its folder; the card is returned.

    A call that was killed goes on where it was when it is made again, and ``out`` appears only when
    it is whole.

    Parameters
    ----------
    effort
        How much training is allowed, against what is usual for a log of its size.
    quick
        Whether to do little: about a minute, and figures to match.
    recipe
        All settings at once, in place of what ``effort`` and ``quick`` would give.
    tell
        Is told in words what was understood and what is being done.
    """
    check_free(out)
    log = read_log(path, columns, policy)
    summary = summary_of(log)
    for line in [*summary.lines(), *log.problems.sentences()]:
        tell(line)
    parts = split_log(log, recipe or Recipe(), seed)
    known = len(parts.vocabulary)
    left = summary.items - known
    tell(f"the model will know {counted(known, 'item')}; left to memories: {left:,}")
    recipe = recipe or recipe_for(parts.sights, parts.events, known, effort, quick)
    identity = {
        "file": digest_of(path),
        "columns": asdict(columns),
        "recipe": asdict(recipe),
        "settings": [policy, seed, device],
        "labelmem": __version__,
    }
    shop = Workshop(out, identity)
    if shop.resumed:
        tell("going on where an earlier call was stopped")
    fit = Fitter(parts, recipe, shop, seed, torch.device(device), tell, show).run()
    shape, _ = VARIANTS[fit.variant]
    save_fitted(shop.bench, fit.adapter, shape, parts.vocabulary, columns, seed)
    about = {"file": path.name, "columns": asdict(columns), "seed": seed, "quick": quick}
    card = card_of(summary, parts, recipe, fit, about | {"effort": effort})
    write_card(shop.bench, card)
    shop.deliver()
    return card


def digest_of(path: Path, size: int | None = None) -> str:
    """SHA-256 of a file, or of its first ``size`` bytes."""
    digest, left = hashlib.sha256(), size
    with path.open("rb") as stream:
        while block := stream.read(1 << 20 if left is None else min(1 << 20, left)):
            digest.update(block)
            if left is not None:
                left -= len(block)
    return digest.hexdigest()
