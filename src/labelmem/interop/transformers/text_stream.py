"""One user's text: what is accepted is learned, what is generated is not."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from labelmem.errors import CorruptFileError
from labelmem.interop.transformers.mixing import MemoryProcessor
from labelmem.interop.transformers.text_streams import TextStreams
from labelmem.storage import load_state, save_state

if TYPE_CHECKING:
    from labelmem.interop.transformers.causal import MemoryLM

__all__ = ["TextStream"]

_KIND = "text stream"


class TextStream:
    """A user of a language model: the text so far, and a memory.

    Made by :meth:`MemoryLM.stream`. The methods are those of
    :class:`labelmem.interop.transformers.TextStreams`, for one text instead of n.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> from labelmem.interop.transformers import MemoryLM
    >>> config = GPT2Config(vocab_size=20, n_positions=16, n_embd=8, n_layer=1, n_head=2,
    ...                     bos_token_id=None, eos_token_id=None)
    >>> stream = MemoryLM(GPT2LMHeadModel(config), combiner=0.9).stream()
    >>> _ = stream.read([7, 7, 7, 7, 7, 7])                  # the user's text, as token ids
    >>> stream.generate(max_new_tokens=2)[0, 6:]             # a proposal: nothing is learned
    tensor([7, 7])
    >>> _ = stream.read([7, 5])                              # and what became of it
    """

    def __init__(self, lm: MemoryLM) -> None:
        self._one = TextStreams(lm, 1)
        # A stream keeps the options it began with, whatever the adapter becomes.
        self._signature = lm.adapter.shared_signature()

    @property
    def ids(self) -> Tensor:
        """The tokens that the stream has before it; the oldest ones may be gone."""
        return self._one.ids[0]

    def read(self, text: Any) -> Tensor:
        """Take in text that the user wrote, accepted or corrected, and learn from it.

        Parameters
        ----------
        text
            A string, token ids, or what a tokenizer returns for one text.

        Returns
        -------
        log_probs
            (T,) the log-probability that each token had before it was observed. As everywhere in
            transformers the first token of a text has none.
        """
        return self._one.read(_one_of(text))[0]

    def predict(self) -> Tensor:
        """Probabilities (V,) of the next token. Changes nothing."""
        return self._one.predict()[0]

    def perplexity(self, text: Any) -> float:
        """Perplexity of more text, learning from it on the way. The stream stays as it is."""
        return float(self._one.perplexity(_one_of(text))[0])

    def generate(self, text: Any = None, **options: Any) -> Any:
        """Continue the text with the model's own ``generate``: :meth:`TextStreams.generate`."""
        return self._one.generate(None if text is None else _one_of(text), **options)

    def mixing(self, assisted: bool = False) -> AbstractContextManager[MemoryProcessor]:
        """A logits processor for a ``generate`` of one's own: :meth:`TextStreams.mixing`."""
        return self._one.mixing(assisted)

    def new_text(self) -> None:
        """Begin a new text: the memory stays, the text before is forgotten."""
        self._one.new_text()

    def reset(self) -> None:
        """Forget everything: the stream is as new."""
        self._one.reset()

    def save(self, path: str | Path) -> None:
        """Write memory and text to one file, atomically.

        The model's cache is not part of it. This stream drops its own too, so that it and the one
        that is loaded go on with the same computation, bit for bit.
        """
        one = self._one
        with one._lock.held:
            one._context.forget_cache()
            tensors = one.lm.adapter.tensors(one._state) | {"text.ids": self.ids}
            save_state(path, _KIND, tensors, {"signature": self._signature})

    @classmethod
    def load(cls, lm: MemoryLM, path: str | Path) -> TextStream:
        """Continue a saved stream; :meth:`MemoryLM.load_stream` is the usual way."""
        tensors, meta = load_state(path, _KIND)
        lm.adapter.check_signature(meta["signature"], path)
        stream = cls(lm)
        try:
            with torch.inference_mode(False):
                stream._one._context.rows = [tensors.pop("text.ids")]
                stream._one._state = lm.adapter.restore(tensors, 1)
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            raise CorruptFileError(f"{path} lacks a part of the state: {error}") from error
        return stream


def _one_of(text: Any) -> Any:
    """One text as a batch of one, unless a tokenizer made a batch of it already."""
    if isinstance(text, Mapping):
        return {name: _one_of(part) for name, part in text.items()}
    if isinstance(text, Tensor) and text.ndim == 2 and len(text) == 1:
        return text
    return [text]
