"""A dynamic neural Turing machine in the form that the paper compares itself with."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, softplus

from labelmem.models.cells import lstm_cell
from labelmem.models.embedding import TokenEmbedding
from labelmem.models.sizes import check_dropout, check_sizes

__all__ = ["DynamicNTM", "NTMState", "read", "written"]

_KEEP = 0.1  # share of the old in the running mean of the scores, D-NTM's own value


class NTMState(NamedTuple):
    """All that a stream carries on, streams first."""

    h: Tensor
    c: Tensor
    """(n, dim) both: the controller's own."""
    content: Tensor
    """(n, cells, content): what was written."""
    weights: Tensor
    """(n, cells): where the last read was; zeros before the first."""
    seen: Tensor
    """(n, address + content): what it brought."""
    usage: Tensor
    """(n, cells): running mean of the scores, by which cells that were just read are avoided."""


def written(content: Tensor, weights: Tensor, erase: Tensor, new: Tensor) -> Tensor:
    """Content (n, N, d) after erasing (n, d) and adding (n, d), as much as a cell has weight.

    Examples
    --------
    >>> old, one = torch.ones(1, 2, 1), torch.ones(1, 1)
    >>> written(old, torch.tensor([[1.0, 0.0]]), erase=one, new=5 * one)[0, :, 0]
    tensor([5., 1.])
    """
    where = weights[:, :, None]
    return content * (1 - where * erase[:, None]) + where * new[:, None]


def read(
    memory: Tensor, key: Tensor, sharpness: Tensor, avoid: Tensor, usage: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Soft attention over cells: weights (n, N), what they bring (n, d), and the new usage (n, N).

    Parameters
    ----------
    memory
        (n, N, d) address and content of each cell.
    key
        (n, d) what is looked for, by cosine.
    sharpness, avoid
        (n, 1) how much a likeness counts, and how much it counts against a cell that its recent
        scores were high.
    """
    score = sharpness * cosine_similarity(key[:, None], memory, dim=2)
    weights = torch.softmax(score - avoid * usage, dim=1)
    brought = torch.einsum("nm,nmd->nd", weights, memory)
    return weights, brought, _KEEP * usage + (1 - _KEEP) * score


class DynamicNTM(nn.Module):
    """Predicts the next label with a controller that writes to cells and reads from them.

    A cell has an address, trained and the same for all streams, and a content, written by the
    stream and empty at its start. With the latest label y(t-1) a step (1) writes new content, made
    from what the last read brought and from y(t-1), to where that read was; (2) moves the
    controller, an LSTM, on with y(t-1) and what the last read brought; (3) reads by likeness of a
    key, made by the controller, to address and content; (4) predicts from both.

    Parameters
    ----------
    labels
        Number of labels L; tokens are 0 .. L-1, and L for the start of a stream.
    dim
        Size of the controller's h.
    cells, content, address
        Number of cells, and the sizes of their two parts.
    dropout
        Share of the labels' vectors and of the output layer's input that is dropped in training.
    tied
        Whether the output layer's weight is the labels' vectors, after a layer that brings its
        input to their length.

    Examples
    --------
    >>> network = DynamicNTM(labels=10, dim=8, cells=6, content=4, address=3)
    >>> logits, state = network(torch.tensor([10, 10]), network.initial_state(2))
    >>> logits.shape, state.content.shape
    (torch.Size([2, 10]), torch.Size([2, 6, 4]))

    References
    ----------
    Gulcehre et al. (2016), Dynamic Neural Turing Machine with Soft and Hard Addressing Schemes:
    addresses, continuous addressing, least-recently-used scores. Writing to where it last read, and
    new content from what was read and y(t-1), are the changes that "Labeled Memory Networks for
    Online Model Adaptation" made for its comparison.
    """

    def __init__(
        self,
        labels: int,
        dim: int = 50,
        cells: int = 128,
        content: int = 32,
        address: int = 16,
        dropout: float = 0.0,
        tied: bool = False,
    ) -> None:
        super().__init__()
        check_sizes(labels=labels, dim=dim, cells=cells, content=content, address=address)
        check_dropout(dropout)
        self.labels, self.dim, self.cells, self.content = labels, dim, cells, content
        self.embedding = TokenEmbedding(labels, dim, dim**0.5 if tied else 1.0)
        self.address = nn.Parameter(torch.randn(cells, address))
        self.controller = nn.LSTMCell(dim + address + content, dim)
        self.key = nn.Linear(dim, address + content)
        self.focus = nn.Linear(dim, 2)  # sharpness, and how much to avoid what was just read
        self.erase = nn.Linear(dim + content, content)
        self.share = nn.Linear(dim + content, 1)  # of y(t-1) in new content
        self.old_content = nn.Linear(content, content)
        self.new_content = nn.Linear(dim, content, bias=False)
        wide = dim + address + content
        self.join = nn.Linear(wide, dim) if tied else nn.Identity()
        self.head = nn.Linear(dim if tied else wide, labels)
        if tied:
            self.head.weight = self.embedding.weight
        self.drop = nn.Dropout(dropout)

    def initial_state(self, n: int) -> NTMState:
        """State of n streams that have seen nothing: empty contents, no read yet."""
        zeros, cells = self.address.new_zeros, self.cells
        h, seen = zeros(n, self.dim), zeros(n, self.address.shape[1] + self.content)
        content = zeros(n, cells, self.content)
        return NTMState(h, h.clone(), content, zeros(n, cells), seen, zeros(n, cells))

    def forward(self, tokens: Tensor, state: NTMState) -> tuple[Tensor, NTMState]:
        """Logits (n, labels) and new state after the tokens (n,)."""
        features, state = self.features(tokens, state)
        return self.head(features), state

    def features(self, tokens: Tensor, state: NTMState) -> tuple[Tensor, NTMState]:
        """What the head sees, (n, its width), and the new state."""
        x = self.drop(self.embedding(tokens))
        content = self._write(x, state)
        cell = self.controller
        h, c = lstm_cell(
            *(torch.cat([x, state.seen], 1), state.h, state.c),
            *(cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh),
        )
        memory = torch.cat([self.address.expand(len(x), -1, -1), content], 2)
        sharpness, avoid = self.focus(h).split(1, dim=1)
        weights, seen, usage = read(
            memory, self.key(h), 1 + softplus(sharpness), torch.sigmoid(avoid), state.usage
        )
        features = self.drop(self.join(torch.cat([h, seen], 1)))
        return features, NTMState(h, c, content, weights, seen, usage)

    def _write(self, x: Tensor, state: NTMState) -> Tensor:
        """Content after y(t-1) has been written to where the last read was."""
        old = state.seen[:, -self.content :]
        both = torch.cat([x, old], 1)
        share = torch.sigmoid(self.share(both))
        new = torch.relu(self.old_content(old) + share * self.new_content(x))
        return written(state.content, state.weights, torch.sigmoid(self.erase(both)), new)
