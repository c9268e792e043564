"""The table of BANKING77 in documents against its record."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "benchmarks" / "banking77.py"
DOCUMENTS = ("README.md", "paper/docs/language.md", "docs/how-to/hugging-face.md")
RECORD = {
    "command": "python made_up.py",
    "titles": {"one": "the one", "two": "the other"},
    "draws": 2,
    "trials": 3,
    "texts_per_draw": 1000,
    "summary": {
        name: {
            key: {"mean": mean, "interval": [mean - 0.01, mean + 0.02]}
            for key in ("accuracy", "accuracy_new", "accuracy_seen")
        }
        for name, mean in (("one", 0.5), ("two", 0.25))
    },
}
MARKED = "before\n<!-- banking77 -->\nold\n<!-- /banking77 -->\nafter\n"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("banking77", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_made_of_the_record(script: ModuleType) -> None:
    assert script.table(RECORD).split("\n") == [
        "| | new intents | known intents | all |",
        "|---|---|---|---|",
        "| the one | 50.0 (49.0 to 52.0) | 50.0 (49.0 to 52.0) | 50.0 (49.0 to 52.0) |",
        "| the other | 25.0 (24.0 to 27.0) | 25.0 (24.0 to 27.0) | 25.0 (24.0 to 27.0) |",
    ]
    assert "mean over 2 draws" in script.block(RECORD) and "1,000 texts" in script.block(RECORD)


def test_only_what_is_between_the_marks_changes(script: ModuleType) -> None:
    text = script.renewed(MARKED, RECORD)
    assert text.startswith("before\n<!-- banking77 -->\n\n| | new")
    assert text.endswith("`python made_up.py`.\n\n<!-- /banking77 -->\nafter\n")
    assert script.renewed(text, RECORD) == text
    assert script.renewed("no marks\n", RECORD) == "no marks\n"


def test_stale_documents_are_named(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = tmp_path / "page.md"
    page.write_text(MARKED)
    monkeypatch.setattr(sys, "argv", ["banking77.py", "--check", str(page)])
    with pytest.raises(SystemExit, match=r"stale: .*page\.md"):
        script.main()
    assert page.read_text() == MARKED
    monkeypatch.setattr(sys, "argv", ["banking77.py", str(page)])
    script.main()
    assert "labeled memory" in page.read_text()
    monkeypatch.setattr(sys, "argv", ["banking77.py", "--check", str(page)])
    script.main()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_document_of_ours_is_stale(script: ModuleType, name: str) -> None:
    record = json.loads(SCRIPT.with_suffix(".json").read_text("utf-8"))
    text = (ROOT / name).read_text("utf-8")
    assert script.renewed(text, record) == text
