"""The search of session-based nearest neighbours asks for the same votes once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from labelmem_paper.experiments.sequences.methods.session_knn import SessionKNN, Votes
from labelmem_paper.experiments.sequences.task import SequenceTask
from labelmem_paper.experiments.table import load_table

from labelmem.baselines.session_knn import SessionKNN as Method


def test_a_trial_is_worth_what_a_replay_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = replace(load_table("table2"), methods=("session-knn",))
    (run,) = table.runs("smoke", methods=("session-knn",))
    task = SequenceTask(run, torch.device("cpu"), tmp_path, show=False)
    contender = SessionKNN(task)
    decays, replayed = [], SessionKNN._votes

    def counted(self: SessionKNN, method: Method) -> Votes:
        decays.append(method.options.decay)
        return replayed(self, method)

    monkeypatch.setattr(SessionKNN, "_votes", counted)
    changes = ({}, {"theta": 0.9}, {"theta": 0.9, "smoothing": 0.1}, {"decay": 0.5}, {"theta": 0.1})
    for change in changes:
        point = {**contender.start, **change}
        expected = task.validation_loss(contender.build(point))
        assert contender.loss(point) == pytest.approx(expected, abs=1e-6)
    assert decays == [0.9, 0.5]
