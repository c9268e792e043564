"""Every method gives the same figures however many streams run side by side."""

from __future__ import annotations

import pytest
from toys import Stateless, random_stream

from labelmem.baselines import make, methods
from labelmem.errors import UnsupportedError
from labelmem.evaluation import evaluate

FIGURES = ("log_perplexity", "mrr", "accuracy", "accuracy_new", "accuracy_seen", "floored")


@pytest.mark.parametrize("name", methods())
def test_the_number_of_streams_in_lockstep_changes_no_figure(name: str) -> None:
    recorded = [random_stream(k, 6 + 3 * k, range(4), ["new-1", "new-2"]) for k in range(4)]
    method = make(name, Stateless())
    try:
        method.fit(recorded[:2])
    except UnsupportedError:  # it learns online only
        pass
    alone, together = (
        evaluate(method, recorded, batch_size=n, show=False).result() for n in (1, 4)
    )
    assert alone.tokens == together.tokens == 42
    for figure in FIGURES:
        assert alone.metrics[figure] == pytest.approx(together.metrics[figure], abs=1e-4)
