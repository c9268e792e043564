"""An LSTM whose streams each have weights of their own, one gradient step from label to label."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, one_hot, pad

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
        if not self.rows:
            return 0.0
        same = torch.stack(self.tokens, 1) == tokens[:, None]
        rows = torch.stack(self.rows, 1)
        return (same[:, None].to(rows.dtype) @ rows)[:, 0]

    def factors(self) -> tuple[Tensor, Tensor] | None:
        """(n, T, L) and (n, T, dim + 1); None where no step was made."""
        return (torch.stack(self.left, 1), torch.stack(self.right, 1)) if self.left else None


class Gates(NamedTuple):
    """An LSTM's gates (n, dim) after their sigmoids and the tanh."""

    write: Tensor
    keep: Tensor
    new: Tensor
    show: Tensor

    @staticmethod
    def of(values: Tensor) -> Gates:
        """From what enters the gates, (n, 4 dim)."""
        write, keep, new, show = values.chunk(4, dim=1)
        return Gates(write.sigmoid(), keep.sigmoid(), new.tanh(), show.sigmoid())

    def slopes(self, h_slope: Tensor, c: Tensor, before: Tensor) -> Tensor:
        """Slopes (n, 4 dim) of what enters the gates, from those of h.

        c and the c ``before`` are (n, dim); the gradient stops at this step's state.
        """
        shown = c.tanh()
        c_slope = h_slope * self.show * (1 - shown.square())
        return torch.cat(
            [
                c_slope * self.new * self.write * (1 - self.write),
                c_slope * before * self.keep * (1 - self.keep),
                c_slope * self.write * (1 - self.new.square()),
                h_slope * shown * self.show * (1 - self.show),
            ],
            dim=1,
        )


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
        h, c, _ = self._moved_on(x, state)
        return self._logits(h, state["head"], None), {**state, "h": h, "c": c}

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

        ``rows`` and ``head`` of the state are as before: the step in them is put on the trail. The
        slopes of the step are written out, so that they are differentiable as all else is.
        """
        known, label = y >= 0, y.clamp(min=0)
        x = self._vectors(tokens, state, trail)
        h, c, gates = self._moved_on(x, state)
        factors = trail.factors()
        logits = self._logits(h, state["head"], factors)
        loss = torch.logsumexp(logits, 1) - logits.gather(1, label[:, None])[:, 0]
        error = _where(known, torch.softmax(logits, dim=1) - one_hot(label, self.labels))
        into = gates.slopes(self._h_slope(error, state["head"], factors), c, state["c"])
        x_slope = into @ self.cell.weight_ih + _rowwise(into, state["cell"]["weight_ih"])
        seen, before = pad(h, (0, 1), value=1.0), state["h"]
        if first_order:
            x, into, x_slope = x.detach(), into.detach(), x_slope.detach()
            error, seen, before = error.detach(), seen.detach(), before.detach()
        rate = {name: lr * log_rate.exp() for name, log_rate in self.log_rates.items()}
        wide = [rate["head"].expand(self.dim), rate["head_bias"][None]]
        trail.tokens.append(tokens)
        trail.rows.append(-rate["embedding"] * x_slope)
        trail.left.append(-error)
        trail.right.append(seen * torch.cat(wide))
        slope = {
            "weight_ih": into[:, :, None] * x[:, None],
            "weight_hh": into[:, :, None] * before[:, None],
            "bias_ih": into,
            "bias_hh": into,
        }
        cell = {name: state["cell"][name] - rate[name] * slope[name] for name in CELL}
        return _where(known, loss), {**state, "h": h, "c": c, "cell": cell}

    def _vectors(self, tokens: Tensor, state: FastState, trail: Trail) -> Tensor:
        """The vectors (n, dim) of the tokens in their streams."""
        own = state["rows"][torch.arange(len(tokens), device=tokens.device), tokens]
        x: Tensor = self.embedding(tokens) + own + trail.row(tokens)
        return x

    def _moved_on(self, x: Tensor, state: FastState) -> tuple[Tensor, Tensor, Gates]:
        """The LSTM's h and c after the vectors x, and the gates behind them."""
        cell, moved, h = self.cell, state["cell"], state["h"]
        values = linear(x, cell.weight_ih, cell.bias_ih) + linear(h, cell.weight_hh, cell.bias_hh)
        values = values + _rowwise(x, moved["weight_ih"].mT) + _rowwise(h, moved["weight_hh"].mT)
        gates = Gates.of(values + moved["bias_ih"] + moved["bias_hh"])
        c = gates.keep * state["c"] + gates.write * gates.new
        return gates.show * c.tanh(), c, gates

    def _logits(self, h: Tensor, head: Tensor, factors: tuple[Tensor, Tensor] | None) -> Tensor:
        """(n, L): of the shared output layer, what was folded into the stream's, the trail."""
        seen = pad(h, (0, 1), value=1.0)
        logits = linear(h, self.head.weight, self.head.bias) + _rowwise(seen, head)
        if factors is None:
            return logits
        left, right = factors
        return logits + _rowwise(_rowwise(seen, right.mT), left)

    def _h_slope(
        self, error: Tensor, head: Tensor, factors: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        """The slope (n, dim) of h, from that of the logits: the same three parts, backwards."""
        slope = _rowwise(error, head.mT)
        if factors is not None:
            left, right = factors
            slope = slope + _rowwise(_rowwise(error, left.mT), right)
        return error @ self.head.weight + slope[:, : self.dim]


@torch.no_grad()
def fold_(state: FastState, trail: Trail) -> None:
    """Add the trail to ``rows`` and ``head`` of the state, in place."""
    stream = torch.arange(len(state["h"]), device=state["h"].device)
    for tokens, rows in zip(trail.tokens, trail.rows, strict=True):
        state["rows"].index_put_((stream, tokens), rows, accumulate=True)
    left, right = torch.stack(trail.left, 1), torch.stack(trail.right, 2)
    state["head"].baddbmm_(right, left)


def _rowwise(x: Tensor, matrices: Tensor) -> Tensor:
    """Each row of x (n, a) times its own of the matrices (n, a, b).

    As rows, there and back, since matrices times columns take several times as long.
    """
    return (x[:, None] @ matrices)[:, 0]


def _where(known: Tensor, value: Tensor) -> Tensor:
    """The value in the streams that are known, exactly 0 in the others."""
    shape = (-1, *[1] * (value.ndim - 1))
    return torch.where(known.view(shape), value, torch.zeros_like(value))
