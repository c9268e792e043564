"""The Ray executor on a real local cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelmem_paper.experiments.executors import run_all
from labelmem_paper.experiments.records import Records
from labelmem_paper.experiments.table import load_table

pytest.importorskip("ray", reason="the extra 'ray' is not installed")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Ray's own warnings are not ours to mend
def test_a_local_cluster_ends_in_the_same_records(tmp_path: Path) -> None:
    runs = list(load_table("table2").runs("smoke", methods=["unigram", "counter"]))
    here = run_all(runs, tmp_path / "here", "cpu")
    there = run_all(runs, tmp_path / "there", "cpu", executor="ray")
    assert [outcome for _, outcome in there] == [outcome for _, outcome in here]
    figures = []
    for folder in ("here", "there"):
        records = Records(tmp_path / folder / "table2.jsonl")
        figures.append(sorted((r["method"], r["metrics"]["mrr"]) for r in records))
    assert figures[0] == figures[1]
