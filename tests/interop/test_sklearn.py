"""Scikit-learn's own checks, and what they do not ask."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from toys import Stateless, hooks_of, random_stream

from labelmem import Adapter, MemoryConfig
from labelmem.errors import InputError
from labelmem.interop.sklearn import LabelMemClassifier
from labelmem.models import FitOptions

SHORT = FitOptions(epochs=30, lr=0.02, batch=64, patience=30)
IRIS = load_iris(return_X_y=True)


@parametrize_with_checks([LabelMemClassifier()])
def test_checks_of_sklearn(
    estimator: LabelMemClassifier, check: Callable[[LabelMemClassifier], None]
) -> None:
    check(estimator)


# ---------------------------------------------------------------- in company


def test_pipeline_and_cross_validation() -> None:
    model = make_pipeline(StandardScaler(), LabelMemClassifier(training=SHORT, random_state=0))
    assert cross_val_score(model, *IRIS, cv=3).mean() > 0.9


def test_grid_search_over_composed_options() -> None:
    grid = {"memory": [None, MemoryConfig(lam=3.0)], "dim": [8, 16]}
    search = GridSearchCV(LabelMemClassifier(training=SHORT, random_state=0), grid, cv=2)
    search.fit(*IRIS)
    assert search.best_params_.keys() == grid.keys()
    assert search.score(*IRIS) > 0.9


def test_clones_share_nothing_with_a_fitted_estimator() -> None:
    fitted = LabelMemClassifier(Stateless(), memory=MemoryConfig(lam=2.0), theta=0.5)
    fitted.fit(np.eye(3), [0, 1, 2])
    fresh = clone(fitted)
    assert fresh.memory == fitted.memory and fresh.model is not fitted.model
    with pytest.raises(NotFittedError):
        fresh.predict(np.eye(3))


@pytest.mark.parametrize("kind", ["fit", "partial_fit", "model"])
def test_pickles_go_on_where_they_were(kind: str) -> None:
    X, y = IRIS
    X, y = X[::5], y[::5]
    if kind == "model":
        classifier = LabelMemClassifier(Stateless(labels=3, inputs=4)).fit(X, y)
    elif kind == "fit":
        classifier = LabelMemClassifier(training=SHORT, random_state=0).fit(X, y)
    else:
        classifier = LabelMemClassifier().partial_fit(X, y, classes=[0, 1, 2])
    other = pickle.loads(pickle.dumps(classifier))
    for each in (classifier, other):
        each.partial_fit(X[::-1], y[::-1])
    np.testing.assert_array_equal(other.predict_proba(X), classifier.predict_proba(X))


# ---------------------------------------------------------------- after fit


def test_partial_fit_leaves_the_network_and_feeds_the_memory() -> None:
    X, y = load_wine(return_X_y=True)
    known = y < 2
    classifier = LabelMemClassifier(random_state=0).fit(X[known], y[known])
    network = classifier.learner_.adapter.backbone.model
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    before = classifier.predict(X[known])
    new = np.flatnonzero(y == 2)
    classifier.partial_fit(X[new[:5]], y[new[:5]], classes=[2])
    assert all(torch.equal(weights[name], v) for name, v in network.state_dict().items())
    assert classifier.classes_.tolist() == [0, 1, 2]
    assert (classifier.predict(X[new[5:]]) == 2).mean() > 0.75
    assert (classifier.predict(X[known]) == before).mean() > 0.9


def test_fit_starts_afresh() -> None:
    X, y = IRIS
    classifier = LabelMemClassifier(training=SHORT, random_state=0)
    first = classifier.fit(X, y).predict_proba(X)
    classifier.partial_fit(X, y).partial_fit(X[:1], [9], classes=[9])
    np.testing.assert_array_equal(classifier.fit(X, y).predict_proba(X), first)


# ---------------------------------------------------------------- without fit


def test_the_memory_alone_learns_from_the_first_row() -> None:
    X, y = IRIS
    X = StandardScaler().fit_transform(X)
    order = np.random.default_rng(0).permutation(len(y))
    classifier = LabelMemClassifier().partial_fit(X[:1], y[:1], classes=[0, 1, 2])
    assert classifier.predict_proba(X[:2]).tolist() == [[1.0, 0.0, 0.0]] * 2
    for batch in np.array_split(order, 5):
        classifier.partial_fit(X[batch], y[batch])
    assert classifier.score(X, y) > 0.9


def test_rows_are_learned_one_by_one_in_their_order() -> None:
    X, y = IRIS
    order = np.random.default_rng(1).permutation(len(y))[:60]
    at_once = LabelMemClassifier().partial_fit(X[order], y[order], classes=[0, 1, 2])
    one_by_one = LabelMemClassifier()
    for row in order:
        one_by_one.partial_fit(X[[row]], y[[row]], classes=[0, 1, 2])
    np.testing.assert_array_equal(at_once.predict_proba(X), one_by_one.predict_proba(X))


def test_labels_must_be_announced() -> None:
    X = np.eye(2)
    with pytest.raises(InputError, match="classes is None"):
        LabelMemClassifier().partial_fit(X, [0, 1])
    classifier = LabelMemClassifier().partial_fit(X, [0, 1], classes=[0, 1])
    with pytest.raises(InputError, match=r"labels \[5\], which were not announced"):
        classifier.partial_fit(X, [0, 5])
    assert classifier.partial_fit(X, [0, 5], classes=[5]).classes_.tolist() == [0, 1, 5]
    with pytest.raises(InputError, match="of another kind"):
        classifier.partial_fit(X, [0, 1], classes=["name"])


def test_a_refused_first_call_leaves_it_unfitted() -> None:
    classifier = LabelMemClassifier()
    with pytest.raises(InputError):
        classifier.partial_fit(np.eye(2), [0, 1])
    with pytest.raises(NotFittedError):
        classifier.predict(np.eye(2))
    classifier.partial_fit(np.eye(3), [0, 1, 1], classes=[0, 1])
    assert classifier.n_features_in_ == 3


# ---------------------------------------------------------------- around a model


@pytest.mark.parametrize(
    ("memory", "theta"),
    [(MemoryConfig(cells_per_label=2), 0.3), (None, None)],
    ids=["LMN-fixed", "default"],
)
@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_around_a_model_it_is_a_stream_of_the_adapter(
    first: str, memory: MemoryConfig | None, theta: float | None
) -> None:
    model, labels = Stateless(), ["a", "b", "c", "d"]
    x, ys = random_stream(5, 60, labels, ["e", "f"])
    classifier = LabelMemClassifier(model, labels=labels, memory=memory, theta=theta)
    announced: dict[str, Any] = {"classes": ["e", "f"]} if first == "partial_fit" else {}
    getattr(classifier, first)(x.numpy(), ys, **announced)
    stream = Adapter(model, labels=labels, memory=memory, combiner=theta).stream()
    for row, y in zip(x, ys, strict=True):
        stream.predict(row)
        stream.observe(y)
    assert classifier.classes_.tolist() == [*labels, "e", "f"]
    for row in x[:10]:
        p = stream.predict(row)
        expected = dict(zip(p.labels, p.probs.tolist(), strict=True))
        seen = classifier.predict_proba(row[None].numpy())[0]
        assert dict(zip(classifier.classes_.tolist(), seen, strict=True)) == pytest.approx(
            expected, abs=1e-6
        )


def test_labels_of_a_model_need_not_be_sorted() -> None:
    model = Stateless(labels=3)
    one = LabelMemClassifier(model, labels=["c", "a", "b"]).fit(np.eye(3), ["a", "a", "a"])
    other = LabelMemClassifier(model, labels=["a", "b", "c"]).fit(np.eye(3), ["b", "b", "b"])
    np.testing.assert_allclose(
        one.predict_proba(np.eye(3)), other.predict_proba(np.eye(3))[:, [1, 2, 0]]
    )


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_an_encoder_alone_leaves_it_to_the_memory(first: str) -> None:
    classifier = LabelMemClassifier(Stateless(labels=6), labels=())
    announced: dict[str, Any] = {"classes": ["x", "y", "z"]} if first == "partial_fit" else {}
    getattr(classifier, first)(np.eye(3), ["z", "y", "x"], **announced)
    assert classifier.predict(np.eye(3)).tolist() == ["z", "y", "x"]


def test_the_given_model_and_the_global_generator_are_left_alone() -> None:
    model = Stateless(labels=3, inputs=4).train()
    before = torch.get_rng_state()
    LabelMemClassifier(model).fit(*IRIS)
    assert model.training and not hooks_of(model)
    LabelMemClassifier(training=SHORT, random_state=0).fit(*IRIS)
    assert torch.equal(before, torch.get_rng_state())


def test_names_and_numbers_do_not_mix() -> None:
    with pytest.raises(InputError, match="of another kind"):
        LabelMemClassifier(Stateless()).fit(np.eye(3), ["a", "b", "c"])
