"""Which engine takes the steps, and why not a faster one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from conformance.forms import FORMS, Form, form
from torch import nn
from toys import random_combiner

from labelmem import Adapter, MemoryConfig
from labelmem.baselines import method
from labelmem.config import NarrowMemoryConfig
from labelmem.errors import ConfigError, UnsupportedError
from labelmem.fast import plainly
from labelmem.keys import Hidden, Joined

pytest.importorskip("numba")

PLAIN = {"label combiner, sparse", "doubles", "stream combiner, doubles"}
"""Forms that the reference alone takes."""
MANY = {
    "fixed",
    "stream combiner",
    "stream combiner, sees h",
    "stream combiner, theta only",
    "partition",
    "history",
    "history, few cells",
    "history, three tokens",
    "history, one token",
    "key function",
    "oldest out",
    "lightest out",
    "16 bits",
}
"""Forms that kernels take for several streams too."""


@pytest.mark.parametrize("each", FORMS, ids=str)
def test_one_stream_runs_compiled_where_all_of_it_can(each: Form) -> None:
    adapter = each.build()
    expected = "reference" if each.name in PLAIN else "numba"
    assert adapter.stream().engine == adapter.streams(1).engine == expected
    assert (adapter.engines()["numba"] is None) == (expected == "numba")


@pytest.mark.parametrize("each", FORMS, ids=str)
def test_several_streams_run_compiled_where_all_of_it_can(each: Form) -> None:
    adapter = each.build()
    expected = "numba" if each.name in MANY else "reference"
    assert adapter.streams(2).engine == expected
    assert (adapter.engines(2)["numba"] is None) == (expected == "numba")
    assert adapter.engines(2)["triton"] and adapter.engines(2)["reference"] is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("few shot", "labels=()"),
        ("label combiner", "LabelCombiner"),
        ("three cells", "one cell"),
        ("index", "index"),
        ("doubles", "float64"),
    ],
)
def test_the_reason_says_what_has_no_kernel_for_several_streams(name: str, reason: str) -> None:
    assert reason in str(form(name).build().engines(2)["numba"])


def test_a_class_with_steps_of_its_own_is_taken_at_its_word() -> None:
    class Own(Adapter):
        def _mix(self, *given: Any) -> Any:
            return super()._mix(*given)

    adapter = Own(nn.Linear(3, 4), combiner=0.5)
    assert "steps of its own" in str(adapter.engines(2)["numba"])
    assert adapter.streams(2).engine == "reference"


def test_several_streams_take_the_reference_while_lam_and_delta_are_trained() -> None:
    adapter = Adapter(nn.Linear(3, 4), combiner=0.5)
    batch = adapter.streams(2)
    assert batch.engine == "numba"
    adapter.learn_kernel()
    assert batch.engine == "reference" and "trained" in str(adapter.engines(2)["numba"])
    adapter.settle_kernel()
    assert batch.engine == "numba"


def test_an_engine_can_be_asked_for() -> None:
    adapter = form("fixed").build(engine="reference")
    assert adapter.stream().engine == "reference"
    adapter.engine = "numba"
    assert adapter.stream().engine == "numba"


def test_an_engine_that_does_not_fit_is_refused_with_the_reason() -> None:
    adapter = Adapter(nn.Linear(3, 4).double(), combiner=0.5, engine="numba")
    with pytest.raises(UnsupportedError, match=r"'numba'.*torch\.float64"):
        adapter.stream().predict([0.0, 0.0, 0.0])
    with pytest.raises(ConfigError, match="'auto', 'numba', 'triton', 'reference'"):
        Adapter(nn.Linear(3, 4), engine="cuda")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"memory": NarrowMemoryConfig(cells_per_label=2), "combiner": 0.5}, "16 bits"),
        ({"combiner": random_combiner(3, kind="label", active_threshold=0.1)}, "active_threshold"),
        (
            {
                "combiner": random_combiner(3, kind="stream", parts=2),
                "key": Joined(Hidden(), Hidden(0.5)),
                "memory": MemoryConfig(cells_per_label=2),
            },
            "several parts",
        ),
    ],
)
def test_the_reason_says_what_has_no_kernel(options: dict[str, object], reason: str) -> None:
    adapter = Adapter(nn.Linear(3, 4), **options)  # type: ignore[arg-type]
    assert reason in str(adapter.engines()["numba"])
    assert adapter.stream().engine == "reference"


def test_it_is_chosen_again_when_the_adapter_changes() -> None:
    adapter = Adapter(nn.Linear(3, 4), combiner=random_combiner(3))
    stream = adapter.stream()
    assert stream.engine == "numba"
    adapter.combiner.train()
    assert stream.engine == "reference"
    adapter.combiner.eval()
    with plainly():
        assert stream.engine == "reference"
    assert stream.engine == "numba"
    adapter.backbone.model.double()
    assert stream.engine == "reference"


def test_variants_have_engines_of_their_own() -> None:
    adapter = Adapter(nn.Linear(3, 4), combiner=0.5, engine="reference")
    other = adapter.variant(MemoryConfig(), random_combiner(3))
    assert other.stream().engine == "reference"
    other.engine = "auto"
    assert (other.stream().engine, adapter.stream().engine) == ("numba", "reference")


def test_switching_in_mid_stream_changes_nothing() -> None:
    history = form("history")
    (x, y), atol = history.users[0], history.atol
    adapter, other = history.build(), history.build(engine="reference")
    stream, expected = adapter.stream(), other.stream()
    for t in range(len(y)):
        adapter.engine = ("auto", "reference", "numba")[t % 3]
        mine, theirs = stream.predict(x[t]), expected.predict(x[t])
        torch.testing.assert_close(mine.probs, theirs.probs, rtol=0, atol=atol)
        adapter.engine = ("reference", "auto")[t % 2]
        stream.observe(y[t])
        expected.observe(y[t])


def test_other_methods_have_one_engine() -> None:
    assert method("ncm")(nn.Linear(3, 4)).stream().engine == "reference"
