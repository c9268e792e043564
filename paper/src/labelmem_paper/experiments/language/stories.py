"""Running text for a run: a corpus, or made-up stories for runs in seconds without any data."""

from __future__ import annotations

import numpy as np

from labelmem.errors import ConfigError
from labelmem_paper.datasets import Source, Text, load
from labelmem_paper.experiments.table import Run

__all__ = ["END", "MADE_UP", "load_text", "made_up"]

MADE_UP = "stories"
"""The data set that stands in for all others at the smoke size."""
END = "<eos>"


def load_text(run: Run) -> Text:
    """The text of a run: a corpus by its name, or made-up stories."""
    recipe = run.config.get("recipe")
    if run.dataset == MADE_UP:
        return made_up(**(recipe or {}))
    data = load(run.dataset, recipe, seed=run.seed)
    if not isinstance(data, Text):
        raise ConfigError(f"{run.dataset} holds no running text")
    return data


def made_up(words: int = 60, length: int = 4000, held_out: int = 900, seed: int = 0) -> Text:
    """Stories of about 120 words, each with a few names of its own that come again and again.

    Common words follow each other by fixed habits that a model can learn. Which names a story is
    about cannot be known before it begins: that is for a memory to find out.

    Parameters
    ----------
    words
        Size of the vocabulary; a third are common words, the others names.
    length, held_out
        Words of the training text, and of validation and test each.

    Examples
    --------
    >>> text = made_up()
    >>> text.labels, len(text.train), len(text.test)
    (60, 4000, 900)
    """
    rng = np.random.default_rng(seed)
    common = words // 3
    follows = rng.dirichlet(np.full(common, 0.1), size=words)

    def told(many: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        found: list[int] = []
        while len(found) < many:
            names = rng.integers(common + 1, words, size=3)
            word = 1
            for _ in range(int(rng.integers(80, 160))):
                about = rng.random() < 0.25
                word = int(rng.choice(names)) if about else 1 + _drawn(follows[word], rng)
                found.append(word)
            found.append(0)
        return np.array(found[:many], np.int64)

    vocabulary = (
        END,
        *(f"word {number}" for number in range(common)),
        *(f"name {number}" for number in range(words - common - 1)),
    )
    train, valid, test = told(length), told(held_out), told(held_out)
    return Text(MADE_UP, train, valid, test, vocabulary, Source("generated", note=f"seed {seed}"))


def _drawn(weights: np.ndarray[tuple[int], np.dtype[np.float64]], rng: np.random.Generator) -> int:
    return int(np.searchsorted(np.cumsum(weights), rng.random() * weights.sum(), side="right"))
