"""The pages hang together: each is found, its links lead somewhere, its figures were recorded."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.pages import DOCS, PAGES, ROOT, SITE, text_of


def test_every_page_is_in_the_navigation_and_the_other_way_round() -> None:
    text = text_of("mkdocs.yml").partition("\nnav:\n")[2]
    listed = re.findall(r"([\w/-]+\.md)$", text, re.MULTILINE)
    assert sorted(f"docs/{page}" for page in listed) == SITE


@pytest.mark.parametrize("page", PAGES)
def test_links_between_files_lead_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text_of(page), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s#]+)", text):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), target


def rows_between(page: Path, mark: str) -> list[str]:
    """The rows of the table between two comments of a page, without its heading."""
    table = page.read_text("utf-8").partition(f"<!-- {mark} -->\n")[2]
    return table.partition(f"<!-- /{mark} -->")[0].strip().splitlines()[2:]


def river_rows() -> Iterator[str]:
    """The record of river's streams as rows of a table: accuracy, and microseconds per event."""
    for record in json.loads((ROOT / "benchmarks/river_streams.json").read_text("utf-8")):
        figures = [
            f"{100 * record['accuracy'][name]:.1f} ({record['us'][name]:,.0f})"
            for name in record["accuracy"]
        ]
        yield " | ".join([f"| {record['stream']}", *figures]) + " |"


def test_the_table_of_rivers_streams_is_what_was_recorded() -> None:
    assert rows_between(DOCS / "how-to/sklearn-river.md", "river") == list(river_rows())


def test_the_figures_of_a_log_are_what_was_recorded() -> None:
    record = json.loads((ROOT / "benchmarks/logs.json").read_text("utf-8"))
    assert record["users"] == 10_000 and record["threads"] == "1"
    assert rows_between(DOCS / "how-to/log-file.md", "logs") == [
        f"| `labelmem {row['command']}` | {row['processor_seconds']:,.0f} "
        f"| {row['events'] / row['processor_seconds']:,.0f} | {row['peak_gib']:.1f} GiB |"
        for row in record["rows"]
    ]


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "index.html").exists()
    api = (tmp_path / "reference" / "labelmem.html").read_text("utf-8")
    assert "Names of the logits" in api and ":class:" not in api  # from the docstrings
