from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from labelmem_paper.experiments.records import Records

BLOCKED = """
import sys
for name in ("rich", "typer", "matplotlib", "sklearn", "ray"):
    sys.modules[name] = None
import runpy
runpy.run_module("labelmem_paper.experiments", run_name="__main__")
"""


def test_the_runner_needs_nothing_but_torch_numpy_and_safetensors(tmp_path: Path) -> None:
    options = ["table2", "--size", "smoke", "--method", "lmn", "--results", str(tmp_path)]
    said = []
    for more in (["--prepare"], []):
        done = subprocess.run(
            [sys.executable, "-c", BLOCKED, *options, *more],
            capture_output=True,
            text=True,
            check=True,
        )
        said.append(done.stdout.split()[0])
    assert said == ["prepared", "recorded"]
    assert [record["method"] for record in Records(tmp_path / "table2.jsonl")] == ["lmn"]
