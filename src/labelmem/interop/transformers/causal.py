"""A causal language model with a memory for each of its users."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from labelmem.combiner import Combiner
from labelmem.config import MemoryConfig
from labelmem.errors import UnsupportedError
from labelmem.interop.transformers.context import Context, longest_context
from labelmem.interop.transformers.head import HeadAdapter, OutputLayer, output_layer
from labelmem.interop.transformers.text_stream import TextStream
from labelmem.interop.transformers.text_streams import TextStreams
from labelmem.interop.transformers.tokens import as_rows
from labelmem.training import FitResult
from labelmem.tuning import TuneResult

__all__ = ["TEXT", "THETA", "MemoryLM"]

TEXT = MemoryConfig(lam=10.0, delta=0.5, capacity=2000)
"""How a memory of tokens reads, writes and forgets where nothing else is said.

A place to start from: :meth:`MemoryLM.tune` finds what suits a model and its texts.
"""
THETA = 0.1
"""The weight of that memory."""


class MemoryLM:
    """Let a causal language model learn from the text its user accepts, without training it.

    What enters the model's output layer is h, token ids are the labels. A stream belongs to one
    user or document. Three verbs are enough for an editor, a chat or a transcript:
    ``stream.read(text)`` for what was written, accepted or corrected, which predicts and observes
    token by token; ``stream.generate(...)`` for a proposal, with all options of the model's own
    ``generate``; ``stream.save(path)``. Proposals are not learned until they are read.

    ``read`` takes text where the core has one label at a time, because texts come in pieces: the
    model then runs over a whole piece at once, and only the memory goes token by token. Generating
    is a logits processor inside the model's ``generate``, not a loop of our own, so that whatever
    transformers can do, and learns to do, works here too.

    Parameters
    ----------
    model
        Any causal language model of transformers with a key-value cache.
    tokenizer
        Its tokenizer, for those who give texts instead of token ids.
    memory
        How the memory reads, writes and forgets; None is :data:`TEXT`.
    combiner
        A number is the fixed weight of the memory; a :class:`labelmem.Combiner` learns it. With a
        large vocabulary take ``Combiner(kind="stream")`` or one with an ``active_threshold``: the
        exact form of the paper has a recurrent state for every token of the vocabulary.
    context
        How many tokens the model sees at most; None asks its configuration. A text that outgrows
        this goes on with the last half of it.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> _ = torch.manual_seed(0)
    >>> config = GPT2Config(vocab_size=20, n_positions=16, n_embd=8, n_layer=1, n_head=2,
    ...                     bos_token_id=None, eos_token_id=None)
    >>> lm = MemoryLM(GPT2LMHeadModel(config))       # AutoModelForCausalLM.from_pretrained(...)
    >>> stream = lm.stream()
    >>> before = stream.perplexity([3, 1, 4, 1, 5])
    >>> _ = stream.read([3, 1, 4, 1, 5])
    >>> stream.new_text()
    >>> stream.perplexity([3, 1, 4, 1, 5]) < before
    True
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any = None,
        memory: MemoryConfig | None = None,
        combiner: float | Combiner = THETA,
        context: int | None = None,
    ) -> None:
        layer = output_layer(model)
        self.model: Any = model
        self.tokenizer = tokenizer
        self.context = longest_context(model) if context is None else context
        Context(model, 1, self.context)  # says what is wrong with it
        self.adapter = HeadAdapter(OutputLayer(model), layer, None, memory or TEXT, combiner)
        self.in_order = "logits_to_keep" in inspect.signature(model.forward).parameters

    @property
    def pad_token_id(self) -> int:
        """What fills texts up; it is masked, so any token would do."""
        config = self.model.generation_config
        eos = config.eos_token_id
        known = (
            getattr(self.tokenizer, "pad_token_id", None),
            config.pad_token_id,
            eos[0] if isinstance(eos, list) else eos,
        )
        return next((int(token) for token in known if token is not None), 0)

    def stream(self) -> TextStream:
        """Start one user's stream."""
        return TextStream(self)

    def streams(self, n: int) -> TextStreams:
        """Start ``n`` streams that go on side by side."""
        return TextStreams(self, n)

    def load_stream(self, path: str | Path) -> TextStream:
        """Continue a stream that was saved, bit for bit."""
        return TextStream.load(self, path)

    def tune(self, texts: Iterable[Any], **options: Any) -> TuneResult:
        """Choose lam, delta, margin and theta on texts: :func:`labelmem.tuning.tune`."""
        return self.adapter.tune([self._recorded(text) for text in texts], **options)

    def fit(self, texts: Iterable[Any], **options: Any) -> FitResult:
        """Train the combiner on texts new to the model: :func:`labelmem.training.fit`."""
        return self.adapter.fit([self._recorded(text) for text in texts], **options)

    def save(self, path: str | Path) -> None:
        """Write what was tuned and trained, not the model itself, to one file."""
        self.adapter.save(path)

    def load(self, path: str | Path) -> None:
        """Take over what :meth:`save` wrote; the model must be the same."""
        self.adapter.load(path)

    def close(self) -> None:
        """Take all hooks off and give the model back in the mode it was in."""
        self.adapter.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @torch.no_grad()
    def _recorded(self, text: Any) -> tuple[Tensor, Tensor]:
        """A text as the adapter's own kind of recording: each h, and the token that followed."""
        layer = self.adapter.output
        rows = as_rows([text], self.tokenizer, [True], layer.out_features)
        context = Context(self.model, 1, self.context)
        hs, ys = [], []
        for part in context.extend(rows):
            if not torch.allclose(layer(part.h), part.logits, rtol=1e-3, atol=1e-3):
                raise UnsupportedError(
                    f"{type(self.model).__name__} changes its logits after the output layer; tune "
                    "and fit are not supported for it, reading and generating are"
                )
            hs.append(part.h[0])
            ys.append(part.y[0])
        return torch.cat(hs), torch.cat(ys)
