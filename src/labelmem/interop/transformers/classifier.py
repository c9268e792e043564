"""Classifiers of texts: ``AutoModelForSequenceClassification`` and its like."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.adapter import Adapter
from labelmem.backbone import find_head
from labelmem.combiner import Combiner
from labelmem.config import MemoryConfig
from labelmem.errors import ModelError

__all__ = ["TakesMapping", "sequence_classifier"]


class TakesMapping(nn.Module):
    """A classifier of transformers that takes what its tokenizer returns as one argument.

    Some models put their last layer to every token and keep the answer of one of them. That layer
    is then run once more, on the token that was kept, so that what enters it is h.
    """

    def __init__(self, model: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.model = model
        self._head = [head]  # in a list it is no part of its own, but of the model only

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Logits (n, L) of n texts."""
        head, me = self._head[0], threading.get_ident()
        every: list[tuple[Tensor, Tensor]] = []

        def catch(_: nn.Module, inputs: tuple[Tensor, ...], answer: Tensor) -> None:
            if threading.get_ident() == me:  # others may run the model meanwhile
                every.append((inputs[0], answer))

        hook = head.register_forward_hook(catch)
        try:
            logits: Tensor = self.model(**batch).logits
        finally:
            hook.remove()
        if not every or every[-1][0].ndim == logits.ndim:
            return logits
        h, answers = every[-1]
        kept = (answers == logits[:, None]).all(dim=-1)
        if not bool(kept.any(dim=1).all()):
            raise ModelError(
                f"the logits of {type(self.model).__name__} are not those of one of its tokens; "
                "name the layer that gives them with head=..."
            )
        token = kept.shape[1] - 1 - kept.flip(1).to(torch.int8).argmax(dim=1)
        again: Tensor = head(h[torch.arange(len(h), device=h.device), token])
        return again


def sequence_classifier(
    model: nn.Module,
    head: str | nn.Module | None = None,
    labels: Iterable[Hashable] | None = None,
    memory: MemoryConfig | None = None,
    combiner: float | Combiner | None = None,
    **options: Any,
) -> Adapter:
    """Wrap a classifier of texts in an :class:`labelmem.Adapter`.

    Inputs are what the tokenizer returns: ``stream.predict(tokenizer("my card is gone"))``, and
    ``batch.predict(tokenizer(texts, padding=True, return_tensors="pt"))`` for many streams.

    Parameters
    ----------
    model
        E.g. from ``AutoModelForSequenceClassification.from_pretrained(...)``.
    head
        The layer that gives the logits, or its name; None takes the last linear layer.
    labels
        Names of the logits; None takes ``model.config.id2label``.
    memory, combiner, options
        As for the adapter: without a combiner, its default form.

    Examples
    --------
    >>> from transformers import BertConfig, BertForSequenceClassification
    >>> config = BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=8,
    ...                     id2label={0: "lost_card", 1: "top_up"})
    >>> adapter = sequence_classifier(BertForSequenceClassification(config))
    >>> stream = adapter.stream()
    >>> _ = stream.predict({"input_ids": [2, 7, 3], "attention_mask": [1, 1, 1]})
    >>> stream.observe("exchange_rate")                     # an intent that nobody trained
    >>> stream.labels
    ['lost_card', 'top_up', 'exchange_rate']
    """
    layer = find_head(model, head)
    config: Any = getattr(model, "config", None)
    if labels is None and config is not None:
        labels = [config.id2label[i] for i in range(layer.out_features)]
    return Adapter(TakesMapping(model, layer), layer, labels, memory, combiner, **options)
