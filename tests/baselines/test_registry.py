"""Methods are found by their names."""

from __future__ import annotations

import pytest
from toys import Stateless

from labelmem.baselines import make, method, methods
from labelmem.errors import ConfigError

NAMES = {
    *("static", "unigram", "counter", "ncm", "slda"),
    *("knn", "session-knn", "sgd-head", "sgd-all"),
}


def test_every_method_is_found_under_its_own_name() -> None:
    found = methods()
    assert set(found) >= NAMES
    for name, cls in found.items():
        assert cls.name == name and method(name) is cls


def test_defaults_need_nothing_but_a_model() -> None:
    for name in NAMES:
        made = make(name, Stateless(labels=4))
        assert made.known.are_ids and len(made.known) == 4
        assert made.config() == make(name, Stateless(), labels=list("abcd")).config()


@pytest.mark.parametrize("name", ["", "base", "state", "session_knn", "no-such-method"])
def test_an_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="there is no method"):
        method(name)


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"counter has no option \['thetta'\].*'theta'"):
        make("counter", labels=3, thetta=0.5)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match="needs a model"):
        make("static", labels=3)
    with pytest.raises(ConfigError, match="needs labels"):
        make("unigram")


def test_a_variant_shares_what_was_fitted() -> None:
    first = make("counter", labels=2).fit([(None, [0, 0, 1])])
    second = first.variant(theta=0.25)
    assert second.options.theta == 0.25 and first.options.theta == 0.5
    assert second.counts is first.counts  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="theta is 2"):
        first.variant(theta=2)
    with pytest.raises(ConfigError, match="no option"):
        first.variant(thetta=0.2)


@pytest.mark.parametrize("name", ["unigram", "session-knn", "ncm", "slda"])
def test_a_fit_does_not_swallow_options(name: str) -> None:
    with pytest.raises(ConfigError, match="epochs"):
        make(name, Stateless()).fit([], epochs=3)
