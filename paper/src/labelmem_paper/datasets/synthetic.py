"""The demo's made-up users as a data set, for quick runs of the sequence tables."""

from __future__ import annotations

from labelmem.demo.synthetic import SyntheticRecipe, generate
from labelmem_paper.datasets.sequences import Sequences
from labelmem_paper.datasets.source import Source

__all__ = ["SyntheticRecipe", "synthetic"]


def synthetic(recipe: SyntheticRecipe, seed: int) -> Sequences:
    """Sequences of made-up users.

    Examples
    --------
    >>> data = synthetic(SyntheticRecipe(users=20), seed=3)
    >>> len(data), data.labels, data.vocabulary
    (20, 480, 400)
    """
    made = generate(recipe, seed)
    return Sequences(
        "synthetic",
        tokens=made.tokens,
        offsets=made.offsets,
        users=made.users,
        names=made.names,
        split=made.split,
        source=Source("generated", note=f"seed {seed}"),
        new_labels=recipe.new_labels,
        recipe=recipe,
    )
