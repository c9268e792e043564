from __future__ import annotations

import numpy as np

from labelmem import MemoryConfig
from labelmem.interop.together import ALONE, Alone, lifted


def test_points_of_one_direction_are_told_apart() -> None:
    near, far = lifted(np.array([0.5, 0.5]), 2), lifted(np.array([5.0, 5.0]), 2)
    alone = Alone(ALONE, dim=3)
    alone.learn(near, "near")
    alone.learn(far, "far")
    assert alone.space.names(2) == ["near", "far"]
    P = alone.probs(np.stack([near, far]))
    assert P[0, 0] > 0.9 and P[1, 1] > 0.9


def test_features_that_are_missing_do_not_shrink_the_others() -> None:
    full = lifted(np.array([1.0, -1.0]), 2)
    half = lifted(np.array([1.0, -1.0, 0.0, 0.0]), 2)
    np.testing.assert_array_equal(half, [*full, 0.0, 0.0])
    np.testing.assert_array_equal(lifted(np.zeros(3), 0), [full[0], 0.0, 0.0, 0.0])


def test_a_label_that_was_evicted_is_still_known() -> None:
    alone = Alone(MemoryConfig(capacity=1), dim=2)
    alone.learn(np.array([1.0, 0.0]), "gone")
    alone.learn(np.array([0.0, 1.0]), np.str_("here"))
    assert alone.space.names(2) == ["gone", "here"]
    assert alone.probs(np.ones((1, 2))).tolist() == [[0.0, 1.0]]
