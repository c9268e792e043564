"""Texts of many users at once: what they accept is learned, what is generated is not."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor
from transformers import LogitsProcessorList

from labelmem.errors import ConfigError, UnsupportedError
from labelmem.interop.transformers.context import Context
from labelmem.interop.transformers.head import HeadInput
from labelmem.interop.transformers.mixing import MemoryProcessor
from labelmem.interop.transformers.tokens import as_rows
from labelmem.locks import Lock, one_at_a_time
from labelmem.metrics import FLOOR

if TYPE_CHECKING:
    from labelmem.interop.transformers.causal import MemoryLM

__all__ = ["TextStreams"]

# These run the model, or a part of it, between the pass and the logits that the memory is put to.
_CANNOT = ("assistant_early_exit", "guidance_scale")
_ASSISTED = ("assistant_model", "prompt_lookup_num_tokens")


class TextStreams:
    """``n`` users of one language model, each with a text and a memory of its own.

    Made by :meth:`MemoryLM.streams`. :meth:`read` is the only method that learns; everything else
    may be called as often as one likes. Texts may have different lengths: the results are those of
    each stream alone. Threads that use the same streams wait for each other.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> from labelmem.interop.transformers import MemoryLM
    >>> config = GPT2Config(vocab_size=20, n_positions=16, n_embd=8, n_layer=1, n_head=2,
    ...                     bos_token_id=None, eos_token_id=None)
    >>> streams = MemoryLM(GPT2LMHeadModel(config)).streams(2)
    >>> [len(log_probs) for log_probs in streams.read([[3, 1, 4, 1, 5], [2, 7]])]
    [4, 1]
    >>> streams.generate(max_new_tokens=3).shape
    torch.Size([2, 8])
    """

    def __init__(self, lm: MemoryLM, n: int) -> None:
        if type(n) is not int or n < 1:
            raise ConfigError(f"asked for {n!r} streams; there must be at least one")
        self.lm, self.n, self._lock = lm, n, Lock()
        self._context = Context(lm.model, n, lm.context)
        with torch.inference_mode(False):
            self._state = lm.adapter.initial_state(n)

    def __len__(self) -> int:
        return self.n

    @property
    @one_at_a_time
    def ids(self) -> list[Tensor]:
        """The tokens that each stream has before it; the oldest ones may be gone."""
        return list(self._context.rows)

    @one_at_a_time
    def read(self, text: Any) -> list[Tensor]:
        """Take in text that the users wrote, accepted or corrected, and learn from it.

        Each token is first predicted and then observed.

        Parameters
        ----------
        text
            One text for each stream: strings, if the language model has its tokenizer; lists or
            tensors of ids; or what a tokenizer returns for all of them.

        Returns
        -------
        log_probs
            For each stream, the log-probability that each token had before it was observed. As
            everywhere in transformers the first token of a text has none.
        """
        return self._read(self._rows(text))

    @one_at_a_time
    def predict(self) -> Tensor:
        """Probabilities (n, V) of the next token of each stream. Changes nothing."""
        context = self._context.copy()
        context.left(pad=0)  # says what is wrong if a stream is empty
        # A token of whatever kind makes the last position a scored one.
        scored = list(context.extend([torch.zeros(1, dtype=torch.int64)] * self.n))[-1]
        h, logits = scored.h[:, -1], scored.logits[:, -1]
        with torch.no_grad():
            return self.lm.adapter.combine(self._state, h, h, logits, logits.shape[1]).probs

    def perplexity(self, text: Any) -> Tensor:
        """Perplexity (n,) of more text, learning from it on the way. The stream stays as it is."""
        scores = self.fork().read(text)
        return torch.stack([torch.exp(-row.mean()) for row in scores])

    @one_at_a_time
    def generate(self, text: Any = None, **options: Any) -> Any:
        """Continue the texts with the model's own ``generate``, the memory mixed in.

        Nothing is learned: what the user makes of the proposal, accepted or corrected, is given to
        :meth:`read` afterwards.

        Parameters
        ----------
        text
            More text to begin with, as for :meth:`read`; it counts as read for this call alone.
        options
            Whatever ``model.generate`` takes: ``max_new_tokens``, ``do_sample``, ``num_beams``, ...

        Returns
        -------
        output
            What ``model.generate`` returns: as a rule ids (n, T) that begin with the text so far,
            padded on the left, cut where the model has not enough positions for more.
        """
        ahead = self if text is None else self.fork()
        if text is not None:
            ahead.read(text)
        model, pad = self.lm.model, self.lm.pad_token_id
        config = options.get("generation_config") or model.generation_config
        if _is_set(_CANNOT, options, config):
            raise UnsupportedError(f"one of {_CANNOT} is set; they do not work with a memory")
        model.eval()
        room = options.get("max_new_tokens") or 0
        ids, mask = ahead._context.left(pad, room)
        if ids.shape[1] == max(ahead._context.lengths) and _one_row_each(options, config):
            options.setdefault("past_key_values", ahead._context.cache())
        if options.get("pad_token_id", config.pad_token_id) is None:
            options["pad_token_id"] = pad
        with ahead.mixing(_is_set(_ASSISTED, options, config)) as processor:
            others = options.pop("logits_processor", None) or []
            processors = LogitsProcessorList([processor, *others])
            return model.generate(
                input_ids=ids, attention_mask=mask, logits_processor=processors, **options
            )

    @contextmanager
    def mixing(self, assisted: bool = False) -> Iterator[MemoryProcessor]:
        """A logits processor that mixes the memory in, for one call of ``model.generate``.

        For those who call ``generate`` themselves, on n prompts of their own; ``assisted`` if
        an ``assistant_model`` or ``prompt_lookup_num_tokens`` takes part.
        """
        adapter, in_order = self.lm.adapter, self.lm.in_order
        with self._lock.held, HeadInput(adapter.output) as seen:
            yield MemoryProcessor(adapter, self._state, seen, in_order, assisted)

    @one_at_a_time
    @torch.inference_mode(False)
    def fork(self) -> Self:
        """The same streams again, going their own way from here."""
        other = copy.copy(self)
        adapter, other._lock = self.lm.adapter, Lock()
        other._context = self._context.copy()
        other._state = adapter.restore(adapter.tensors(self._state), self.n)
        return other

    @one_at_a_time
    def new_text(self) -> None:
        """Begin a new text: the memory stays, the text before is forgotten."""
        self._context = Context(self.lm.model, self.n, self.lm.context)

    @one_at_a_time
    @torch.inference_mode(False)
    def reset(self) -> None:
        """Forget everything: the streams are as new."""
        self.new_text()
        self._state = self.lm.adapter.initial_state(self.n)

    def _rows(self, text: Any) -> list[Tensor]:
        begins = [not length for length in self._context.lengths]
        return as_rows(text, self.lm.tokenizer, begins, self.lm.adapter.output.out_features)

    @torch.inference_mode(False)
    @torch.no_grad()
    def _read(self, rows: list[Tensor]) -> list[Tensor]:
        adapter, V = self.lm.adapter, self.lm.adapter.output.out_features
        scores: list[list[Tensor]] = [[] for _ in range(self.n)]
        for part in self._context.extend(rows):
            log_probs = []
            for t in range(part.y.shape[1]):
                h, y = part.h[:, t], part.y[:, t]
                mask = None if part.mask is None else part.mask[:, t]
                step = adapter.combine(self._state, h, h, part.logits[:, t], V)
                log_probs.append(step.probs.gather(1, y[:, None]).clamp(min=FLOOR).log())
                adapter.learn(self._state, step, y, mask)
            together = torch.cat(log_probs, dim=1)
            for i in range(self.n):
                scores[i].append(together[i] if part.mask is None else together[i, part.mask[i]])
        none = torch.zeros(0, device=adapter.device, dtype=adapter.dtype)
        return [torch.cat([none, *row]) for row in scores]


def _one_row_each(options: dict[str, Any], config: Any) -> bool:
    """Whether generate will run just one row for each stream, so that the cache fits."""
    names = ("num_beams", "num_return_sequences")
    many = any((options.get(name, getattr(config, name, None)) or 1) > 1 for name in names)
    return not many and not _is_set(_ASSISTED, options, config)


def _is_set(names: tuple[str, ...], options: dict[str, Any], config: Any) -> bool:
    return any(options.get(name, getattr(config, name, None)) is not None for name in names)
