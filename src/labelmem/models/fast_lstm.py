"""An LSTM whose streams each have weights of their own, one gradient step from label to label."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn.functional import linear, one_hot, pad

from labelmem.models.cells import lstm_cell
from labelmem.models.embedding import TokenEmbedding
from labelmem.models.sizes import check_sizes

__all__ = ["FastLSTM", "FastState", "Trail", "fold_"]

CELL = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
RATES = ("embedding", *CELL, "head", "head_bias")

FastState: TypeAlias = dict[str, Any]
"""``h`` and ``c`` (n, dim), and how far each stream's weights are from the shared ones: ``cell``,
by name (n, ...), ``rows`` of the labels' vectors (n, L + 1, dim), and ``head`` (n, dim + 1, L), the
bias in its last row."""


@dataclass
class Trail:
    """Steps in the labels' vectors and in the output layer that lie one after another.

    A step changes one row of the labels' vectors, and the output layer by an outer product. Kept in
    this form, T steps are n (L + dim) T numbers, and differentiating through them needs no copies
    of the n weights with L dim numbers each.
    """

    tokens: list[Tensor] = field(default_factory=list)
    """(n,) which row."""
    rows: list[Tensor] = field(default_factory=list)
    """(n, dim) what is added to it."""
    left: list[Tensor] = field(default_factory=list)
    """(n, L)."""
    right: list[Tensor] = field(default_factory=list)
    """(n, dim + 1)."""

    def row(self, tokens: Tensor) -> Tensor | float:
        """What the trail has added to the vectors of the tokens, (n, dim)."""
        parts = zip(self.tokens, self.rows, strict=True)
        return sum(((tokens == old)[:, None] * row for old, row in parts), 0.0)

    def factors(self, labels: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """(n, T, L) and (n, T, dim + 1), T may be 0."""
        n, dim = like.shape
        if not self.left:
            return like.new_zeros(n, 0, labels), like.new_zeros(n, 0, dim + 1)
        return torch.stack(self.left, 1), torch.stack(self.right, 1)


class FastLSTM(nn.Module):
    """Predicts the next label; every weight of every stream moves after every label.

    What a stream's weights have moved is kept apart from the shared weights, from which the
    gradient of what follows goes back both ways: straight, and through the steps.

    Parameters
    ----------
    labels
        Number of labels L; tokens are 0 .. L-1, and L for the start of a stream.
    dim
        Size of h and of the labels' vectors.
    learn_rates
        Whether each of the weight tensors learns a factor of the step size.

    Examples
    --------
    >>> network = FastLSTM(labels=5, dim=4)
    >>> state, start, y = network.initial_state(2), torch.tensor([5, 5]), torch.tensor([1, 2])
    >>> losses, after = network.step(start, y, state, Trail(), lr=0.1)
    >>> losses.shape, after["cell"]["weight_ih"].shape
    (torch.Size([2]), torch.Size([2, 16, 4]))
    """

    def __init__(self, labels: int, dim: int = 50, learn_rates: bool = False) -> None:
        super().__init__()
        check_sizes(labels=labels, dim=dim)
        self.labels, self.dim = labels, dim
        self.embedding = TokenEmbedding(labels, dim)
        self.cell = nn.LSTMCell(dim, dim)
        self.head = nn.Linear(dim, labels)
        self.log_rates = nn.ParameterDict({name: torch.zeros(()) for name in RATES})
        self.log_rates.requires_grad_(learn_rates)

    def initial_state(self, n: int) -> FastState:
        """The shared weights, and nothing seen."""
        zeros, dim = self.head.weight.new_zeros, self.dim
        return {
            "h": zeros(n, dim),
            "c": zeros(n, dim),
            "cell": {name: zeros(n, *getattr(self.cell, name).shape) for name in CELL},
            "rows": zeros(n, self.labels + 1, dim),
            "head": zeros(n, dim + 1, self.labels),
        }

    def forward(self, tokens: Tensor, state: FastState) -> tuple[Tensor, FastState]:
        """Logits (n, L) with each stream's own weights, and the state after the tokens (n,)."""
        x = self._vectors(tokens, state, Trail())
        left, right = Trail().factors(self.labels, x)
        _, (logits, h, c) = vmap(self._one)(
            *(state["cell"], x, state["h"], state["c"], state["head"], left, right),
            torch.zeros_like(tokens),
        )
        return logits, {**state, "h": h, "c": c}

    def step(
        self,
        tokens: Tensor,
        y: Tensor,
        state: FastState,
        trail: Trail,
        lr: float,
        first_order: bool = False,
    ) -> tuple[Tensor, FastState]:
        """-log P(y) (n,) before the step, 0 where y is negative, and the state after it.

        ``rows`` and ``head`` of the state are as before: the step in them is put on the trail.
        """
        x, known = self._vectors(tokens, state, trail), y >= 0
        given = (state["head"], *trail.factors(self.labels, x), y.clamp(min=0))
        (cell_slope, x_slope), (loss, (logits, h, c)) = vmap(
            grad(self._loss, argnums=(0, 1), has_aux=True)
        )(state["cell"], x, state["h"], state["c"], *given)
        error = torch.softmax(logits, dim=1) - one_hot(y.clamp(min=0), self.labels)
        seen = pad(h, (0, 1), value=1.0)
        if first_order:
            cell_slope = {name: slope.detach() for name, slope in cell_slope.items()}
            x_slope, error, seen = x_slope.detach(), error.detach(), seen.detach()
        rate = {name: lr * log_rate.exp() for name, log_rate in self.log_rates.items()}
        wide = [rate["head"].expand(self.dim), rate["head_bias"][None]]
        trail.tokens.append(tokens)
        trail.rows.append(_where(known, -rate["embedding"] * x_slope))
        trail.left.append(_where(known, -error))
        trail.right.append(seen * torch.cat(wide))
        cell = {
            name: weight - _where(known, rate[name] * cell_slope[name])
            for name, weight in state["cell"].items()
        }
        return _where(known, loss), {**state, "h": h, "c": c, "cell": cell}

    def _vectors(self, tokens: Tensor, state: FastState, trail: Trail) -> Tensor:
        """The vectors (n, dim) of the tokens in their streams."""
        own = state["rows"][torch.arange(len(tokens), device=tokens.device), tokens]
        x: Tensor = self.embedding(tokens) + own + trail.row(tokens)
        return x

    def _loss(self, *given: Any) -> tuple[Tensor, tuple[Tensor, tuple[Tensor, Tensor, Tensor]]]:
        loss, answer = self._one(*given)
        return loss, (loss, answer)

    def _one(
        self,
        moved: dict[str, Tensor],
        x: Tensor,
        h: Tensor,
        c: Tensor,
        head: Tensor,
        left: Tensor,
        right: Tensor,
        y: Tensor,
    ) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """One stream: -log P(y), and the logits, h and c behind it."""
        h, c = lstm_cell(x, h, c, *(getattr(self.cell, name) + moved[name] for name in CELL))
        # Rows times matrices, there and back: several times faster than matrices times columns.
        seen = pad(h, (0, 1), value=1.0)[None]
        moved_logits = seen @ head + (seen @ right.T) @ left
        logits = linear(h, self.head.weight, self.head.bias) + moved_logits[0]
        loss = torch.logsumexp(logits, 0) - logits.gather(0, y[None])[0]
        return loss, (logits, h, c)


@torch.no_grad()
def fold_(state: FastState, trail: Trail) -> None:
    """Add the trail to ``rows`` and ``head`` of the state, in place."""
    stream = torch.arange(len(state["h"]), device=state["h"].device)
    for tokens, rows in zip(trail.tokens, trail.rows, strict=True):
        state["rows"].index_put_((stream, tokens), rows, accumulate=True)
    left, right = torch.stack(trail.left, 1), torch.stack(trail.right, 2)
    state["head"].baddbmm_(right, left)


def _where(known: Tensor, value: Tensor) -> Tensor:
    """The value in the streams that are known, exactly 0 in the others."""
    shape = (-1, *[1] * (value.ndim - 1))
    return torch.where(known.view(shape), value, torch.zeros_like(value))
