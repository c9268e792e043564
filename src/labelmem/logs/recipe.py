"""How a log is fitted: the settings of row ``lmn`` of Table 2, cut to the size of the log.

The costly part of training is the softmax over all items for every item that is new to its user;
the memory of the combiner's training grows with events × items of a user. Both are bounded here, by
counting and not by a clock: the same log and seed give the same model however fast the computer.
What was cut is written on the card.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["VARIANTS", "Recipe", "recipe_for"]

_SCORED = 8e9
"""Logits that the trainings of all models together may score: about six minutes of one core."""
_USUAL = 20
"""Epochs after which training usually stops by itself."""
_FEWEST = 5
"""Epochs below which it is better to leave out users."""

VARIANTS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"dim": 64, "norm": 0.75, "gain": 2.0}, {"weight_decay": 3.0, "bias_decay": 0.3}),
    ({"dim": 64, "norm": 1.0, "gain": 3.0}, {"weight_decay": 1.0, "bias_decay": 0.0}),
)
"""Settings of the model and of its training: those for Foursquare NYC, and for Tokyo."""


@dataclass(frozen=True)
class Recipe:
    """All that decides the outcome beside the log and the seed."""

    least_users: int = 2
    """Training users who must have an item for the model to know it."""
    most_items: int = 10_000
    """The most items the model knows; the others are left to the users' memories."""
    test: float = 0.2
    """Share of the users on whom the figures are measured."""
    valid: float = 0.2
    """Share of the other users: for early stopping, tuning and, without folds, the combiner."""
    test_events: int = 30_000
    """About the most events of test users that are predicted; whole users each."""
    search_events: int = 4_000
    """About the most events of validation users in one trial of a search."""
    stopping_events: int = 20_000
    """About the most events of validation users that the model's early stopping looks at."""
    trials: int = 14
    """The most settings of the memory, and of the counter, that are tried."""
    epochs: int = 60
    """The most passes of the model's training."""
    share: float = 1.0
    """Share of the training users that the model is trained on."""
    static_epochs: int = 20
    """The same for the model that is not adapted, which is only there to be compared with."""
    static_share: float = 1.0
    combiner_epochs: int = 20
    variants: int = 2
    """How many of the settings of the model are tried."""
    folds: int = 4
    """Models that are trained without a part of the users, to train the combiner on that part."""
    combiner_cells: int = 2_000_000
    """Events × remembered items that the combiner is trained on: 60 bytes each."""
    window: int = 64
    windows: int = 2
    """The combiner is trained on so many windows of so many events of each user, early and late:
    many users in part rather than few of them whole."""
    steps: int = 512
    """Longer streams are cut in training. When figures are measured, streams are whole."""


def recipe_for(
    sights: int, events: int, items: int, effort: float = 1.0, quick: bool = False
) -> Recipe:
    """The recipe for training users with so many events and first sights of so many known items.

    Examples
    --------
    >>> recipe_for(sights=10_000, events=40_000, items=2_000).folds
    4
    >>> large = recipe_for(sights=200_000, events=700_000, items=10_000)
    >>> large.folds, large.variants, large.epochs, large.share
    (0, 1, 5, 0.8)
    """
    budget = _SCORED * effort * (0.1 if quick else 1.0)
    each = max(sights * items, 1)
    static_epochs, static_share = _within(budget / 4, max(events * items, 1), 20)
    static = {"static_epochs": static_epochs, "static_share": static_share}
    if quick:
        epochs, share = _within(budget, each, 12)
        return Recipe(
            test_events=6_000,
            search_events=1_500,
            stopping_events=4_000,
            trials=6,
            epochs=epochs,
            share=share,
            combiner_epochs=8,
            variants=1,
            folds=0,
            combiner_cells=300_000,
            steps=256,
            **static,  # type: ignore[arg-type]
        )
    if each * _USUAL * (len(VARIANTS) + 4) <= budget:
        return Recipe(**static)  # type: ignore[arg-type]
    if each * _USUAL * 3 <= budget:
        return Recipe(variants=1, folds=2, **static)  # type: ignore[arg-type]
    epochs, share = _within(budget, each, Recipe.epochs)
    return Recipe(variants=1, folds=0, epochs=epochs, share=share, **static)  # type: ignore[arg-type]


def _within(budget: float, each: int, most: int) -> tuple[int, float]:
    """Epochs, and the share of the users, that keep the cost of training within the budget."""
    epochs = max(_FEWEST, min(most, int(budget / each)))
    return epochs, min(1.0, budget / (epochs * each))
