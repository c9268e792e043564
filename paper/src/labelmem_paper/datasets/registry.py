"""What is known of each data set: publisher, licence, citation, checksums, the paper's figures."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from labelmem.errors import ConfigError

__all__ = ["Info", "PaperRow", "RemoteFile", "info", "names"]


@dataclass(frozen=True)
class RemoteFile:
    """A file as its publisher offers it."""

    name: str
    """What to call it here."""
    url: str
    """Where it is."""
    sha256: str = ""
    """Its checksum; empty when unknown."""
    md5: str = ""
    """Its weaker checksum, for files of which only that is documented."""
    bytes: int = 0
    """Its size; 0 when unknown."""
    shared: bool = False
    """Whether several data sets are in it."""


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper's Table 1."""

    train: int
    test: int
    mean_length: float
    labels: int


@dataclass(frozen=True)
class Info:
    """Facts about a data set.

    Examples
    --------
    >>> info("omniglot").licence
    'MIT'
    >>> info("fsq-nyc").paper.labels
    8325
    """

    name: str
    title: str
    licence: str
    homepage: str
    citation: str
    size: str
    """How much was published."""
    files: tuple[RemoteFile, ...]
    """What ``labelmem-paper data fetch`` downloads; empty where that is not possible."""
    manual: str = ""
    """What to do by hand where the publisher asks for a form or an agreement."""
    paper: PaperRow | None = None
    """What the paper says of it in Table 1."""


def names() -> tuple[str, ...]:
    """Return the names of all data sets, the generated one last.

    Examples
    --------
    >>> names()[:3], names()[-1]
    (('brightkite', 'fsq-nyc', 'fsq-tokyo'), 'synthetic')
    """
    return tuple(_table())


def info(name: str) -> Info:
    """Return the facts about one data set."""
    if name not in _table():
        raise ConfigError(f"there is no data set {name!r}; there are {', '.join(names())}")
    facts = dict(_table()[name])
    listed = tuple(RemoteFile(**file) for file in facts.pop("files"))
    paper = facts.pop("paper", None)
    return Info(name=name, files=listed, paper=PaperRow(**paper) if paper else None, **facts)


@cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads(
        files("labelmem_paper.datasets").joinpath("registry.toml").read_text("utf-8")
    )
