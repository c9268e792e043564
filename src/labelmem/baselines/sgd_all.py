"""Dynamic evaluation: gradient descent on all weights of the model, after every label."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from labelmem.baselines.base import masked_softmax, refuse_infinite, require
from labelmem.baselines.model_method import ModelMethod, ModelState, ModelStep
from labelmem.baselines.state import wider
from labelmem.errors import InputError
from labelmem.locks import Lock, one_at_a_time
from labelmem.online import Step
from labelmem.trees import chosen, leaves, tree_map

__all__ = ["SGDAll", "SGDAllOptions"]

Weights = dict[str, Tensor]

_MODEL_ERRORS = (RuntimeError, ValueError, IndexError, TypeError)
_MOST = 2**28  # slopes held at once: a gigabyte, and what autograd needs beside it
_MOST_ON_CPU = 2**23  # of more, neither slopes nor what passes through the layers stay in caches


@dataclass(frozen=True)
class SGDAllOptions:
    """How to step, and how far to stray."""

    lr: float = 0.01
    """Learning rate."""
    decay: float = 0.0
    """Share of the way back to the model's own weights that each step goes."""

    def __post_init__(self) -> None:
        good = self.lr >= 0 and math.isfinite(self.lr)
        require(good, "lr", self.lr, "must be a number from 0")
        require(0 <= self.decay < 1, "decay", self.decay, "must lie in [0, 1)")


@dataclass
class SGDAllState(ModelState):
    """A copy of all weights for each stream, rows for its own labels, and how many it has met."""

    weights: Weights
    """By parameter, (n, ...); rows of the last layer for new labels are apart, below."""
    rows: Weights
    """``weight`` (n, E, d) and ``bias`` (n, E)."""
    own: Tensor
    """(n,)."""


class SGDAll(ModelMethod[SGDAllState, SGDAllOptions]):
    """One step of gradient descent on -log P(y) in every weight, after every label.

    Each stream has a copy of all weights. A recurrent model's state is carried on but the gradient
    goes back one step only. A new label gets a row of zeros in the last layer first, then
    takes part in the step.

    The streams are batched with ``torch.func.vmap``. Where the model has an operation that vmap
    does not know (fused recurrent layers on some devices) they are taken one after another.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
    >>> stream = SGDAll(model, options=SGDAllOptions(lr=0.5)).stream()
    >>> for _ in range(5):
    ...     p = stream.predict([1.0, 1.0])
    ...     stream.observe("new")
    >>> stream.predict([1.0, 1.0]).label
    'new'

    References
    ----------
    Mikolov et al. (2010), Recurrent neural network based language model (dynamic test); Krause et
    al. (2018), Dynamic evaluation of neural sequence models, for ``decay``.
    """

    name = "sgd-all"
    Options = SGDAllOptions
    _lock = Lock()  # of all: streams put their weights into the model for as long as it runs
    _one_by_one = False  # becomes True when vmap has failed where a single stream has not

    @one_at_a_time
    def initial_state(self, streams: int) -> SGDAllState:
        """The model's own weights, not yet copied."""
        assert self.backbone.head is not None
        like, dim = self.backbone.head.weight, self.backbone.head.in_features
        return SGDAllState(
            streams,
            self.backbone.initial_state(streams),
            {name: p.expand(streams, *p.shape) for name, p in self._weights().items()},
            {"weight": like.new_zeros(streams, 0, dim), "bias": like.new_zeros(streams, 0)},
            torch.zeros(streams, dtype=torch.int64, device=self.device),
        )

    def _weights(self) -> Weights:
        return {name: p.detach() for name, p in self.backbone.model.named_parameters()}

    @one_at_a_time
    @torch.no_grad()
    def advance(self, state: SGDAllState, x: Any, width: int) -> ModelStep:
        """What each stream's own copy of the model says."""
        self.backbone.check_open()
        self.backbone.model.eval()
        given = state.weights, state.rows, x, state.model
        # A GPU takes all at once; only slopes need room there.
        parts = self._parts(state.streams) if self.device.type == "cpu" else [slice(None)]
        each = [self.scores(*tree_map(itemgetter(part), given)) for part in parts]
        scores, model_state = tree_map(lambda *some: torch.cat(some), *each)
        refuse_infinite(scores)
        scores = wider(scores, width)
        probs = masked_softmax(scores, self.has_label(state.own, scores.shape[1]))
        return ModelStep(x, probs, model_state=model_state if self.backbone.recurrent else None)

    def rebase(self, state: SGDAllState, step: Step, width: int) -> Step:
        """Late label: all moves on from the weights of now."""
        return self.advance(state, step.x, width)

    @one_at_a_time
    def learn(self, state: SGDAllState, step: ModelStep, y: Tensor, mask: Tensor | None) -> None:
        """Give a new label its row, then take the step in all weights."""
        own = chosen(mask, torch.maximum(state.own, y + 1 - len(self.known)), state.own)
        extra = int(own.max())
        fresh = self.fresh_row()
        rows = {name: _longer(tensor, extra, fresh[name]) for name, tensor in state.rows.items()}
        y = y.clamp(max=len(self.known) + extra - 1)
        has = self.has_label(own, len(self.known) + extra)
        weights = self._copied(state.weights)
        start = {name: p[None] for name, p in self._weights().items()}
        origin = {name: row.expand_as(rows[name][:1]) for name, row in fresh.items()}
        moves = torch.ones_like(y) if mask is None else mask
        for part in self._parts(state.streams):
            here, given, moving = tree_map(
                itemgetter(part),
                ((weights, rows), (step.x, state.model, y, has), moves.to(self.dtype)),
            )
            slopes = self.slopes(*here, *given)
            tree_map(partial(self.step_, moving), here, slopes, (start, origin))
        state.weights, state.rows, state.own = weights, rows, own

    def scores(self, weights: Weights, rows: Weights, x: Any, model_state: Any) -> tuple[Any, Any]:
        """Logits (n, L + E) of all streams, each with its own weights, and their next state."""
        found: tuple[Any, Any] = self._mapped(self._scores, weights, rows, x, model_state)
        return found

    def slopes(self, weights: Weights, rows: Weights, *example: Any) -> Any:
        """Slopes of -log P(y) in the weights and rows of all streams.

        Parameters
        ----------
        example
            Inputs x, the model's state, labels y (n,), and which labels (n, L + E) a stream has.
        """
        return self._mapped(grad(self._loss, argnums=(0, 1)), weights, rows, *example)

    def fresh_row(self) -> Weights:
        """What the row of a new label is before its first step: (1, 1, d) and (1, 1)."""
        assert self.backbone.head is not None
        zeros, dim = self.backbone.head.weight.new_zeros, self.backbone.head.in_features
        return {"weight": zeros(1, 1, dim), "bias": zeros(1, 1)}

    def _copied(self, weights: Weights) -> Weights:
        """The weights as the streams' own, to be changed in place."""
        model = self._weights()
        return {
            name: weight.clone(memory_format=torch.contiguous_format)
            if weight.data_ptr() == model[name].data_ptr()
            else weight
            for name, weight in weights.items()
        }

    def _parts(self, streams: int) -> list[slice]:
        """As many streams at a time as their slopes have room."""
        size = sum(weight.numel() for weight in self._weights().values())
        room = _MOST_ON_CPU if self.device.type == "cpu" else _MOST
        most = max(1, room // size)
        return [slice(first, first + most) for first in range(0, streams, most)]

    def step_(self, moving: Tensor, weight: Tensor, slope: Any, origin: Tensor) -> None:
        """Step in place where the streams are ``moving``, elsewhere by exactly nothing."""
        each = moving.view(-1, *[1] * (weight.ndim - 1))
        if self.options.decay:
            weight.lerp_(origin.expand_as(weight), self.options.decay * each.expand_as(weight))
        weight.addcmul_(slope, each, value=-self.options.lr)

    def _scores(
        self, weights: Weights, rows: Weights, x: Any, model_state: Any
    ) -> tuple[Tensor, Any]:
        """Logits (L + E,) and next state of one stream, with the given weights."""
        given = [tree_map(lambda leaf: leaf[None], x)]
        if self.backbone.recurrent:
            given.append(tree_map(lambda leaf: leaf[None], model_state))
        caught: list[tuple[Tensor, Tensor]] = []
        assert self.backbone.head is not None
        hook = self.backbone.head.register_forward_hook(
            lambda _, inputs, output: caught.append((inputs[0], output))
        )
        try:
            output = functional_call(self.backbone.model, weights, tuple(given))
        finally:
            hook.remove()
        h, logits = caught[-1]
        if self.backbone.head.bias is None:
            rows = rows | {"bias": rows["bias"] * 0}
        extra = nn.functional.linear(h, rows["weight"], rows["bias"])
        next_state = output[-1] if self.backbone.recurrent else ()
        next_state = tree_map(lambda leaf: leaf[0], next_state)
        return torch.cat([logits, extra], dim=1)[0], next_state

    def _loss(
        self,
        weights: Weights,
        rows: Weights,
        x: Any,
        model_state: Any,
        y: Tensor,
        has: Tensor,
    ) -> Tensor:
        """-log P(y) of one stream, over the labels it ``has``."""
        scores, _ = self._scores(weights, rows, x, model_state)
        log_p = torch.log_softmax(torch.where(has, scores, -torch.inf), dim=0)
        return -log_p.gather(0, y[None])[0]

    def _mapped(self, f: Callable[..., Any], *args: Any) -> Any:
        """Apply ``f``, written for one stream, to all."""
        streams = len(next(leaves(args)))
        if streams > 1 and not self._one_by_one:
            try:
                # No state is to vmap a leaf that it cannot take apart, not a tree without leaves.
                return vmap(f)(*(() if arg is None else arg for arg in args))
            except _MODEL_ERRORS:  # the model's fault, or vmap's? one stream alone will tell
                pass
        try:
            # Fused recurrent kernels of CUDA have no backward in eval mode, the plain ones have.
            fused = any(isinstance(part, nn.RNNBase) for part in self.backbone.model.modules())
            with torch.backends.cudnn.flags(enabled=not fused):
                each = [f(*tree_map(lambda leaf, i=i: leaf[i], args)) for i in range(streams)]
        except _MODEL_ERRORS as error:
            name = type(self.backbone.model).__name__
            raise InputError(f"{name} cannot take this input: {error}") from error
        self._one_by_one |= streams > 1
        return tree_map(lambda *parts: torch.stack(parts), *each)


def _longer(rows: Tensor, size: int, row: Tensor) -> Tensor:
    """Rows (n, E, …) extended to ``size`` by copies of one."""
    more = row.expand(len(rows), max(0, size - rows.shape[1]), *rows.shape[2:])
    return torch.cat([rows, more], dim=1)
