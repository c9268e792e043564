"""The Python of the documentation runs, and gives what it says."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest
import torch
from docs.pages import ROOT, SITE, Block, blocks
from docs.staging import a_small_language_model

from labelmem.errors import MissingExtraError

EXTRAS = {"matplotlib", "pyarrow", "ray", "river", "sklearn", "tokenizers", "transformers"}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
STAGE = {"docs/how-to/hugging-face.md": a_small_language_model}
"""What a page takes for granted."""


def python_of(page: str) -> list[Block]:
    return [block for block in blocks(page) if block.language == "python"]


def run(block: Block, page: str, names: dict[str, Any]) -> None:
    """Run a block in the page's namespace; one that begins with >>> also says what comes out."""
    path = str(ROOT / page)
    if not block.text.lstrip().startswith(">>>"):
        code = "\n" * (block.line - 1) + block.text  # so that a traceback has the page's lines
        exec(compile(code, path, "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(block.text, names, page, path, block.line - 1)
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


@pytest.mark.parametrize("page", [page for page in SITE if python_of(page)])
def test_the_python_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # pages may write files
    names: dict[str, Any] = {"__name__": "__page__"}
    with torch.random.fork_rng(devices=[]):
        if page in STAGE:
            names |= STAGE[page](tmp_path / "taken for granted")
        for block in python_of(page):
            try:
                run(block, page, names)
            except MissingExtraError as missing:
                pytest.skip(str(missing))
            except ModuleNotFoundError as missing:
                if (missing.name or "").partition(".")[0] not in EXTRAS:
                    raise
                pytest.skip(f"{missing.name} is not installed")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_rest_is_left_to_pytest(page: str, pytestconfig: pytest.Config) -> None:
    found = python_of(page)
    assert all(block.text.startswith(">>>") for block in found)
    assert not found or page in pytestconfig.getoption("doctestglob")
    assert not found or page in pytestconfig.getini("testpaths")
