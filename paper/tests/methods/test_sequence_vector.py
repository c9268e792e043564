"""The LSTM with a sequence vector against torch's own cell."""

from __future__ import annotations

import pytest
import torch
from labelmem_paper.methods.sequence_vector import SequenceVectorLSTM
from toys import filled


@torch.no_grad()
@pytest.mark.parametrize("tied", [False, True])
def test_the_vector_enters_both_layers(tied: bool) -> None:
    net = filled(SequenceVectorLSTM(labels=5, dim=3, vector=2, tied=tied), seed=0)
    assert (net.head.weight is net.embedding.weight) is tied
    h, c, v = torch.randn(3, 2, 3, generator=torch.Generator().manual_seed(0))
    v = v[:, :2]
    logits, (h2, c2, same) = net(torch.tensor([4, 5]), (h, c, v))
    x = torch.stack([net.embedding.weight[4] * (3**0.5 if tied else 1), net.embedding.start])
    expected = net.cell(torch.cat([x, v], 1), (h, c))
    torch.testing.assert_close((h2, c2), expected)
    torch.testing.assert_close(logits, net.head(h2) + v @ net.vector_head.weight.T)
    assert same is v


def test_it_starts_at_zero() -> None:
    state = SequenceVectorLSTM(labels=5, dim=3, vector=2).initial_state(4)
    assert [tuple(part.shape) for part in state] == [(4, 3), (4, 3), (4, 2)]
    assert not any(bool(part.any()) for part in state)
