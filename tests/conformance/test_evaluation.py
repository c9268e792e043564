"""``evaluate()`` gives the figures of streams that are stepped by hand."""

from __future__ import annotations

import math

import pytest

from conformance.comparing import reference_run
from conformance.forms import Form
from conformance.ways import Way
from labelmem.evaluation import evaluate


@pytest.mark.parametrize("rows", [1, 64])
def test_figures_are_those_of_steps_by_hand(exact_way: Way, form: Form, rows: int) -> None:
    losses = [
        -math.log(max(dict(zip(out.labels, out.probs.tolist(), strict=True)).get(y, 0), 1e-10))
        for outputs, (_, labels) in zip(reference_run(form), form.users, strict=True)
        for out, y in zip(outputs, labels, strict=True)
    ]
    with exact_way.context():
        result = evaluate(form.build(**exact_way.options), form.users, batch_size=rows).result()
    assert result.tokens == len(losses)
    assert result.metrics["log_perplexity"] == pytest.approx(
        sum(losses) / len(losses), abs=10 * form.atol
    )
