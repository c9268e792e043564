"""The oracle's combiner, stream and metrics, pinned by examples worked by hand (in the comments).

Logarithms make the numbers fractions: with lam = log k a cosine of 1 weighs k, and a cosine of 0
weighs 1; sigmoid(log k) = k / (k + 1); tanh(log k) = (k*k - 1) / (k*k + 1).
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from .lmn import (
    OracleCombiner,
    OracleConfig,
    OracleGRU,
    OracleLMN,
    log_perplexity,
    reciprocal_rank,
)

LOG = math.log


def near(expected: Any) -> Any:
    return pytest.approx(expected, rel=1e-12, abs=1e-12)


# ---------------------------------------------------------------- combiner


def test_gru_by_hand() -> None:
    # x = 1, h = 1. r = sigmoid(log 3) = 3/4; z = sigmoid(log 4) = 4/5;
    # n = tanh(log 2 + r * (4/3 log 2 + 4/3 log 1.5)) = tanh(log 2 + log 2 + log 1.5) = tanh(log 6)
    #   = 35/37; h' = 1/5 * 35/37 + 4/5 * 1 = 7/37 + 4/5
    gru = OracleGRU(
        [[LOG(3)], [0.0], [LOG(2)]],
        [[0.0], [LOG(2)], [4 / 3 * LOG(2)]],
        [0.0, LOG(2), 0.0],
        [0.0, 0.0, 4 / 3 * LOG(1.5)],
    )
    assert gru([1.0], [1.0]) == near([7 / 37 + 4 / 5])


def test_gru_has_the_gates_of_the_torch_cell() -> None:
    generator = torch.Generator().manual_seed(0)
    cell = torch.nn.GRUCell(3, 2, dtype=torch.float64)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        x = torch.randn(3, generator=generator, dtype=torch.float64)
        h = torch.randn(2, generator=generator, dtype=torch.float64)
        expected = cell(x, h).tolist()
    weights = [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
    gru = OracleGRU(*(weight.tolist() for weight in weights))
    assert gru(x.tolist(), h.tolist()) == near(expected)


def combiner() -> OracleCombiner:
    """mu_t = half(k) + mu_(t-1) / 2 with k = 2**h * 3**e_pcn * 5**e_mem * 7**r * 11**s.

    One hidden unit; z = sigmoid(0) = 1/2, n = tanh(log k); theta = sigmoid(2 mu + 0.5).
    """
    into_n = [LOG(2), LOG(3), LOG(5), LOG(7), LOG(11)]
    zeros = [0.0] * 5
    gru = OracleGRU([zeros, zeros, into_n], [[0.0]] * 3, [0.0] * 3, [0.0] * 3)
    return OracleCombiner(gru, [2.0], 0.5)


def half(k: float) -> float:
    return 0.5 * (k * k - 1) / (k * k + 1)


def theta_of(mu: float) -> float:
    return 1 / (1 + math.exp(-(2 * mu + 0.5)))


def test_combiner_sees_the_flags_and_scores_of_the_step_before() -> None:
    c = combiner()
    # t = 0: no flags, r, s: k = 2**1 for all, mu = half(2) = 0.3
    assert c.theta([1.0], ["a", "b"]) == near({"a": theta_of(0.3), "b": theta_of(0.3)})
    # truth b; the model said a (missed); the memory said b (hit)
    c.commit([1.0], ["a", "b"], "b", {"a": 1.0, "b": 0.0}, {"b": 1.0})
    # t = 1, h = 0: a: k = 3 * 7 = 21; b: k = 3 * 11 = 33; mu_0 = 0.3 halves to 0.15
    mu = {"a": half(21) + 0.15, "b": half(33) + 0.15}
    expected = near({"a": theta_of(mu["a"]), "b": theta_of(mu["b"])})
    assert c.theta([0.0], ["a", "b"]) == expected
    c.theta([5.0], ["a", "b", "c"])  # changes nothing
    assert c.theta([0.0], ["a", "b"]) == expected
    # truth a; the model says a (hit); the memory is empty (missed)
    c.commit([0.0], ["a", "b"], "a", {"a": 1.0, "b": 0.0}, {})
    # t = 2, h = 0: a: k = 5 * 7 = 35; b: k = 5
    assert c.theta([0.0], ["a", "b"]) == near(
        {"a": theta_of(half(35) + mu["a"] / 2), "b": theta_of(half(5) + mu["b"] / 2)}
    )


def test_combiner_argmax_ties_go_to_the_lowest_position() -> None:
    # r and s tie between a and b. In the order a, b the argmax is a; in b, a it is b.
    tie = {"b": 0.5, "a": 0.5}
    for labels, y, flag in ((["a", "b"], "a", 0.0), (["a", "b"], "b", 1.0), (["b", "a"], "a", 1.0)):
        c = combiner()
        c.commit([0.0], labels, y, tie, tie)
        assert (c.e_pcn, c.e_mem) == (flag, flag)


def test_combiner_background_is_the_state_of_a_silent_label() -> None:
    c = combiner()
    # t = 0, h = 1: k = 2, background 0.3. Truth z is unknown: model missed, memory empty.
    c.commit([1.0], ["a"], "z", {"a": 1.0}, {})
    assert c.background() == near([0.3])
    # t = 1, h = 0: background k = 3 * 5 = 15; a has k = 15 * 7 = 105. z joins with the former.
    both = {"a": theta_of(half(105) + 0.15), "z": theta_of(half(15) + 0.15)}
    assert c.theta([0.0], ["a", "z"]) == near(both)
    # truth z: the model said a (missed), the memory z (hit)
    c.commit([0.0], ["a", "z"], "z", {"a": 1.0, "z": 0.0}, {"z": 1.0})
    assert c.background() == near([half(15) + 0.15])
    # t = 2, h = 1: z has k = 2 * 3 * 11 = 66 on top of it; q, which joins now, k = 2 * 3 = 6
    before = (half(15) + 0.15) / 2
    late = c.theta([1.0], ["a", "z", "q"])
    assert late["z"] == near(theta_of(half(66) + before))
    assert late["q"] == near(theta_of(half(6) + before))


# ---------------------------------------------------------------- stream


def test_few_shot_stream_starts_without_support() -> None:
    lmn = OracleLMN([], OracleConfig(lam=LOG(3)), 0.5)
    assert lmn.predict([1.0, 0.0], None) == {"P": {}, "s": {}, "theta": {}}
    lmn.observe("a")
    assert lmn.wrote == "create"
    # a is the only label: P = 1, loss 0
    assert lmn.predict([1.0, 0.0], None)["P"] == {"a": 1.0}
    lmn.observe("a")
    assert lmn.wrote == "none"
    # b has P = 0: written; then kernels 1 and 3
    lmn.predict([0.0, 1.0], None)
    lmn.observe("b")
    assert lmn.predict([0.0, 1.0], None)["P"] == near({"a": 0.25, "b": 0.75})
    assert [cell.written for cell in lmn.memory.cells] == [0, 2]


def test_stream_with_a_fixed_theta() -> None:
    lmn = OracleLMN(["x", "y"], OracleConfig(lam=LOG(3)), 0.25)
    r = {"x": 0.8, "y": 0.2}
    # an empty memory: P = r. Two new labels come in the order z, w.
    assert lmn.predict([1.0, 0.0], r)["P"] == r
    lmn.observe("z")
    # s_z = 1: P = 0.6, 0.15, 0.25; predicting twice changes nothing
    P = {"x": 0.6, "y": 0.15, "z": 0.25}
    assert lmn.predict([1.0, 0.0], r)["P"] == near(P)
    out = lmn.predict([1.0, 0.0], r)
    assert out["P"] == near(P)
    assert out["s"] == {"x": 0.0, "y": 0.0, "z": 1.0}
    assert out["theta"] == {"x": 0.25, "y": 0.25, "z": 0.25}
    # x leads z by log(0.6 / 0.25) = 0.875 < 1: written although the prediction was right
    lmn.observe("x")
    assert lmn.wrote == "create"
    lmn.predict([0.0, 1.0], r)
    lmn.observe("w")
    assert lmn.labels == ["x", "y", "z", "w"]
    # h = (0, 1): kernels z 1, x 1, w 3, alphas 1: s = 1/5, 1/5, 3/5
    out = lmn.predict([0.0, 1.0], r)
    assert out["P"] == near({"x": 0.65, "y": 0.15, "z": 0.05, "w": 0.15})


def test_stream_with_a_combiner_renormalises() -> None:
    lmn = OracleLMN(["a", "b"], OracleConfig(), combiner())
    r = {"a": 1.0, "b": 0.0}
    first = lmn.predict([1.0], r)
    assert first["P"] == r  # the memory is empty, whatever theta says
    assert first["theta"] == near({"a": theta_of(0.3), "b": theta_of(0.3)})
    lmn.observe("b")
    # t = 1: model and memory both missed, r = (1, 0), s = (0, 0), h = 1:
    # a: k = 2 * 3 * 5 * 7 = 210, b: k = 2 * 3 * 5 = 30; b alone is in memory, s_b = 1
    theta_a, theta_b = theta_of(half(210) + 0.15), theta_of(half(30) + 0.15)
    total = (1 - theta_a) + theta_b
    out = lmn.predict([1.0], r)
    assert out["theta"] == near({"a": theta_a, "b": theta_b})
    assert out["P"] == near({"a": (1 - theta_a) / total, "b": theta_b / total})


def test_stream_follows_the_model_while_memory_is_empty() -> None:
    lmn = OracleLMN(["a", "b"], OracleConfig(), combiner())
    r = {"a": 0.75, "b": 0.25}
    lmn.predict([1.0], r)
    lmn.observe("a")  # ahead by log 3 > 1: nothing is written, but the combiner steps
    assert lmn.wrote == "none"
    # t = 1, h = 0: the model hit, the empty memory missed: a: k = 5 * 7**0.75, b: k = 5 * 7**0.25
    out = lmn.predict([0.0], r)
    assert out["theta"] == near(
        {"a": theta_of(half(5 * 7**0.75) + 0.15), "b": theta_of(half(5 * 7**0.25) + 0.15)}
    )
    assert out["P"] == r  # although the two thetas differ
    assert OracleLMN(["a", "b"], OracleConfig(), 1.0).predict([0.0], r)["P"] == r


def test_observe_needs_a_prediction() -> None:
    lmn = OracleLMN([], OracleConfig(), 0.5)
    with pytest.raises(RuntimeError, match="predict"):
        lmn.observe("a")


# ---------------------------------------------------------------- metrics


def test_log_perplexity_floors_inside_the_log() -> None:
    # -log of 1/2, 1/8, 0 and exactly the floor: (1 + 3) log 2 + 2 * 10 log 10, over 4
    mean, floored = log_perplexity([0.5, 0.125, 0.0, 1e-10])
    assert mean == near((4 * LOG(2) + 20 * LOG(10)) / 4)
    assert floored == 1


def test_reciprocal_rank_counts_half_of_the_ties() -> None:
    # 0.4 is above; 0.2 ties with one other: rank 1 + 1 + 1/2
    assert reciprocal_rank([0.2, 0.4, 0.2, 0.1, 0.1], 2) == near(1 / 2.5)
    assert reciprocal_rank([0.2, 0.4, 0.2, 0.1, 0.1], 1) == 1.0
    # all of four equal: rank 1 + 3/2
    assert reciprocal_rank([0.25] * 4, 3) == near(1 / 2.5)
