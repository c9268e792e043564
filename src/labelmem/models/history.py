"""A model of what a stream shows next, from decayed averages of what it has shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from labelmem.errors import ConfigError
from labelmem.models.cells import gru_cell
from labelmem.models.embedding import TokenEmbedding
from labelmem.models.history_steps import arrays_of, kernel_step
from labelmem.models.output_layer import OutputLayer
from labelmem.models.recurrent import SequenceModel, State
from labelmem.models.sizes import check_dropout, check_sizes

if TYPE_CHECKING:
    from labelmem.engines.numba.encode import HistoryArrays

__all__ = ["HistoryModel", "decayed_sums"]

_SPAN = 128  # steps at a time: the work of a step grows with it, the number of calls shrinks
_SPREAD = 0.1  # of the untrained vectors: small, so that training starts from the bias alone
_UNSEEN = 0.3  # streams that a label is taken to occur in beside those that were counted


def decayed_sums(x: Tensor, decays: Tensor, before: Tensor) -> Tensor:
    """Sums s(t) = decay * s(t-1) + x(t) of all steps at once, (n, T, G, d).

    Parameters
    ----------
    x
        (n, T, d) what is summed.
    decays
        (G,) one factor for each sum; 0 keeps just the latest, 1 everything.
    before
        (n, G, d) the sums before the first step.

    Examples
    --------
    >>> x, before = torch.tensor([[[1.0], [1.0], [4.0]]]), torch.zeros(1, 3, 1)
    >>> decayed_sums(x, torch.tensor([0.0, 0.5, 1.0]), before)[0, :, :, 0]
    tensor([[1.0000, 1.0000, 1.0000],
            [1.0000, 1.5000, 2.0000],
            [4.0000, 4.7500, 6.0000]])
    """
    steps = torch.arange(x.shape[1], device=x.device)
    gaps = steps[:, None] - steps
    within = (decays[:, None, None] ** gaps.clamp(min=0)).masked_fill(gaps < 0, 0.0)
    faded = decays ** (steps[:, None] + 1)
    return torch.einsum("gti,nid->ntgd", within, x) + faded[..., None] * before[:, None]


class HistoryModel(SequenceModel):
    """Predicts what is new to a stream from averages of what it has shown.

    A recurrent network spends most of what it learns on labels that come again, and those are known
    better by a memory. This model looks at the company that labels keep: the vectors e of the
    labels so far are averaged, once for each decay, over anything from the latest label to the
    whole past, and h is a weighted sum of these averages:

    ``a_g(t) = sum_i g^(t-i) e_i / max(1, sum_i g^(t-i)) ^ norm``,  ``h(t) = sum_g M_g a_g(t)``.

    The head's weight is the same vectors, so a label scores high when its vector is near those of
    the past. It is meant to be trained with ``FitOptions(objective="new")`` and a strong
    ``weight_decay``, and used in an ``Adapter(partition=True)``.

    Parameters
    ----------
    labels
        Number of labels L; tokens are 0 .. L-1, and L for the start of a stream, which counts for
        nothing.
    dim
        Size of the labels' vectors and of h.
    decays
        The factors g, from 0 (just the latest label) to 1 (all labels alike).
    norm
        0 leaves sums as they are, 1 makes them averages. In between, a longer past says more.
    gain
        How large the M_g start, all together.
    full
        Whether each M_g is a matrix; otherwise a factor for each entry.
    hidden
        Size of a hidden layer over all averages whose output is added to h; 0 for none.
    recurrent
        Size of a GRU over the labels whose output is added to h; 0 for none.
    dropout
        Share of the vectors' entries, and of the values inside ``hidden`` and ``recurrent``, that
        is dropped in training.
    token_dropout
        Share of the past labels that are left out entirely in training.
    output_dropout
        Share of h that is dropped in training.
    prior
        How many labels that say nothing are added to every past: with n labels so far the averages
        are multiplied by n / (n + prior), so that little is made of few labels. n is the weight of
        the longest average. On Foursquare Tokyo 1 lowers the loss of new labels by 0.03 nats.

    Examples
    --------
    >>> model = HistoryModel(labels=10, dim=8, decays=(0.0, 1.0)).eval()
    >>> logits, (sums, weights) = model(torch.tensor([3, 10]), model.initial_state(2))
    >>> logits.shape, sums.shape
    (torch.Size([2, 10]), torch.Size([2, 2, 8]))
    >>> weights  # the second stream has only started
    tensor([[1., 1.],
            [0., 0.]])
    >>> h, state = model.forward_sequence(torch.tensor([[10, 3, 4], [10, 7, 7]]))
    >>> model.head(h).shape
    torch.Size([2, 3, 10])
    """

    decays: Tensor

    def __init__(
        self,
        labels: int,
        dim: int = 64,
        decays: Sequence[float] = (0.0, 0.7, 0.95, 1.0),
        norm: float = 0.75,
        gain: float = 2.0,
        full: bool = False,
        hidden: int = 0,
        recurrent: int = 0,
        dropout: float = 0.5,
        token_dropout: float = 0.2,
        output_dropout: float = 0.0,
        prior: float = 0.0,
    ) -> None:
        super().__init__()
        check_sizes(labels=labels, dim=dim)
        check_sizes(0, hidden=hidden, recurrent=recurrent)
        check_dropout(dropout)
        check_dropout(token_dropout, "token_dropout")
        check_dropout(output_dropout, "output_dropout")
        if not decays or not all(0 <= decay <= 1 for decay in decays):
            raise ConfigError(
                f"decays is {tuple(decays)}; expected numbers in [0, 1], at least one"
            )
        if not 0 <= norm <= 1 or not 0 <= prior < math.inf or not 0 < gain < math.inf:
            raise ConfigError(
                f"norm is {norm}, prior is {prior}, gain is {gain}; "
                "expected numbers in [0, 1], from 0, and above 0"
            )
        self.labels, self.dim, self.token_dropout = labels, dim, token_dropout
        self.norm, self.prior = norm, prior
        self.register_buffer("decays", torch.tensor(decays, dtype=torch.float32), persistent=False)
        self.embedding = TokenEmbedding(labels, dim, learn_start=False)
        nn.init.normal_(self.embedding.weight, std=_SPREAD)
        self.drop = nn.Dropout(dropout)
        one = torch.eye(dim) if full else torch.ones(dim)
        self.mix = nn.Parameter(gain / len(decays) ** 0.5 * torch.stack([one] * len(decays)))
        self.hidden = _hidden_layer(len(decays) * dim, hidden, dim, dropout) if hidden else None
        self.rnn = nn.GRU(dim, recurrent, batch_first=True) if recurrent else None
        self.from_rnn = nn.Linear(recurrent, dim) if recurrent else None
        self.drop_h = nn.Dropout(output_dropout)
        self.head = OutputLayer(dim, labels)
        self.head.weight = self.embedding.weight

    def initial_state(self, n: int) -> tuple[Tensor, ...]:
        """Sums (n, G, dim) and their weights (n, G), and the GRU's state where there is one."""
        zeros, sums = self.head.weight.new_zeros, len(self.decays)
        state = (zeros(n, sums, self.dim), zeros(n, sums))
        return state if self.rnn is None else (*state, zeros(n, self.rnn.hidden_size))

    def start_from(self, sequences: Sequence[Tensor]) -> None:
        """Let the bias say in how many of the streams each label occurs, as log-probabilities.

        Not how often: what one stream repeats many times is no more likely to be new to another.
        """
        once = torch.cat([torch.unique(sequence) for sequence in sequences])
        streams = once.bincount(minlength=self.labels).to(self.head.bias) + _UNSEEN
        with torch.no_grad():
            self.head.bias.copy_((streams / streams.sum()).log())

    def decayed(self, weight: float, bias: float) -> list[tuple[list[nn.Parameter], float]]:
        """The labels' vectors decay by ``weight``, the head's bias by ``bias``, the rest not."""
        apart = {"embedding.weight", "head.bias"}
        rest = [p for name, p in self.named_parameters() if name not in apart]
        return [([self.embedding.weight], weight), ([self.head.bias], bias), (rest, 0.0)]

    def for_kernels(self) -> HistoryArrays | None:
        """All that kernels need to take one stream's steps on a CPU, if they can."""
        return arrays_of(self) if type(self) is HistoryModel else None

    def _step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        assert isinstance(state, tuple)
        # What a subclass does in other ways is known to itself alone.
        short = kernel_step(self, x, state) if type(self) is HistoryModel else None
        if short is not None:
            return short
        sums, weights, *rnn = state
        e, counts = self._inputs(x)
        sums = self.decays[:, None] * sums + e[:, None]
        weights = self.decays * weights + counts[:, None]
        if self.rnn is None:
            return self._h(sums, weights), (sums, weights)
        now = gru_cell(e, *rnn, *self.rnn.all_weights[0])
        return self._h(sums, weights, now), (sums, weights, now)

    def _sequence(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        sums, weights, *rnn = state
        e, counts = self._inputs(tokens)
        # Vectors and their weights are summed alike, so a weight travels as one more entry.
        before, parts = torch.cat([sums, weights[..., None]], -1), []
        for x in torch.split(torch.cat([e, counts[..., None]], -1), _SPAN, 1):
            parts.append(decayed_sums(x, self.decays, before))
            before = parts[-1][:, -1]
        sums, weights = _apart(torch.cat(parts, 1))
        # Copied, or the state would keep the sums of all the last steps alive.
        last = tuple(part.contiguous() for part in _apart(before))
        if self.rnn is None:
            return self._h(sums, weights), last
        outputs, now = self.rnn(e, rnn[0][None].contiguous())
        return self._h(sums, weights, outputs), (*last, now[0])

    def _inputs(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors (..., dim) of the tokens (...), and 1 for those that count, 0 for others."""
        counts = tokens != self.labels
        if self.training and self.token_dropout:
            kept = torch.rand(tokens.shape, device=tokens.device) >= self.token_dropout
            counts = counts & kept
        weights = counts.to(self.head.weight.dtype)
        return self.drop(self.embedding(tokens)) * weights[..., None], weights

    def _h(self, sums: Tensor, weights: Tensor, recurrent: Tensor | None = None) -> Tensor:
        averages = sums / weights.clamp(min=1.0)[..., None] ** self.norm
        if self.prior:
            n = weights.amax(-1)[..., None, None]
            averages = averages * (n / (n + self.prior))
        if self.mix.dim() == 2:
            h = (averages * self.mix).sum(-2)
        else:
            h = torch.einsum("...gd,gde->...e", averages, self.mix)
        if self.hidden is not None:
            h = h + self.hidden(averages.flatten(-2))
        if self.from_rnn is not None and recurrent is not None:
            h = h + self.from_rnn(self.drop(recurrent))
        dropped: Tensor = self.drop_h(h)
        return dropped


def _hidden_layer(inputs: int, hidden: int, outputs: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, outputs)
    )


def _apart(together: Tensor) -> tuple[Tensor, Tensor]:
    """The sums of vectors (..., dim), and the weights that are their last entry (...)."""
    return together[..., :-1], together[..., -1]
