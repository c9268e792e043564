"""What classifiers of label sequences have in common, recurrent ones above all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from labelmem.errors import ConfigError, InputError
from labelmem.models.cells import gru_cell, lstm_cell
from labelmem.models.embedding import TokenEmbedding
from labelmem.models.sizes import check_dropout, check_sizes

__all__ = ["GRUModel", "LSTMModel", "RecurrentModel", "SequenceModel", "State"]

State: TypeAlias = Tensor | tuple[Tensor, ...]
"""A recurrent state; in every tensor the first dimension counts the streams."""


class SequenceModel(nn.Module, ABC):
    """Predicts the next label of a stream from the labels so far.

    ``model(x, state)`` makes one step for n streams at once: x (n,) are their latest labels, or
    ``start_token`` where a stream has none yet. ``forward_sequence`` goes through whole sequences
    faster and gives the same numbers.
    """

    labels: int
    """Number of labels."""
    dim: int
    """Size of h, what the head gets."""
    embedding: TokenEmbedding
    """The labels' input vectors."""
    head: nn.Linear
    """The output layer; the last linear layer of the model, so that an adapter finds it."""

    @property
    def start_token(self) -> int:
        """The token to feed before the first label of a stream is known."""
        return self.labels

    @abstractmethod
    def initial_state(self, n: int) -> State:
        """State of n streams that have seen nothing."""

    @abstractmethod
    def _step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Give h (n, dim) and the new state after the tokens x (n,)."""

    @abstractmethod
    def _sequence(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Give h (n, T, dim) after every one of the tokens, and the state after the last."""

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits (n, labels) and new state after the tokens x (n,)."""
        if x.dim() != 1:
            raise InputError(
                f"x has shape {tuple(x.shape)}; expected one token for each stream, (n,). "
                "For whole sequences use forward_sequence"
            )
        h, state = self._step(x, state)
        return self.head(h), state

    def forward_sequence(self, tokens: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """What the head gets after every token: h (n, T, dim), and the state after the last.

        Parameters
        ----------
        tokens
            (n, T) inputs, the first usually ``start_token``. Shorter sequences may be padded at the
            end with any label: nothing before is affected, but their final state is.
        state
            Where to go on; the initial state if None.
        """
        if tokens.dim() != 2 or tokens.shape[1] == 0:
            raise InputError(f"tokens has shape {tuple(tokens.shape)}; expected (n, T), T > 0")
        return self._sequence(tokens, self.initial_state(len(tokens)) if state is None else state)

    def start_from(self, sequences: Sequence[Tensor]) -> None:
        """Take from the training sequences what need not be learned; by default nothing.

        ``fit_sequences`` calls it before the first epoch.
        """

    def decayed(self, weight: float, bias: float) -> list[tuple[list[nn.Parameter], float]]:
        """All parameters in groups, and how much those of a group decay in training.

        By default everything decays alike, as long as nothing else is asked for the bias.
        """
        if bias:
            raise ConfigError(
                f"bias_decay is {bias}; all weights of a {type(self).__name__}, its biases "
                "included, decay by weight_decay: leave bias_decay at 0"
            )
        return [(list(self.parameters()), weight)]


class RecurrentModel(SequenceModel):
    """A sequence model around one of torch's recurrent modules.

    Single steps are plain tensor operations, whole sequences use the fused kernels of torch.

    Parameters
    ----------
    labels
        Number of labels L; tokens are 0 .. L-1, and L for the start of a stream.
    dim
        Size of h, which the head and the memory see.
    embedding
        Size of the labels' input vectors; ``dim`` if None.
    dropout
        Share of the embedding, of the values between layers and of h that is dropped in training.
    layers
        Stacked layers; the head sees the last.
    tied
        Whether the head's weight is the labels' input vectors: fewer parameters, often better on
        language. Needs ``embedding`` equal to ``dim``.
    """

    module: ClassVar[Callable[..., nn.RNNBase]]
    """The fused recurrent module."""
    parts: ClassVar[int]
    """How many tensors its state has."""

    def __init__(
        self,
        labels: int,
        dim: int = 128,
        embedding: int | None = None,
        dropout: float = 0.0,
        layers: int = 1,
        tied: bool = False,
    ) -> None:
        super().__init__()
        embedding = dim if embedding is None else embedding
        check_sizes(labels=labels, dim=dim, embedding=embedding, layers=layers)
        check_dropout(dropout)
        if tied and embedding != dim:
            raise ConfigError(
                f"embedding is {embedding}, dim is {dim}; "
                "tied vectors need both to be equal (leave embedding out)"
            )
        between = dropout if layers > 1 else 0.0  # torch warns of a dropout without effect
        rnn = type(self).module(embedding, dim, layers, batch_first=True, dropout=between)
        self.labels = labels
        self.dim = dim
        # Without the scale a tied model would start with too large a loss or with inputs near 0; on
        # check-ins both made it learn more slowly or stop at a worse place.
        self.embedding = TokenEmbedding(labels, embedding, self.dim**0.5 if tied else 1.0)
        self.drop = nn.Dropout(dropout)
        self.rnn = rnn
        self.head = nn.Linear(self.dim, labels)
        if tied:
            self.head.weight = self.embedding.weight

    def initial_state(self, n: int) -> State:
        """State of n streams that have seen nothing; every tensor is (n, layers, dim)."""
        shape = n, self.rnn.num_layers, self.dim
        return _join(tuple(self.head.weight.new_zeros(shape) for _ in range(self.parts)))

    @abstractmethod
    def _cell(
        self, x: Tensor, state: tuple[Tensor, ...], weights: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """One step of one layer; the first of the new state's tensors is the output."""

    def _step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        h: Tensor = self.embedding(x)
        steps = []
        for layer, weights in enumerate(self.rnn.all_weights):
            old = tuple(part[:, layer] for part in _parts(state))
            steps.append(self._cell(self.drop(h), old, weights))
            h = steps[-1][0]
        new = tuple(
            torch.stack(part, 1) if len(part) > 1 else part[0][:, None]  # which copies nothing
            for part in zip(*steps, strict=True)
        )
        return self.drop(h), _join(new)

    def _sequence(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        h, new = self.rnn(self.drop(self.embedding(tokens)), _layers_and_streams_swapped(state))
        return self.drop(h), _layers_and_streams_swapped(new)


class GRUModel(RecurrentModel):
    """Predicts the next label of a stream by a GRU; its state is one tensor (n, layers, dim).

    Parameters are those of :class:`RecurrentModel`.

    Examples
    --------
    >>> import torch
    >>> model = GRUModel(labels=10, dim=8).eval()
    >>> state = model.initial_state(2)
    >>> logits, state = model(torch.tensor([model.start_token, model.start_token]), state)
    >>> logits.shape, state.shape
    (torch.Size([2, 10]), torch.Size([2, 1, 8]))
    >>> h, state = model.forward_sequence(torch.tensor([[10, 3, 4], [10, 7, 7]]))
    >>> model.head(h).shape
    torch.Size([2, 3, 10])
    """

    module = nn.GRU
    parts = 1

    def _cell(
        self, x: Tensor, state: tuple[Tensor, ...], weights: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        return (gru_cell(x, *state, *weights),)


class LSTMModel(RecurrentModel):
    """Predicts the next label of a stream by an LSTM; its state is a pair, both (n, layers, dim).

    Parameters are those of :class:`RecurrentModel`.

    Examples
    --------
    >>> import torch
    >>> model = LSTMModel(labels=10, dim=8).eval()
    >>> state = model.initial_state(2)
    >>> logits, (h, c) = model(torch.tensor([model.start_token, model.start_token]), state)
    >>> logits.shape, h.shape
    (torch.Size([2, 10]), torch.Size([2, 1, 8]))
    >>> h, state = model.forward_sequence(torch.tensor([[10, 3, 4], [10, 7, 7]]))
    >>> model.head(h).shape
    torch.Size([2, 3, 10])
    """

    module = nn.LSTM
    parts = 2

    def _cell(
        self, x: Tensor, state: tuple[Tensor, ...], weights: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        return lstm_cell(x, *state, *weights)


def _parts(state: State) -> tuple[Tensor, ...]:
    return (state,) if isinstance(state, Tensor) else state


def _join(parts: tuple[Tensor, ...]) -> State:
    return parts[0] if len(parts) == 1 else parts


def _layers_and_streams_swapped(state: State) -> State:
    """Between (n, layers, dim), ours, and (layers, n, dim), which the kernels of torch want."""
    return _join(tuple(part.transpose(0, 1).contiguous() for part in _parts(state)))
