"""The pages of the documentation and the blocks in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = sorted(page.relative_to(ROOT).as_posix() for page in DOCS.rglob("*.md"))
"""Pages of the site, by their path in the repository."""
PAPER = sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "paper/docs").glob("*.md"))
PAGES = ["CONTRIBUTING.md", "README.md", "paper/README.md", *PAPER, *SITE]
SHELL = ("", "sh")
"""How blocks of commands are marked."""
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\S*)[^`]*$")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    """Where in the page its first line stands, counted from 1."""


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    opened: tuple[str, int] | None = None
    inside: list[str] = []
    for number, line in enumerate(text_of(page).splitlines(), start=1):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened, inside = (fence["language"], number + 1), []
        elif opened is not None and fence:
            yield Block(opened[0], "\n".join(inside) + "\n", opened[1])
            opened = None
        else:
            inside.append(line)
    assert opened is None, f"{page}: the block at line {opened} is not closed"


def commands(page: str) -> list[list[str]]:
    """Every command in the shell blocks of a page as its words, without comments."""
    lines = [
        line
        for block in blocks(page)
        if block.language in SHELL
        for line in block.text.replace("\\\n", " ").splitlines()
    ]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def commands_in_the_text(page: str) -> list[list[str]]:
    """Every command that a sentence or a table of a page names, as its words."""
    text = re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)
    return [
        shlex.split(c)
        for c in re.findall(r"`((?:labelmem|labelmem-paper|make|pip|python) [^`]+)`", text)
    ]
