"""The documentation is true: its Python runs, its commands exist, its files are there."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from labelmem.cli import COMMANDS, app
from labelmem.errors import MissingExtraError

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
EXTRAS = {"matplotlib", "pyarrow", "ray", "river", "sklearn", "tokenizers", "transformers"}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\S*)[^`]*$")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    """Where in the page its first line stands, counted from 1."""


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page of docs/."""
    opened: tuple[str, int] | None = None
    inside: list[str] = []
    for number, line in enumerate((DOCS / page).read_text("utf-8").splitlines(), start=1):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened, inside = (fence["language"], number + 1), []
        elif opened is not None and fence:
            yield Block(opened[0], "\n".join(inside) + "\n", opened[1])
            opened = None
        else:
            inside.append(line)
    assert opened is None, f"{page}: the block at line {opened} is not closed"


def run(block: Block, page: str, names: dict[str, Any]) -> None:
    """Run a block in the page's namespace; one that begins with >>> also says what comes out."""
    if not block.text.lstrip().startswith(">>>"):
        code = "\n" * (block.line - 1) + block.text  # so that a traceback has the page's lines
        exec(compile(code, str(DOCS / page), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(
        block.text, names, page, str(DOCS / page), block.line - 1
    )
    test.globs = names
    runner = doctest.DebugRunner(optionflags=FLAGS)
    try:
        runner.run(test, clear_globs=False)
    except doctest.DocTestFailure as failed:
        line = block.line + failed.example.lineno
        raise AssertionError(
            f"{page}:{line}: {failed.example.source}expected {failed.example.want}got {failed.got}"
        ) from None
    except doctest.UnexpectedException as crashed:
        raise crashed.exc_info[1] from None


def a_small_language_model(folder: Path) -> dict[str, Any]:
    """What the reader of the page on Hugging Face has: the name of a model and its tokenizer."""
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["<pad>", *"What the user wrote so far. became of it. my card has not come yet".split()]
    known = {word: number for number, word in enumerate(dict.fromkeys(words))}
    tokenizer = Tokenizer(models.WordLevel(known, "<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>")
    ends = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
    config = transformers.GPT2Config(
        vocab_size=len(known), n_positions=64, n_embd=8, n_layer=1, n_head=2, **ends
    )
    for part in (fast, transformers.GPT2LMHeadModel(config)):
        part.save_pretrained(folder)
    return {"name": str(folder)}


STAGE = {"how-to/hugging-face.md": a_small_language_model}
"""What a page takes for granted."""


def needs_python(page: str) -> bool:
    return any(block.language == "python" for block in blocks(page))


@pytest.mark.parametrize("page", [page for page in PAGES if needs_python(page)])
def test_the_python_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # pages may write files
    names: dict[str, Any] = {"__name__": "__page__"}
    with torch.random.fork_rng(devices=[]):
        if page in STAGE:
            names |= STAGE[page](tmp_path / "taken for granted")
        for block in blocks(page):
            if block.language != "python":
                continue
            try:
                run(block, page, names)
            except MissingExtraError as missing:
                pytest.skip(str(missing))
            except ModuleNotFoundError as missing:
                if (missing.name or "").partition(".")[0] not in EXTRAS:
                    raise
                pytest.skip(f"{missing.name} is not installed")


def commands() -> list[tuple[str, int, str]]:
    """Every command in the shell blocks: page, line, text."""
    return [
        (page, block.line + index, line.removeprefix("$ ").partition(" #")[0].strip())
        for page in PAGES
        for block in blocks(page)
        if block.language in ("", "sh", "bash", "shell", "console")
        for index, line in enumerate(block.text.splitlines())
        if line.removeprefix("$ ").split(" ")[0] in ("labelmem", "make", "python")
    ]


@pytest.mark.parametrize(
    ("page", "line", "command"), commands(), ids=lambda part: str(part).replace("/", "-")
)
def test_a_command_of_a_page_exists(page: str, line: int, command: str) -> None:
    program, *words = shlex.split(command)
    if program == "labelmem":
        check_labelmem(words)
    elif program == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        assert set(words) <= set(targets)
    elif not words[0].startswith("-"):
        assert (ROOT / words[0]).is_file()


def check_labelmem(words: list[str]) -> None:
    """The sub-command has a help, which names all options that are given."""
    path = []
    for word in words:
        if word.startswith("-") or (path and path[0] != "data"):
            break
        path.append(word)
    shown = CliRunner().invoke(app, [*path[:2], "--help"])
    assert shown.exit_code == 0, shown.output
    listed = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", shown.output))
    given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert given <= listed, f"unknown: {sorted(given - listed)}"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_has_every_command(name: str) -> None:
    assert f"`labelmem {name}" in (DOCS / "reference/command-line.md").read_text("utf-8")


def test_every_page_is_in_the_navigation_and_the_other_way_round() -> None:
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"([\w/-]+\.md)$", text, re.MULTILINE)
    assert sorted(listed) == PAGES


def river_rows() -> Iterator[str]:
    """The record of river's streams as rows of a table: accuracy, and microseconds per event."""
    for record in json.loads((ROOT / "benchmarks/river_streams.json").read_text("utf-8")):
        figures = [
            f"{100 * record['accuracy'][name]:.1f} ({record['us'][name]:,.0f})"
            for name in record["accuracy"]
        ]
        yield " | ".join([f"| {record['stream']}", *figures]) + " |"


def test_the_table_of_rivers_streams_is_what_was_recorded() -> None:
    page = (DOCS / "how-to/sklearn-river.md").read_text("utf-8")
    table = page.partition("<!-- river -->\n")[2].partition("<!-- /river -->")[0]
    assert table.strip().splitlines()[2:] == list(river_rows())


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
    assert "fsq-nyc" in (tmp_path / "results.html").read_text("utf-8")  # from the README
    api = (tmp_path / "reference" / "labelmem.html").read_text("utf-8")
    assert "Names of the logits" in api and ":class:" not in api  # from the docstrings


@pytest.mark.parametrize("page", PAGES)
def test_links_between_files_lead_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (DOCS / page).read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s#]+)", text):
        if "://" not in target:
            assert ((DOCS / page).parent / target).exists(), target
