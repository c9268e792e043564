"""Kaiser's memory against loops written from its paper."""

from __future__ import annotations

import math

import pytest
import torch
from labelmem_paper.methods.kaiser_memory import KaiserMemory
from torch import Tensor

from labelmem.errors import ConfigError

Vector = list[float]


def unit(x: Vector) -> Vector:
    size = math.sqrt(sum(a * a for a in x))
    return [a / size for a in x] if size else list(x)


def dot(a: Vector, b: Vector) -> float:
    return sum(p * q for p, q in zip(a, b, strict=True))


class Slow:
    """Section 2 of the paper, one cell after another; a cell is [key, value, age] or nothing."""

    def __init__(self, cells: int, noise: float) -> None:
        self.key: list[Vector | None] = [None] * cells
        self.value = [-1] * cells
        self.age = [0] * cells
        self.noise = noise

    def step(self, q: Vector, y: int, random: Vector) -> int:
        q = unit(q)
        nearest, best = None, -math.inf
        for i, key in enumerate(self.key):
            if key is not None and dot(q, key) > best:
                nearest, best = i, dot(q, key)
        answer = -1 if nearest is None else self.value[nearest]
        if nearest is not None and answer == y:
            key = self.key[nearest]
            assert key is not None
            written = nearest
            self.key[nearest] = unit([a + b for a, b in zip(key, q, strict=True)])
        else:
            aged = [age + self.noise * r for age, r in zip(self.age, random, strict=True)]
            written = aged.index(max(aged))
            self.key[written], self.value[written] = q, y
        for i in range(len(self.age)):
            self.age[i] = 0 if i == written else self.age[i] + 1
        return answer


def stream(seed: int, steps: int, labels: int, dim: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(labels, (steps,), generator=generator)
    centres = torch.randn(labels, dim, generator=generator, dtype=torch.float64)
    noise = torch.randn(steps, dim, generator=generator, dtype=torch.float64)
    return centres[y] + 0.5 * noise, y


@pytest.mark.parametrize("cells", [3, 10, 400])
@pytest.mark.parametrize("noise", [0.0, 8.0])
def test_it_does_what_the_paper_says(cells: int, noise: float) -> None:
    h, y = stream(1, 600, labels=20)  # more steps than fit in a chunk
    memory = KaiserMemory(cells, 4, age_noise=noise).double()
    answers = memory.replay(h, y, torch.Generator().manual_seed(5))
    generator, slow = torch.Generator().manual_seed(5), Slow(cells, noise)
    expected = []
    for q, label in zip(h.tolist(), y.tolist(), strict=True):
        before = generator.get_state()
        random = torch.rand(cells, generator=generator).tolist()
        expected.append(slow.step(q, label, random))
        if expected[-1] == label:  # a hit asks for no random numbers
            generator.set_state(before)
    assert answers.tolist() == expected
    assert memory.values.tolist() == slow.value and memory.ages.tolist() == slow.age
    for key, other in zip(memory.keys.tolist(), slow.key, strict=True):
        assert key == pytest.approx(other or [0.0] * 4)


def test_a_batch_of_one_is_a_step() -> None:
    h, y = stream(2, 60, labels=6)
    one, other = (KaiserMemory(9, 4).double() for _ in range(2))
    one.replay(h, y, torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(0)
    for t in range(len(y)):
        state = generator.get_state()
        near = other.similarities(torch.nn.functional.normalize(h[t : t + 1], dim=1))
        hit = bool(torch.isfinite(near).any()) and int(other.values[near.argmax()]) == int(y[t])
        other.write(h[t : t + 1], y[t : t + 1], generator)
        if hit:
            generator.set_state(state)
    torch.testing.assert_close(one.keys, other.keys)
    assert torch.equal(one.values, other.values) and torch.equal(one.ages, other.ages)


def test_misses_of_a_batch_take_different_cells() -> None:
    memory = KaiserMemory(5, 2)
    memory.write(torch.eye(2).repeat(2, 1), torch.arange(4), torch.Generator())
    assert sorted(memory.values.tolist()) == [-1, 0, 1, 2, 3]


def test_the_loss_is_the_triplets() -> None:
    h, y = stream(3, 40, labels=5)
    memory = KaiserMemory(12, 4, margin=0.3).double()
    memory.replay(h[:30], y[:30], torch.Generator())
    queries = h[30:].clone().requires_grad_()
    found = memory.loss(queries, y[30:])
    terms = []
    for q, label in zip(h[30:].tolist(), y[30:].tolist(), strict=True):
        near: dict[bool, float] = {}
        for key, value in zip(memory.keys.tolist(), memory.values.tolist(), strict=True):
            if value >= 0:
                right = value == label
                near[right] = max(near.get(right, -math.inf), dot(unit(q), key))
        if len(near) == 2:
            terms.append(max(0.0, near[False] - near[True] + 0.3))
    assert float(found.detach()) == pytest.approx(sum(terms) / len(terms))
    memory.write(h[:3], y[:3], torch.Generator())  # must not disturb the gradient
    found.backward()
    assert queries.grad is not None and bool(torch.isfinite(queries.grad).all())


def test_an_empty_memory_teaches_nothing() -> None:
    memory = KaiserMemory(3, 2)
    h = torch.ones(2, 2, requires_grad=True)
    memory.loss(h, torch.tensor([0, 1])).backward()
    assert h.grad is not None and not bool(h.grad.any())
    memory.write(torch.eye(2), torch.tensor([0, 1]), torch.Generator())
    memory.reset()
    assert memory.replay(torch.ones(1, 2), torch.tensor([0]), torch.Generator()).tolist() == [-1]


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="cells is 0"):
        KaiserMemory(0, 2)
