"""Sequences to train a combiner on, in which nothing is won by counting.

In the test every label comes exactly twice. A combiner that learns this rules labels out by
counting them, without looking at pictures. Here labels come as chance will have it, any number of
times, and the last step, which is to be learned from, asks for each of those in memory equally
often.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from labelmem.errors import ConfigError
from labelmem_paper.experiments.images.showings import Showings

__all__ = ["draw_recalls"]


def draw_recalls(
    shown: Tensor,
    strange: Tensor,
    share: float,
    fresh: float,
    count: int,
    steps: int,
    seed: int,
) -> Showings:
    """Draw sequences whose last picture is another drawing of a label that came, or a fresh label.

    All earlier showings of a label are by one and the same drawing: a label may have as few as two,
    and must not be ruled out because both of them came.

    Parameters
    ----------
    shown
        (characters, drawings) which drawings may be shown; a character with one is never drawn.
    strange
        (characters,) which characters the network was not taught.
    share
        The share of strange characters among the labels.
    fresh
        The share of sequences whose last label did not come before.
    count, steps
        How many sequences, and steps in each, at least two.

    Examples
    --------
    >>> may, strange = torch.ones(9, 4, dtype=torch.bool), torch.arange(9) > 3
    >>> drawn = draw_recalls(may, strange, share=0.3, fresh=0.0, count=2, steps=4, seed=0)
    >>> drawn.label.shape, drawn.second[:, -1]
    (torch.Size([2, 4]), tensor([True, True]))
    """
    may, other = shown.cpu().numpy(), strange.cpu().numpy()
    enough = may.sum(axis=1) >= 2
    pools = [np.flatnonzero(enough & ~other), np.flatnonzero(enough & other)]
    if min(len(pool) for pool in pools) < steps or steps < 2:
        raise ConfigError(
            f"{len(pools[0])} known and {len(pools[1])} strange characters have two drawings to "
            f"show; {steps} steps need as many of each, and two steps at least"
        )
    rng = np.random.default_rng(seed)
    known, strangers = (
        np.stack([rng.permutation(pool)[:steps] for _ in range(count)]) for pool in pools
    )
    label = np.where(rng.random(known.shape) < share, strangers, known)
    order = (rng.random((*label.shape, may.shape[1])) + ~may[label]).argsort(axis=2)
    # Between one and all but one of the labels take turns; the last one is kept for a fresh end.
    labels = rng.integers(1, steps, size=(count, 1))
    which = np.floor(rng.random((count, steps)) * labels).astype(np.int64)
    came = (which[:, :-1, None] == np.arange(steps)).any(axis=1)
    again = (rng.random(came.shape) * came).argmax(axis=1)
    which[:, -1] = np.where(rng.random(count) < fresh, steps - 1, again)
    drawing = np.take_along_axis(order[:, :, 0], which, axis=1)
    drawing[:, -1] = order[np.arange(count), which[:, -1], 1]
    label = np.take_along_axis(label, which, axis=1)
    return Showings(torch.from_numpy(label), torch.from_numpy(drawing))
