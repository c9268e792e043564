"""River's bridges: what comes over them agrees with what stands on the other side.

To agree means: after the same labelled events, the same probability, to nine digits, for every
label that was observed, and so the same prediction. Two conventions differ. Labels that were
announced but never observed have probability 0 in the estimator, and are absent from the
dictionaries of river. Before the first event the bridge itself guesses all announced labels
alike, while ours answers nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from river import compat, datasets, preprocessing, stream
from toys import Stateless

from labelmem import MemoryConfig
from labelmem.interop import river, sklearn

SEGMENTS = list(datasets.ImageSegments().take(300))
LABELS = sorted({y for _, y in SEGMENTS})


def observed(P: dict[Any, float], seen: set[Any]) -> dict[Any, float]:
    assert all(p == 0 for y, p in P.items() if y not in seen)
    return {y: p for y, p in P.items() if y in seen}


@pytest.mark.parametrize(
    "memory", [None, MemoryConfig(lam=8.0, capacity=9)], ids=["default", "small"]
)
@pytest.mark.parametrize("window", [1000, 0], ids=["together", "alone"])
@pytest.mark.parametrize("scale", [True, False], ids=["scaled", "raw"])
def test_the_estimator_on_the_side_of_river(
    memory: MemoryConfig | None, window: int, scale: bool
) -> None:
    ours: Any = river.LabelMemClassifier(memory=memory, window=window)
    # The bridge takes the columns of the estimator, which are sorted, for those of its list.
    theirs: Any = compat.convert_sklearn_to_river(
        sklearn.LabelMemClassifier(memory=memory, window=window),
        classes=sorted([*LABELS, "never"]),
    )
    if scale:
        ours, theirs = (preprocessing.StandardScaler() | each for each in (ours, theirs))
    seen: set[Any] = set()
    for x, y in SEGMENTS:
        if seen:
            P = ours.predict_proba_one(x)
            assert P.keys() == seen
            bridged = theirs.predict_proba_one(x)
            assert observed(bridged, seen) == pytest.approx(P, abs=1e-9)
            assert theirs.predict_one(x) == ours.predict_one(x)
        ours.learn_one(x, y)
        theirs.learn_one(x, y)
        seen.add(y)


def test_the_classifier_of_river_on_the_side_of_sklearn() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5)) + np.repeat(np.eye(5)[:3] * 2, 40, axis=0)
    y = np.repeat([4, 7, 9], 40)
    order = rng.permutation(120)
    ours = sklearn.LabelMemClassifier().partial_fit(X[order], y[order], classes=[4, 7, 9])
    theirs = compat.convert_river_to_sklearn(river.LabelMemClassifier())
    theirs.fit(X[order], y[order])
    np.testing.assert_allclose(theirs.predict_proba(X), ours.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(theirs.predict(X), ours.predict(X))


def test_both_around_one_model() -> None:
    model, names = Stateless(inputs=3).double(), ("a", "b", "c")
    ours = river.LabelMemClassifier(model, features=names)
    theirs = compat.convert_sklearn_to_river(
        sklearn.LabelMemClassifier(model), classes=[0, 1, 2, 3]
    )
    rng = np.random.default_rng(0)
    for x, y in stream.iter_array(rng.normal(size=(60, 3)), rng.integers(4, size=60), names):
        theirs.learn_one(x, y)
        ours.learn_one(x, y)
        assert theirs.predict_proba_one(x) == pytest.approx(ours.predict_proba_one(x), abs=1e-9)
