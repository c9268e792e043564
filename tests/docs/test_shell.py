"""The commands of the documentation work, one after the other as a reader would give them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from docs.pages import DOCS, PAGES, ROOT, SHELL, blocks, commands, commands_in_the_text
from docs.staging import a_publisher_of_check_ins, logs_and_embeddings, what_the_demo_needs
from labelmem_paper.cli import app as paper_app
from typer.testing import CliRunner

from labelmem.cli import COMMANDS, app

APPS = {"labelmem": app, "labelmem-paper": paper_app}

STAGE: dict[str, Callable[[Path, pytest.MonkeyPatch], None]] = {
    "docs/how-to/log-file.md": logs_and_embeddings,
    "docs/index.md": what_the_demo_needs,
    "README.md": logs_and_embeddings,
    "paper/README.md": a_publisher_of_check_ins,
}
"""What a page takes for granted."""
LEAVES = {
    "docs/how-to/log-file.md": [
        "model/card.md",
        "page.html",
        "predictions.jsonl",
        "memories",
        "desk",
    ],
    "docs/index.md": ["report.html"],
    "docs/reference/command-line.md": ["datasets.json"],
    "README.md": ["model/card.md", "predictions.jsonl"],
    "paper/README.md": ["results/table2.jsonl", "results/report/index.html"],
    "paper/docs/adapt.md": ["results/adapt.jsonl"],
}
"""What its commands leave behind."""
PUT_IN = {"demo": ["--quick"]}
"""Makes a command that takes a minute take seconds, on the same path through the code."""
INDEX = "it installs from the package index"
NOT_RUN = {
    "pip install labelmem": INDEX,
    "pip install labelmem[demo]": INDEX,
    "pip install labelmem[logs]": INDEX,
    "pip install labelmem[fast]": INDEX,
    "pip install labelmem-paper[adapt]": INDEX,
    "pip install labelmem-paper[ray]": INDEX,
    "pip install labelmem-paper[report]": INDEX,
    "pip install labelmem[transformers]": INDEX,
    "make demo": "it is `labelmem demo`, a minute",
    "make docs": "it builds the site, which a slow test does",
    "make help": "it prints the Makefile",
    "make setup": "it installs from the package index",
    "make soak": "it takes an hour; test_threads.py does the same in seconds",
    "make test": "it is what runs this test",
    "make test-paper": "it is a part of make test",
    "make wheel": "it builds in clean environments, minutes",
}
"""Commands of the pages that no test gives, and why; those of labelmem itself all run."""


def calls_of(page: str) -> list[list[str]]:
    """The calls of our own commands in the blocks of a page."""
    return [words for words in commands(page) if words[0] in APPS]


def give(words: list[str]) -> None:
    """Call labelmem as a shell would, ``> file`` included."""
    words, target = (words[:-2], Path(words[-1])) if ">" in words else (words, None)
    shown = CliRunner().invoke(APPS[words[0]], [*words[1:], *PUT_IN.get(words[1], [])])
    assert shown.exit_code == 0, (words, shown.output, shown.exception)
    if target is not None:
        target.write_text(shown.stdout)


def test_the_reader_of_every_page_is_provided_for() -> None:
    assert LEAVES.keys() == {page for page in PAGES if calls_of(page)} >= STAGE.keys()


@pytest.mark.parametrize("page", LEAVES)
def test_the_commands_of_a_page_work(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LABELMEM_DATA", raising=False)
    if page in STAGE:
        STAGE[page](here, monkeypatch)
    for words in calls_of(page):
        give(words)
    assert [name for name in LEAVES[page] if not (here / name).exists()] == []
    for path in here.glob("*.json"):
        json.loads(path.read_text("utf-8"))
    for block in blocks(page):
        if block.language == "json":  # a line of an output, the numbers apart
            line = (here / "monday.jsonl").read_text("utf-8").splitlines()[0]
            assert list(json.loads(block.text)) == list(json.loads(line))


def test_every_command_is_run_or_named_with_a_reason() -> None:
    others = [words for page in PAGES for words in commands(page) if words[0] not in APPS]
    assert {" ".join(words) for words in others} == NOT_RUN.keys()
    assert all(NOT_RUN.values())


def test_every_block_is_of_a_known_kind() -> None:
    kinds = {block.language for page in PAGES for block in blocks(page)}
    assert kinds <= {*SHELL, "python", "json"}


def test_what_is_not_run_exists_at_least() -> None:
    for line in NOT_RUN:
        check_exists(line.split())


@pytest.mark.parametrize("page", [page for page in PAGES if commands_in_the_text(page)])
def test_a_command_that_a_sentence_names_exists(page: str) -> None:
    for words in commands_in_the_text(page):
        if words[1] != "COMMAND":  # any of them
            check_exists(words)


def check_exists(words: list[str]) -> None:
    """The sub-command and its options, the target, the extra or the file."""
    program, *words = words
    if program in APPS:
        check_options(program, words)
    elif program == "make":
        makefile = (ROOT / "Makefile").read_text("utf-8")
        assert set(words) <= set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    elif program == "pip":
        named = re.fullmatch(r"labelmem(?P<paper>-paper)?(?:\[(?P<extra>\w+)\])?", words[-1])
        assert named
        folder = ROOT / "paper" if named["paper"] else ROOT
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        assert named["extra"] in {None, *project["optional-dependencies"]}
    else:
        assert program == "python" and (ROOT / words[0]).is_file()


def check_options(program: str, words: list[str]) -> None:
    """The sub-command has a help, which names all options that are given."""
    path: list[str] = []
    for word in words:
        if word.startswith("-") or (path and path[0] != "data"):
            break
        path.append(word)
    shown = CliRunner().invoke(APPS[program], [*path[:2], "--help"])
    assert shown.exit_code == 0, shown.output
    listed = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", shown.output))
    given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert given <= listed, f"unknown: {sorted(given - listed)}"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_has_every_command(name: str) -> None:
    assert f"`labelmem {name}" in (DOCS / "reference/command-line.md").read_text("utf-8")
