from __future__ import annotations

import pytest
import torch
from toys import Recurrent, make_adapter, random_stream

from labelmem import Adapter
from labelmem.errors import CorruptFileError
from labelmem.logs.packing import pack, unpack


def test_states_come_back_bit_for_bit(kind: str) -> None:
    adapter = make_adapter(kind)
    streams = [random_stream(seed, 9, [0, 1, 2, 3], new=[4, 5]) for seed in range(3)]
    state, width = adapter.initial_state(3), 6
    for t in range(6):
        x = torch.stack([x[t] for x, _ in streams])
        y = torch.tensor([ys[t] for _, ys in streams])
        mask = torch.tensor([True, t < 4, t < 1])  # unequal numbers of cells
        adapter.commit(state, adapter.advance(state, x, width), y, mask)
    again = unpack(adapter, pack(adapter, state))
    one, other = adapter.tensors(state), adapter.tensors(again)
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name
    x = torch.stack([x[6] for x, _ in streams])
    steps = [adapter.advance(s, x, width).probs for s in (state, again)]
    assert torch.equal(*steps)


def test_a_new_stream_beside_an_old_one_is_new() -> None:
    adapter = make_adapter("recurrent-dense")
    x = torch.ones(1, 3)
    state = adapter.initial_state(1)
    adapter.commit(state, adapter.advance(state, x, 4), torch.tensor([2]), None)
    both = unpack(adapter, [None, *pack(adapter, state)])
    probs = adapter.advance(both, x.expand(2, -1), 4).probs
    alone = adapter.advance(adapter.initial_state(1), x, 4).probs
    assert torch.allclose(probs[:1], alone, atol=1e-6)
    assert not torch.allclose(probs[1:], alone, atol=1e-6)


def test_the_default_form_is_packed_as_well() -> None:
    """Each stream's matrices are its own, and a recurrent model's state goes with them."""
    adapter = Adapter(Recurrent())
    streams = [random_stream(seed, 9, [0, 1, 2, 3], new=[4, 5]) for seed in range(3)]
    state, width = adapter.initial_state(3), 6
    for t in range(6):
        x = torch.stack([x[t] for x, _ in streams])
        y = torch.tensor([ys[t] for _, ys in streams])
        adapter.commit(
            state, adapter.advance(state, x, width), y, torch.tensor([True, t < 4, t < 1])
        )
    a, b, c = pack(adapter, state)
    again = unpack(adapter, [c, None, a, b])
    x = torch.stack([streams[i][0][6] for i in (2, 0, 0, 1)])
    probs = adapter.advance(again, x, width).probs
    live = adapter.advance(state, torch.stack([x[6] for x, _ in streams]), width).probs
    torch.testing.assert_close(probs[[2, 3, 0]], live)
    new = adapter.advance(adapter.initial_state(1), x[1:2], width).probs
    torch.testing.assert_close(probs[1:2], new)
    assert unpack(adapter, [None, None]).streams == 2


def test_nonsense_is_refused() -> None:
    for adapter in (make_adapter("fixed"), Adapter(Recurrent())):
        with pytest.raises(CorruptFileError, match="cannot be read"):
            unpack(adapter, [b"nonsense" * 4])
