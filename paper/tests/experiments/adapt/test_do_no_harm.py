"""What known labels lose to the default form on a real task, and what its probabilities cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from labelmem_paper.experiments.adapt.form_figures import form_figures
from labelmem_paper.experiments.adapt.meeting import meet
from labelmem_paper.experiments.adapt.tasks import TASKS

from labelmem import Adapter

SETTLED = 50
"""Steps after which the log-loss counts."""


@pytest.mark.parametrize("primed", [False, True])
def test_known_digits_are_kept(primed: bool, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    task = TASKS["digits"](0, tmp_path)
    adapter = Adapter(task.head())
    if primed:
        adapter.prime(task.train_h, task.train_y)
    lost = {"new": -0.01, "known": -0.003, "few": 0.0, "few-new": -0.02}
    for form, least in lost.items():
        met = meet(adapter, task, task.streams[form])
        figures, _ = form_figures(met, task.labels)
        assert figures["gain_known"] >= least, form
        assert figures["gain_known_300"] >= -0.02, form
        if form in ("known", "few"):
            nats = [one.method.loss[SETTLED:] - one.model.loss[SETTLED:] for one in met]
            assert np.concatenate(nats).mean() <= 0.05, form
