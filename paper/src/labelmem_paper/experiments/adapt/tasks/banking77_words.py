"""BANKING77 by means of word vectors (WordLlama), which come in a wheel: no network at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from labelmem_paper.experiments.adapt.extras import needed
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.intents import intents_task

__all__ = ["make_banking77_words"]


def make_banking77_words(seed: int, cache: Path) -> FrozenTask:
    """The task with one draw of the known intents."""
    return intents_task("banking77-words", _embed, seed, cache)


def _embed(texts: Sequence[str]) -> Tensor:
    package = needed("wordllama", "banking77-words")
    # Looking for its own tokenizer the package forgets an "s"; as its own cache it finds it.
    folder = Path(str(package.__file__)).parent
    words = package.WordLlama.load(cache_dir=folder, disable_download=True)
    rows = torch.from_numpy(np.asarray(words.embed(list(texts), norm=True), np.float32))
    return rows * math.sqrt(rows.shape[1])
