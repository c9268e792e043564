"""The D-NTM copies what its controller alone cannot hold."""

from __future__ import annotations

import torch
from labelmem_paper.methods.dntm import DNTM, DNTMOptions
from labelmem_paper.methods.dynamic_ntm import DynamicNTM, NTMState
from torch import Tensor

from labelmem.evaluation import Watch, evaluate

WORD, SYMBOLS = 3, 6


def words(n: int, seed: int) -> list[tuple[None, Tensor]]:
    """A random word, a mark, and the word again."""
    generator = torch.Generator().manual_seed(seed)
    word = torch.randint(SYMBOLS, (n, WORD), generator=generator)
    mark = torch.full((n, 1), SYMBOLS)
    return [(None, row) for row in torch.cat([word, mark, word], 1)]


class Forgetful(DynamicNTM):
    """The same network, but no read brings anything."""

    def features(self, tokens: Tensor, state: NTMState) -> tuple[Tensor, NTMState]:
        _, after = super().features(tokens, state)
        after = after._replace(seen=torch.zeros_like(after.seen))
        return torch.cat([after.h, after.seen], 1), after


class WithoutMemory(DNTM):
    def made_network(self) -> DynamicNTM:
        o = self.options
        return Forgetful(len(self.known), o.dim, o.cells, o.content, o.address)


def loss_of_the_copy(cls: type[DNTM]) -> float:
    method = cls(SYMBOLS + 1, DNTMOptions(dim=6, cells=4, content=12, address=6))
    method.fit(words(500, 0), validation=words(50, 2), epochs=8, lr=0.02, patience=8)
    costs: list[Tensor] = []

    def watch(step: Watch) -> None:
        if step.t > WORD:
            costs.append(-step.probs.gather(1, step.y[:, None]).log())

    evaluate(method, words(100, 1), 100, watch)
    return float(torch.stack(costs).mean())


def test_it_copies_and_without_its_memory_it_does_not() -> None:
    assert loss_of_the_copy(DNTM) < 0.3  # chance is log 6 = 1.8
    assert loss_of_the_copy(WithoutMemory) > 0.9


def test_training_is_repeatable() -> None:
    networks = []
    for _ in range(2):
        method = DNTM(SYMBOLS + 1, DNTMOptions(dim=4, cells=3, dropout=0.2))
        method.fit(words(20, 0), epochs=2)
        networks.append(method.network.state_dict())
    for name, tensor in networks[0].items():
        assert torch.equal(tensor, networks[1][name])
