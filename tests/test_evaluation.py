from __future__ import annotations

import math

import pytest
import torch
from toys import Stateless

from labelmem import Adapter
from labelmem.errors import InputError
from labelmem.evaluation import Watch, evaluate

SEQUENCES = [
    (torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), [0, 9, 1, 9, 9]),
    (torch.randn(2, 3, generator=torch.Generator().manual_seed(1)), [2, 7]),
]


def test_the_figures_are_those_of_streams_run_by_hand() -> None:
    adapter = Adapter(Stateless(), combiner=0.4)
    losses, hits, new_hits = [], 0, 0
    for x, labels in SEQUENCES:
        stream = adapter.stream()
        for t, label in enumerate(labels):
            p = stream.predict(x[t])
            probability = float(p.probs[p.labels.index(label)]) if label in p.labels else 0.0
            losses.append(-math.log(max(probability, 1e-10)))
            hits += p.label == label
            new_hits += p.label == label and label >= 4
            stream.observe(label)
    result = evaluate(adapter, SEQUENCES).result()
    assert result.metrics["log_perplexity"] == pytest.approx(sum(losses) / 7, abs=1e-5)
    assert result.metrics["accuracy"] == pytest.approx(hits / 7)
    assert result.metrics["accuracy_new"] == pytest.approx(new_hits / 4)
    assert result.metrics["floored"] == 2
    assert (result.streams, result.tokens) == (2, 7)


def test_a_watcher_sees_every_step() -> None:
    seen: list[tuple[int, int, tuple[int, ...]]] = []

    def watch(step: Watch) -> None:
        seen.append((step.t, int(step.mask.sum()), step.order))
        assert step.batch.last is not None and step.batch.last.theta is not None

    evaluate(Adapter(Stateless(), combiner=0.5), SEQUENCES, watch=watch)
    assert seen == [(t, 2 if t < 2 else 1, (0, 1)) for t in range(5)]


def test_one_stream_at_a_time_is_watched_and_scored_once() -> None:
    seen: list[tuple[int, tuple[int, ...]]] = []

    def watch(step: Watch) -> None:
        seen.append((step.t, step.order))

    adapter = Adapter(Stateless(), combiner=0.4)
    single = evaluate(adapter, SEQUENCES, batch_size=1, watch=watch).result()
    assert seen == [*((t, (0,)) for t in range(5)), *((t, (1,)) for t in range(2))]
    together = evaluate(adapter, SEQUENCES).result()
    assert single.metrics == pytest.approx(together.metrics, rel=1e-5)
    assert (single.streams, single.tokens) == (2, 7)


def test_time_is_measured() -> None:
    assert evaluate(Adapter(Stateless()), SEQUENCES).us_per_token > 0


@pytest.mark.parametrize(
    "bad", [[], [torch.zeros(3)], [(torch.zeros(2, 3), [1])], [(torch.zeros(0, 3), [])]]
)
def test_bad_sequences_are_refused(bad: list[object]) -> None:
    with pytest.raises(InputError):
        evaluate(Adapter(Stateless()), bad)  # type: ignore[arg-type]
