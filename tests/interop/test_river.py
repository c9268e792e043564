"""River's own checks, and what they do not ask."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from river import checks, compose, datasets, ensemble, evaluate, metrics, preprocessing
from torch import nn
from toys import Stateless, hooks_of, random_stream

from labelmem import Adapter, MemoryConfig
from labelmem.errors import ConfigError, InputError
from labelmem.interop.river import LabelMemClassifier
from labelmem.interop.together import ALONE, Alone, lifted

NAMES = ("height", "width", "depth")
AROUND = {"model": Stateless(), "features": NAMES, "labels": ("a", "b", "c", "d")}


def river_checks() -> list[Any]:
    """All of them for the memory alone; around a model, whose steps cost more, the short ones."""
    alone, around = LabelMemClassifier(), LabelMemClassifier(**AROUND)
    long = ("check_bounded_memory_growth", "check_pickling")
    chosen = [("alone", alone, check) for check in checks.yield_checks(alone)]
    chosen += [
        ("around", around, check)
        for check in checks.yield_checks(around)
        if check.__name__ not in long
    ]
    return [
        pytest.param(classifier, check, id=f"{kind}-{i}-{check.__name__}")
        for i, (kind, classifier, check) in enumerate(chosen)
    ]


@pytest.mark.parametrize(("classifier", "check"), river_checks())
def test_checks_of_river(
    classifier: LabelMemClassifier, check: Callable[[LabelMemClassifier], None]
) -> None:
    check(classifier.clone())


def test_labels_of_any_kind_at_any_time() -> None:
    classifier = LabelMemClassifier()
    assert classifier.predict_proba_one({"x": 1.0}) == {}
    assert classifier.predict_one({"x": 1.0}) is None
    labels = ["word", 3, ("a", "tuple"), b"bytes", np.int64(8)]
    for i, label in enumerate(labels):
        classifier.learn_one({"x": float(i), "y": float(-i)}, label)
        P = classifier.predict_proba_one({"x": float(i), "y": float(-i)})
        assert list(P) == labels[: i + 1]
        assert sum(P.values()) == pytest.approx(1.0)
        assert max(P, key=P.__getitem__) == label
    assert type(list(P)[-1]) is int


def test_new_features_count_from_the_event_that_brings_them() -> None:
    classifier = LabelMemClassifier()
    classifier.learn_one({"x": 1.0}, "old")
    classifier.learn_one({"x": 1.0, "new": 3.0}, "new")
    assert classifier.predict_one({"x": 1.0}) == "old"
    assert classifier.predict_one({"x": 1.0, "new": 3.0}) == "new"
    assert classifier.predict_one({"new": 3.0, "x": 1.0, "never seen": 9.0}) == "new"
    assert classifier.predict_proba_one({}).keys() == {"old", "new"}


def test_a_refused_event_leaves_the_classifier_usable() -> None:
    classifier = LabelMemClassifier()
    classifier.learn_one({"x": 1.0}, 1)
    with pytest.raises(InputError, match="'colour' is 'red'"):
        classifier.learn_one({"x": 1.0, "colour": "red"}, 2)
    assert classifier.predict_proba_one({"x": 1.0}) == {1: 1.0}
    classifier.learn_one({"x": -1.0}, 2)
    assert classifier.predict_one({"x": -1.0}) == 2


def test_strings_come_in_through_an_encoder() -> None:
    encoder = compose.SelectType(str) | preprocessing.OneHotEncoder()
    classifier = encoder + compose.SelectType(float) | LabelMemClassifier()
    for colour, y in [("red", 1), ("blue", 2)] * 5:
        classifier.learn_one({"colour": colour, "size": 1.0}, y)
    assert classifier.predict_one({"colour": "blue", "size": 1.0}) == 2


def scaled(classifier: LabelMemClassifier) -> Any:
    return preprocessing.StandardScaler() | classifier


def test_image_segments_are_learned() -> None:
    stream = list(datasets.ImageSegments().take(700))
    score = evaluate.progressive_val_score(stream, scaled(LabelMemClassifier()), metrics.Accuracy())
    assert score.get() > 0.8
    loss = evaluate.progressive_val_score(
        stream, scaled(LabelMemClassifier()), metrics.CrossEntropy()
    )
    assert loss.get() < 0.8


def test_labels_may_come_late_by_count() -> None:
    stream = list(datasets.ImageSegments().take(400))
    score = evaluate.progressive_val_score(
        stream, scaled(LabelMemClassifier()), metrics.Accuracy(), delay=50
    )
    assert score.get() > 0.7


def test_labels_may_come_late_by_time() -> None:
    start, day = dt.datetime(2020, 1, 1), dt.timedelta(days=1)
    stream = [
        ({**x, "moment": start + i * day}, y)
        for i, (x, y) in enumerate(datasets.ImageSegments().take(400))
    ]
    classifier = compose.Discard("moment") | scaled(LabelMemClassifier())
    score = evaluate.progressive_val_score(
        stream, classifier, metrics.Accuracy(), moment="moment", delay=20 * day
    )
    assert score.get() > 0.7


def test_it_is_a_member_of_ensembles() -> None:
    model = ensemble.BaggingClassifier(LabelMemClassifier(), n_models=2, seed=1)
    stream = [({"x": float(i % 3)}, i % 3) for i in range(60)]
    assert evaluate.progressive_val_score(stream, model, metrics.Accuracy()).get() > 0.8


def test_pickles_go_on_where_they_were() -> None:
    for classifier in (LabelMemClassifier(), LabelMemClassifier(**AROUND)):
        x, ys = random_stream(3, 40, ["a", "b"], ["new"])
        rows = [dict(zip(NAMES, row, strict=True)) for row in x.tolist()]
        events = list(zip(rows, ys, strict=True))
        for event, y in events[:20]:
            classifier.learn_one(event, y)
        other = pickle.loads(pickle.dumps(classifier))
        for event, y in events[20:]:
            assert other.predict_proba_one(event) == classifier.predict_proba_one(event)
            other.learn_one(event, y)
            classifier.learn_one(event, y)


def test_without_a_window_the_memory_alone_decides() -> None:
    alone, classifier = Alone(ALONE, 4), LabelMemClassifier(window=0)
    x, ys = random_stream(3, 40, ["a", "b"], ["new"])
    for row, y in zip(x.tolist(), ys, strict=True):
        event = dict(zip(sorted(NAMES), row, strict=True))
        h = lifted(np.array(row), 3)
        assert list(classifier.predict_proba_one(event).values()) == alone.read(h).tolist()
        classifier.learn_one(event, y)
        alone.learn(h, y)


def test_no_more_events_are_kept_than_the_window_holds() -> None:
    sizes = []
    for window in (10, 1000):
        classifier = LabelMemClassifier(window=window)
        for i in range(30):
            classifier.learn_one({"x": float(i)}, i % 3)
        sizes.append(len(pickle.dumps(classifier)))
    event = 8 * (2 + 2)  # bytes: a vector of two numbers, its length and its label
    assert sizes[1] - sizes[0] == pytest.approx(990 * event, rel=0.01)
    with pytest.raises(ConfigError, match="window is -3"):
        LabelMemClassifier(window=-3).learn_one({"x": 1.0}, 1)


@pytest.mark.parametrize(
    ("memory", "theta"),
    [(MemoryConfig(cells_per_label=2), 0.3), (None, None)],
    ids=["LMN-fixed", "default"],
)
def test_around_a_model_it_is_a_stream_of_the_adapter(
    memory: MemoryConfig | None, theta: float | None
) -> None:
    classifier = LabelMemClassifier(**AROUND, memory=memory, theta=theta)
    model, labels = AROUND["model"], AROUND["labels"]
    stream = Adapter(model, labels=labels, memory=memory, combiner=theta).stream()
    x, ys = random_stream(4, 50, labels, ["new"])
    for t, y in enumerate(ys):
        event = dict(zip(reversed(NAMES), reversed(x[t].tolist()), strict=True))
        p = stream.predict(x[t])
        P = classifier.predict_proba_one({**event, "ignored": 5.0})
        assert P == pytest.approx(dict(zip(p.labels, p.probs.tolist(), strict=True)), abs=1e-6)
        stream.observe(y)
        classifier.learn_one(event, y)


def test_an_encoder_alone_leaves_it_to_the_memory() -> None:
    classifier = LabelMemClassifier(nn.Linear(2, 3), features=("x", "y"), labels=())
    assert classifier.predict_proba_one({"x": 1.0}) == {}
    classifier.learn_one({"x": 1.0}, "one")
    assert classifier.predict_proba_one({"x": 1.0}) == {"one": 1.0}


def test_a_model_needs_the_names_of_its_inputs() -> None:
    with pytest.raises(ConfigError, match="features is None"):
        LabelMemClassifier(nn.Linear(2, 2)).predict_one({"x": 1.0})


def test_the_given_model_and_the_global_generator_are_left_alone() -> None:
    model = Stateless().train()
    before = torch.get_rng_state()
    classifier = LabelMemClassifier(model, features=NAMES)
    classifier.learn_one({"height": 1.0}, 7)
    assert model.training and not hooks_of(model)
    assert torch.equal(before, torch.get_rng_state())
