"""The search of session-based nearest neighbours asks for the same votes once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from labelmem_paper.experiments.sequences.methods import session_knn
from labelmem_paper.experiments.sequences.task import SequenceTask
from labelmem_paper.experiments.table import load_table

from labelmem.recording import Lockstep, lockstep_batches


def test_a_trial_is_worth_what_a_replay_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = replace(load_table("table2"), methods=("session-knn",))
    (run,) = table.runs("smoke", methods=("session-knn",))
    task = SequenceTask(run, torch.device("cpu"), tmp_path, show=False)
    contender = session_knn.SessionKNN(task)
    replays: list[Any] = []

    def counted(*given: Any) -> Iterator[Lockstep]:
        replays.append(given)
        return lockstep_batches(*given)

    monkeypatch.setattr(session_knn, "lockstep_batches", counted)
    seen = []
    changes = ({}, {"theta": 0.9}, {"theta": 0.9, "smoothing": 0.1}, {"decay": 0.5}, {"theta": 0.1})
    for change in changes:
        point = {**contender.start, **change}
        expected = task.validation_loss(contender.build(point))
        assert contender.loss(point) == pytest.approx(expected, abs=1e-6)
        seen.append(len(replays))
    assert seen == [1, 1, 1, 2, 2]
