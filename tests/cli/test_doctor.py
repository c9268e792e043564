from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from labelmem.cli import app

pytest.importorskip("numba")
runner = CliRunner()


def test_it_names_engines_and_reasons() -> None:
    shown = runner.invoke(app, ["doctor"])
    assert shown.exit_code == 0
    assert "torch" in shown.output and "LMN with a label combiner" in shown.output
    assert "not numba: of several streams a LabelCombiner has no kernels" in shown.output


def test_json_has_the_same() -> None:
    report = json.loads(runner.invoke(app, ["doctor", "--json"]).output)
    fixed = report["engines"]["LMN-fixed"]
    assert fixed["1 stream"] == {"runs": "numba", "not": {}}
    assert fixed["256 streams"] == {"runs": "numba", "not": {}}
    label = report["engines"]["LMN with a label combiner"]["256 streams"]
    assert label["runs"] == "reference" and list(label["not"]) == ["numba", "triton"]
    assert report["packages"]["torch"] and report["machine"]["python"]


def test_kernels_can_be_compiled_ahead() -> None:
    shown = runner.invoke(app, ["doctor", "--compile"])
    assert shown.exit_code == 0 and "all kernels are compiled and kept" in shown.output


def test_a_folder_that_is_no_model_is_refused_in_one_line() -> None:
    shown = runner.invoke(app, ["doctor", "nowhere"])
    assert shown.exit_code == 2 and "nowhere" in shown.output
