"""What all combiners share: what they see, what they answer, and how they start."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from labelmem.errors import ConfigError, ModelError, UnsupportedError
from labelmem.fast import Array
from labelmem.memory import MemoryRead
from labelmem.trees import chosen

__all__ = ["Combiner", "CombinerState", "CombinerStep", "View", "gru", "misses"]


@dataclass(frozen=True)
class View:
    """What a combiner may look at before the label is known."""

    h: Tensor
    """(n, d) the model's hidden vector."""
    r: Tensor
    """(n, W) the model's belief."""
    s: Tensor
    """(n, W) the memory's belief."""
    read: MemoryRead
    """The cells behind it."""


@dataclass(frozen=True)
class CombinerState:
    """What a combiner remembers of ``n`` streams: tensors, first dimension n, or None."""

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must be saved."""
        named = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: tensor for name, tensor in named if tensor is not None}

    def detach(self) -> Self:
        """The same state, cut off from the graph: the boundary of truncated back-propagation."""
        return type(self)(**{name: tensor.detach() for name, tensor in self.tensors().items()})

    def where(self, mask: Tensor | None, old: Self) -> Self:
        """Take ``old`` for the streams that are not masked."""
        return type(self)(**chosen(mask, self.tensors(), old.tensors()))


@dataclass(frozen=True)
class CombinerStep:
    """A step not yet committed."""

    theta: Tensor
    """(n, W) the memory's weight for every label."""
    mu: Tensor
    """The recurrent states that would become current."""
    s: Tensor | None = None
    """(n, W) the memory's belief after correction; None leaves it as it was."""


DEFAULT = "stream"
"""The kind that did better wherever both were tried: ``docs/sequences.md``."""


class Combiner(nn.Module):
    """A small recurrent network that learns how far to trust the memory.

    An untrained combiner is exactly LMN-fixed: theta is ``theta`` everywhere until :meth:`fit`
    finds something better.

    Parameters
    ----------
    kind
        ``stream``, the default: one recurrent state per stream, and labels in memory scored by how
        they came. ``label``: the paper's, one recurrent state per label.
    hidden
        Size of a recurrent state.
    theta
        The fixed weight of the memory from which training starts.
    seed
        Seeds the initial weights.
    options
        What the kind has beside: see :class:`labelmem.label_combiner.LabelCombiner` and
        :class:`labelmem.stream_combiner.StreamCombiner`.
    """

    kinds: ClassVar[dict[str, type[Combiner]]] = {}
    kind: ClassVar[str]
    sees_past: ClassVar[bool] = False
    """Whether reads must tell how each label came so far."""
    parts: int | None = None
    bias_theta: nn.Parameter

    def __init_subclass__(cls, kind: str) -> None:
        super().__init_subclass__()
        cls.kind = kind
        Combiner.kinds[kind] = cls

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Make the subclass of the kind that was asked for."""
        if cls is not Combiner:
            return super().__new__(cls)
        kind = options.get("kind", DEFAULT)
        if kind not in Combiner.kinds:
            raise ConfigError(f"kind is {kind!r}; there are {sorted(Combiner.kinds)}")
        made = Combiner.kinds[kind]
        for name in options:
            if name not in _options(made):
                having = [k for k, c in Combiner.kinds.items() if name in _options(c)]
                hint = f"; kind={having[0]!r} has it" if having else ""
                raise ConfigError(
                    f"a combiner of kind {kind!r} has no option {name!r}{hint}; its options are "
                    f"{', '.join(sorted(_options(made)))}"
                )
        return super().__new__(made)  # type: ignore[return-value]

    def __init__(self, hidden: int = 16, theta: float = 0.5, seed: int = 0, **_: Any) -> None:
        super().__init__()
        if type(hidden) is not int or hidden < 1:
            raise ConfigError(f"hidden is {hidden}; it must be a whole number from 1")
        self.hidden, self.seed = hidden, seed
        self.start = _checked(theta)
        self.dim: int | None = None

    def build(
        self,
        dim: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        parts: int | None = None,
    ) -> Self:
        """Create the weights for inputs h of length ``dim``; the adapter does this by itself.

        ``parts`` is the number of parts of the memory's key.
        """
        parts = parts or self.parts or 1
        if self.sees_past and self.parts not in (None, parts):
            raise ModelError(
                f"this combiner was built for a key of {self.parts} part(s), this key has {parts}; "
                "make a new Combiner for this key"
            )
        if self.sees_past:
            self.parts = parts
        if self.dim not in (None, dim):
            raise ModelError(
                f"this combiner was built for h of length {self.dim}, the model's h has {dim}; "
                "make a new Combiner for this model"
            )
        if self.dim is None:
            self.dim = dim
            self.make_weights(dim, torch.Generator().manual_seed(self.seed))
            self.bias_theta = nn.Parameter(torch.tensor(_logit(self.start)))
        return self.to(device=device, dtype=dtype)

    def uniform(self, rows: int, columns: int, generator: torch.Generator) -> nn.Parameter:
        """Initial weights in ±1 / sqrt(hidden), as recurrent cells usually have."""
        u = torch.rand(rows, columns, generator=generator)
        return nn.Parameter((2 * u - 1) / math.sqrt(self.hidden))

    def restart(self, theta: float) -> None:
        """Make LMN-fixed with this ``theta`` the point from which training starts."""
        self.start = _checked(theta)
        if self.dim is not None:
            with torch.no_grad():
                self.forget_training()
                self.bias_theta.fill_(_logit(theta))

    def form(self) -> dict[str, Any]:
        """What states and weights of this combiner depend on, for saved files."""
        return {"kind": self.kind, "hidden": self.hidden}

    def make_weights(self, dim: int, generator: torch.Generator) -> None:
        """Register the parameters, such that theta starts out as its bias alone."""
        raise _undefined(self)

    def forget_training(self) -> None:
        """Set to zero what makes theta, or the scores, depend on anything."""
        raise _undefined(self)

    def initial_state(self, streams: int, width: int) -> CombinerState:
        """State at t = 0, for ``width`` labels."""
        raise _undefined(self)

    def forward(self, state: CombinerState, view: View) -> CombinerStep:
        """Theta for every label. Pure."""
        raise _undefined(self)

    @property
    def gives_s(self) -> bool:
        """Whether its steps have an s of their own; then it never asks for the memory's."""
        return False

    def compiles(self, logits: Tensor) -> bool:
        """Whether :meth:`combine_one` is defined and fits; then ``logits`` are one stream's."""
        return False

    def combine_one(
        self,
        state: CombinerState,
        h: Array,
        logits: Array,
        read: MemoryRead,
        partition: bool,
        out: Array,
    ) -> CombinerStep:
        """Eq. 1, a step and Eq. 5 by a compiled kernel: P, theta, r, s are the rows of ``out``.

        ``h`` (d,) and ``logits`` (L,) are one stream's, and ``read`` is compiled.
        """
        raise _undefined(self)

    def observe(
        self,
        state: CombinerState,
        step: CombinerStep,
        view: View,
        y: Tensor,
        mask: Tensor | None,
    ) -> CombinerState:
        """The state after the labels y (n,) of ``step`` were revealed to the masked streams."""
        raise _undefined(self)


def misses(scores: Tensor, y: Tensor) -> Tensor:
    """Whether the best label of (n, W) scores is not y; scores that are all zero have missed."""
    if not scores.shape[1]:
        return torch.ones_like(y, dtype=torch.bool)
    top, best = scores.max(dim=1)
    return (best != y) | (top <= 0)


def gru(from_input: Tensor, from_state: Tensor, state: Tensor) -> Tensor:
    """One GRU update from the two projections (…, 3 hidden) and the state (…, hidden)."""
    reset_i, update_i, new_i = from_input.chunk(3, dim=-1)
    reset_s, update_s, new_s = from_state.chunk(3, dim=-1)
    update = torch.sigmoid(update_i + update_s)
    new = torch.tanh(new_i + torch.sigmoid(reset_i + reset_s) * new_s)
    return new + update * (state - new)


def _undefined(combiner: Combiner) -> UnsupportedError:
    return UnsupportedError(f"{type(combiner).__name__} does not define all a combiner must")


def _options(kind: type[Combiner]) -> list[str]:
    """What a kind of combiner can be told."""
    return [name for name in inspect.signature(kind.__init__).parameters if name != "self"]


def _checked(theta: float) -> float:
    if not 0 < theta < 1:
        raise ConfigError(f"theta is {theta}; a combiner starts from a value in (0, 1)")
    return theta


def _logit(p: float) -> float:
    return math.log(p / (1 - p))
