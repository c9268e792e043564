"""The result tables inside a README, between marks, always as the records say.

A block stands between ``<!-- results:NAME -->`` and ``<!-- /results:NAME -->``; its name is that of
a recorded table, or ``table1`` for the figures of the data sets themselves. ``NAME:main`` has what
matters most of a table, ``NAME:more`` the rest; ``NAME-summary`` is the one table of a README that
has room for no more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from labelmem.errors import ConfigError
from labelmem_paper.report.result_markdown import Part, markdown_of
from labelmem_paper.report.results import TableResults

__all__ = ["Update", "block_names", "updated"]

NAME = r"[\w.-]+(?::(?:main|more))?"
OPENING = re.compile(rf"^<!-- results:({NAME}) -->$", re.MULTILINE)
BLOCK = re.compile(
    rf"^(?P<opening><!-- results:(?P<name>{NAME}) -->\n)"
    r"(?P<content>.*?)"
    r"(?P<closing>^<!-- /results:(?P=name) -->$)",
    re.MULTILINE | re.DOTALL,
)
DATASETS = "table1"
SUMMARY = "-summary"


@dataclass(frozen=True)
class Update:
    """What a README should say."""

    text: str
    """All of it, every block made anew."""
    stale: Sequence[str]
    """The blocks that said something else."""
    skipped: Sequence[str]
    """The blocks that were left as they are, each with the reason."""


def block_names(text: str) -> list[str]:
    r"""The blocks of a README, in order.

    Examples
    --------
    >>> block_names("<!-- results:table2 -->\nold\n<!-- /results:table2 -->\n")
    ['table2']
    """
    closed = [block["name"] for block in BLOCK.finditer(text)]
    for name in OPENING.findall(text):
        if name not in closed:
            raise ConfigError(
                f"the block <!-- results:{name} --> has no end; close it with a line "
                f"<!-- /results:{name} -->"
            )
    return closed


def updated(text: str, tables: Sequence[TableResults], datasets: bool = True) -> Update:
    """Make every block of a README anew from the records; nothing is written.

    Parameters
    ----------
    text
        The README.
    tables
        What is recorded.
    datasets
        Whether the block of Table 1 is made too, which reads the data sets. It is left as it is
        where some of them are not on this computer.
    """
    contents: dict[str, str] = {}
    skipped = []
    for name in block_names(text):
        if name != DATASETS:
            contents[name] = _recorded(name, tables)
        elif not datasets:
            skipped.append(f"{name}: not asked for")
        elif missing := _missing_datasets():
            skipped.append(f"{name}: {', '.join(missing)} not on this computer")
        else:
            contents[name] = _table1()
    stale = []

    def renew(block: re.Match[str]) -> str:
        name, old = block["name"], block["content"]
        new = f"\n{contents[name]}\n\n" if name in contents else old
        if new != old:
            stale.append(name)
        return block["opening"] + new + block["closing"]

    return Update(BLOCK.sub(renew, text), stale, skipped)


def _recorded(block: str, tables: Sequence[TableResults]) -> str:
    name, _, part = block.partition(":")
    if name.endswith(SUMMARY):
        name, part = name.removesuffix(SUMMARY), "summary"
    for table in tables:
        if table.name == name:
            return markdown_of(table, cast(Part, part or "all"))
    known = ", ".join(table.name for table in tables)
    raise ConfigError(
        f"there is a block results:{name}, but no record of {name} at this size; recorded are "
        f"{known}: run `labelmem-paper reproduce {name}`, or remove the block"
    )


def _missing_datasets() -> list[str]:
    from labelmem_paper.datasets import info, names, source_of

    return [name for name in names() if info(name).paper is not None and source_of(name) is None]


def _table1() -> str:
    from labelmem_paper.datasets.stats import as_markdown, table1

    return as_markdown(table1())
