"""The text that a causal language model has before it, in n streams that go on."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from labelmem.errors import ConfigError, ModelError, UnsupportedError
from labelmem.functional import finite
from labelmem.interop.transformers.head import HeadInput, output_layer
from labelmem.interop.transformers.tokens import padded

__all__ = ["Context", "Scored", "longest_context"]

_ROOM = 2**24  # numbers in the logits of the positions that are run at a time


def longest_context(model: nn.Module) -> int | None:
    """How many positions the model was made for; None where its configuration does not say."""
    config: Any = model.config
    if hasattr(config, "get_text_config"):
        config = config.get_text_config()
    positions = getattr(config, "max_position_embeddings", None)
    return positions if isinstance(positions, int) and positions > 0 else None


@dataclass(frozen=True)
class Scored:
    """Some positions of n streams, with the token that follows each."""

    h: Tensor
    """(n, T, d) what entered the output layer; zero in the padding."""
    logits: Tensor
    """(n, T, V); zero in the padding."""
    y: Tensor
    """(n, T) the tokens that followed."""
    mask: Tensor | None
    """(n, T) where they are real; None where all are."""


class Context:
    """Token ids of n streams, and the model's cache of all of them but the last.

    The last token of a stream has not been run: what follows it is not known yet. Streams that go
    on by the same number of tokens continue from the cache. Otherwise it is made anew, with the
    padding in front, so that no gap ever lies between two tokens of a stream: the results are those
    of each stream alone whatever the model makes of distances.

    A stream that would outgrow ``limit`` forgets all but the last half of it first.
    """

    def __init__(self, model: nn.Module, streams: int, limit: int | None) -> None:
        if limit is not None and (type(limit) is not int or limit < 2):
            raise ConfigError(f"context is {limit!r}; it must be a whole number from 2, or None")
        self.model, self.limit = model, limit
        self.layer = output_layer(model)
        self.rows = [torch.zeros(0, dtype=torch.int64) for _ in range(streams)]
        self._accepts = set(inspect.signature(model.forward).parameters)
        self._cache: Any = None
        self._real = torch.zeros(streams, 0, dtype=torch.bool)  # columns of the cache, on the CPU

    @property
    def lengths(self) -> list[int]:
        """How many tokens each stream has before it."""
        return [len(row) for row in self.rows]

    def forget_cache(self) -> None:
        """Run everything anew the next time."""
        self._cache = None

    def copy(self) -> Context:
        """The same again, going its own way."""
        other = copy.copy(self)
        other.rows = list(self.rows)
        other._cache = copy.deepcopy(self._cache)
        return other

    def cache(self) -> Any:
        """A copy of the cache, to be used up; None if there is none yet."""
        return copy.deepcopy(self._cache)

    def left(self, pad: int, room: int = 0) -> tuple[Tensor, Tensor]:
        """All tokens (n, T), padded on the left, and the mask, as ``generate`` takes them.

        Parameters
        ----------
        room
            How many positions must be left for new tokens; the oldest tokens make way.
        """
        if not all(self.lengths):
            raise UnsupportedError("a stream has read nothing yet, so there is nothing to continue")
        rows = self.rows
        if self.limit is not None and max(self.lengths) + room > self.limit:
            rows = [row[-max(1, self.limit - room) :] for row in rows]
        ids, real = padded(rows, max(len(row) for row in rows), pad)
        device = self.layer.weight.device
        return ids.to(device), real.long().to(device)

    @torch.no_grad()
    def extend(self, new: Sequence[Tensor]) -> Iterator[Scored]:
        """Take in new tokens, one row for each stream, and score them some positions at a time.

        The first token of a text follows nothing and is not scored. All of the iterator must be
        used.
        """
        half = max(map(len, new)) if self.limit is None else (self.limit + 1) // 2
        for start in range(0, max(map(len, new)), max(1, half)):
            yield from self._extend([row[start : start + half] for row in new])

    def _extend(self, new: list[Tensor]) -> Iterator[Scored]:
        if self.limit is not None:
            for i, row in enumerate(self.rows):
                if len(row) + len(new[i]) > self.limit:
                    self.rows[i], self._cache = row[-(self.limit // 2) :], None
        before = self.rows
        self.rows = [torch.cat(pair) for pair in zip(before, new, strict=True)]
        scored = [
            len(row) - (0 if len(old) else min(1, len(row)))
            for old, row in zip(before, new, strict=True)
        ]
        together = len(set(map(len, new))) == 1 and all(map(len, before))
        if self._cache is None or not together:
            self._cache, self._real = None, self._real[:, :0]
            inputs = [row[:-1] for row in self.rows]
        else:
            inputs = [row[-1 - count : -1] for row, count in zip(self.rows, scored, strict=True)]
        columns = max(map(len, inputs))
        ids, real = padded(inputs, columns, pad=0)
        y, wanted = padded(
            [r[len(r) - k :] for r, k in zip(self.rows, scored, strict=True)], columns, 0
        )
        # What is only context is run at once, the rest a few positions at a time.
        silent = columns - max(scored)
        if silent:
            self._run(ids[:, :silent], real[:, :silent], quiet=True)
        step = max(1, _ROOM // (len(new) * self.layer.out_features))
        for start in range(silent, columns, step):
            part = slice(start, start + step)
            h, logits = self._run(ids[:, part], real[:, part], quiet=False)
            yield self._scored(h, logits, y[:, part], wanted[:, part])

    def _scored(self, h: Tensor, logits: Tensor, y: Tensor, wanted: Tensor) -> Scored:
        mask = None
        if not bool(wanted.all()):  # on the CPU
            mask = wanted.to(h.device)
            h = torch.where(mask[..., None], h, torch.zeros_like(h))
            logits = torch.where(mask[..., None], logits, torch.zeros_like(logits))
        if not finite(logits) or not finite(h):
            raise ModelError(
                f"the logits or hidden vectors of {type(self.model).__name__} have NaN or infinite "
                "values; look at its weights, or run it in another precision"
            )
        return Scored(h, logits, y.to(h.device), mask)

    def _run(self, ids: Tensor, real: Tensor, quiet: bool) -> tuple[Tensor, Tensor]:
        """Run the model over more columns; h (n, T, d) and logits (n, T, V) of them."""
        if self.model.training:
            self.model.eval()
        device = self.layer.weight.device
        self._real = torch.cat([self._real, real], dim=1)
        places = (self._real.long().cumsum(dim=1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        options: dict[str, Any] = {"past_key_values": self._cache, "use_cache": True}
        if not bool(self._real.all()):
            options["attention_mask"] = self._real.long().to(device)
        if "position_ids" in self._accepts:
            options["position_ids"] = places.to(device)
        if quiet and "logits_to_keep" in self._accepts:
            options["logits_to_keep"] = 1  # nobody looks at them
        with HeadInput(self.layer) as seen:
            output = self.model(input_ids=ids.to(device), **options)
            h = seen.h
        self._cache = getattr(output, "past_key_values", None)
        if self._cache is None or h is None:
            raise ModelError(
                f"{type(self.model).__name__} keeps no past_key_values, or does not use its output "
                "layer; expected a causal language model with a cache"
            )
        return h, output.logits
