"""The vectorised equations against the loops of the oracle, one stream and one label at a time."""

from __future__ import annotations

import math
from typing import Any

import oracle.memory as loops
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracle.lmn import mix as slow_mix
from slow import softmax
from torch import Tensor

from labelmem import functional as F

LAM, DELTA = 3.0, 0.5
# Three streams of up to five positions: labels a a b a, then b alone, then nothing at all.
GROUP = torch.tensor([[0, 0, 2, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
ALIVE = torch.tensor([[1, 1, 1, 1, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]).bool()
LEADS = torch.tensor([[1, 0, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]).bool()
CELLS = {(0, "a"): [0, 1, 3], (0, "b"): [2], (1, "b"): [0]}  # positions of a stream's label


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def assert_near(seen: Tensor, expected: Any) -> None:
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(seen.double(), expected, rtol=1e-12, atol=1e-12)


def cells() -> tuple[Tensor, Tensor, Tensor]:
    """H, v and alpha; the padding holds rubbish."""
    v = random(3, 5, 4, seed=1)
    v[0, 1] = 0  # a zero vector that is a cell
    alpha = random(3, 5, seed=2).exp()
    alpha[~ALIVE] = math.nan
    v[~ALIVE] = 1e30
    return random(3, 4), v, alpha


def slow_memory(n: int) -> loops.OracleMemory:
    _, v, alpha = cells()
    memory = loops.OracleMemory(loops.OracleConfig(lam=LAM, delta=DELTA))
    for (stream, label), positions in CELLS.items():
        if stream == n:
            memory.cells += [
                loops.Cell(label, v[n, k].tolist(), float(alpha[n, k]), 0) for k in positions
            ]
    return memory


def test_model_score_is_a_softmax_that_cannot_overflow() -> None:
    logits = torch.tensor([[1e4, 1e4 - 1.0, 0.0], [1.0, 2.0, 3.0]], dtype=torch.float64)
    assert_near(F.model_score(logits), [softmax(row) for row in logits.tolist()])


def test_normalise_keeps_zero_and_tiny_vectors() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1e-100, 0.0]], dtype=torch.float64)
    assert_near(F.normalise(x), [[0.6, 0.8], [0.0, 0.0], [1.0, 0.0]])


def test_cosine_is_the_slow_one() -> None:
    h, v = random(2, 4), random(2, 3, 4, seed=1)
    h[1] = 0
    v[0, 2] = 0
    expected = [[loops.cosine(h[n].tolist(), v[n, k].tolist()) for k in range(3)] for n in (0, 1)]
    assert_near(F.cosine(h, v), expected)


@pytest.mark.parametrize("lam", [0.0, LAM, 2000.0])
def test_weights_are_a_softmax_among_the_cells_of_one_label(lam: float) -> None:
    cos = random(3, 5).tanh()
    w = F.within_label_weights(cos, lam, GROUP, ALIVE)
    expected = torch.zeros_like(w)
    for (n, _), positions in CELLS.items():
        share = softmax([lam * float(cos[n, k]) for k in positions])
        expected[n, positions] = torch.tensor(share, dtype=torch.float64)
    assert_near(w, expected)


def test_read_and_score_are_those_of_equations_2_and_3() -> None:
    h, v, alpha = cells()
    w = F.within_label_weights(F.cosine(h, v), LAM, GROUP, ALIVE)
    alpha = alpha.nan_to_num(1.0)
    M, alpha_y = F.read(v, alpha, w, GROUP)
    s = F.memory_score(h, M, alpha_y, LEADS, LAM, DELTA)
    expected = torch.zeros_like(s)
    for (n, label), (lead, *_) in CELLS.items():
        memory = slow_memory(n)
        slow_M, slow_alpha = memory.read_label(h[n].tolist(), label)
        assert_near(M[n, lead], slow_M)
        assert_near(alpha_y[n, lead], slow_alpha)
        expected[n, lead] = memory.read(h[n].tolist())[label]
    assert_near(s, expected)


def test_score_survives_extreme_weights_and_kernels() -> None:
    h = torch.tensor([[1.0, 0.0]])
    M = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]])
    leads = torch.tensor([[True, True]])
    s = F.memory_score(h, M, torch.tensor([[1e-30, 1e30]]), leads, 500.0, 3.0)
    assert s.sum() == 1 and s[0, 0] == 1  # 1000 nats of cosine outweigh 414 of alpha
    s = F.memory_score(h, M, torch.tensor([[1e-30, 1e30]]), leads, 500.0, 8.0)
    assert s[0, 1] == 1  # but not 1105


@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_a_weight_that_decayed_to_nothing_gives_no_nan(delta: float) -> None:
    # alpha**0 is 1 also for alpha = 0, as in the oracle
    h, M = torch.tensor([[1.0, 0.0]]), torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    alpha, leads = torch.tensor([[0.0, 1.0]]), torch.tensor([[True, True]])
    s = F.memory_score(h, M, alpha, leads, 5.0, delta)
    assert_near(s, [[0.5, 0.5] if delta == 0 else [0.0, 1.0]])


def test_mix_is_equation_5_for_each_label() -> None:
    r, theta = torch.softmax(random(2, 4), dim=1), torch.sigmoid(random(2, 4, seed=1))
    s = torch.tensor([[0.1, 0.0, 0.9, 0.0], [0.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    P = F.mix(r, s, theta)
    rows = [dict(enumerate(x[0].tolist())) for x in (r, s, theta)]
    assert_near(P[0], list(slow_mix(*rows).values()))
    assert torch.equal(P[1], r[1])  # nothing in memory, whatever theta
    assert torch.equal(F.mix(r, s, 1.0)[1], r[1])
    assert_near(F.mix(r, s, 1.0)[0], s[0])
    assert_near(F.mix(r, s, 0.0), r)


def test_mix_has_a_finite_gradient_when_theta_saturates_over_an_empty_memory() -> None:
    theta = torch.tensor([[1.0, 1.0], [0.3, 0.4]], requires_grad=True)
    r = torch.tensor([[0.25, 0.75], [0.25, 0.75]])
    s = torch.tensor([[0.0, 0.0], [0.5, 0.5]])
    F.mix(r, s, theta)[:, 0].log().sum().backward()
    assert theta.grad is not None and bool(torch.isfinite(theta.grad).all())


def test_gradients_of_lam_and_delta_are_finite_beside_padding() -> None:
    h, v, alpha = cells()
    h[0] = 0
    alpha, v = alpha.nan_to_num(0.0), v.masked_fill(~ALIVE[..., None], 0.0)
    lam = torch.tensor(LAM, dtype=torch.float64, requires_grad=True)
    delta = torch.tensor(DELTA, dtype=torch.float64, requires_grad=True)
    w = F.within_label_weights(F.cosine(h, v), lam, GROUP, ALIVE)
    M, alpha_y = F.read(v, alpha, w, GROUP)
    F.memory_score(h, M, alpha_y, LEADS, lam, delta)[0, 0].log().backward()
    assert math.isfinite(lam.grad) and math.isfinite(delta.grad)  # type: ignore[arg-type]


@given(
    weights=st.lists(st.integers(0, 4), min_size=0, max_size=5),
    y=st.integers(0, 6),
    margin=st.sampled_from([-2.0, -math.log(2), 0.0, math.log(2), 1.0, 50.0]),
)
def test_margin_loss_is_the_slow_one(weights: list[int], y: int, margin: float) -> None:
    total = sum(weights) or 1
    P = {label: weight / total for label, weight in enumerate(weights)}
    other = max((p for label, p in P.items() if label != y), default=0.0)
    tensor = torch.tensor([list(P.values())], dtype=torch.float64).reshape(1, -1)
    loss, wrong = F.margin_loss(tensor, torch.tensor([y]), margin)
    assert_near(loss, [loops.margin_loss(P.get(y, 0.0), other, margin)])
    assert bool(wrong) == (P.get(y, 0.0) < other)


def test_merge_adds_the_share_and_decays_the_weight() -> None:
    v, alpha = F.merge(
        torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
        torch.tensor([2.0, 3.0]),
        torch.tensor([[2.0, 0.0], [2.0, 0.0]]),
        torch.tensor([0.75, 0.25]),
        0.5,
    )
    assert v.tolist() == [[2.5, 0.0], [0.5, 1.0]]
    assert alpha.tolist() == [1.75, 1.75]


def test_functions_leave_their_arguments_alone() -> None:
    h, v, alpha = cells()
    before = [x.clone() for x in (h, v, alpha)]
    w = F.within_label_weights(F.cosine(h, v), LAM, GROUP, ALIVE)
    F.memory_score(h, *F.read(v, alpha, w, GROUP), LEADS, LAM, DELTA)
    F.merge(v[0], alpha[0], h[:1].expand(5, -1), w[0], 0.9)
    for was, now in zip(before, (h, v, alpha), strict=True):
        assert torch.equal(was.nan_to_num(), now.nan_to_num())
