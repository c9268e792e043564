"""A table of the paper as data: which methods on which data sets, at which size."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from labelmem.errors import ConfigError
from labelmem.experiments.records import Record

__all__ = ["Run", "Table", "load_table", "table_names"]


@dataclass(frozen=True)
class Run:
    """One cell of a table with one seed: everything that decides its figures."""

    table: str
    dataset: str
    method: str
    seed: int
    size: str
    config: Mapping[str, Any]

    def identity(self) -> Record:
        """The first fields of its record."""
        return {
            "table": self.table,
            "dataset": self.dataset,
            "method": self.method,
            "seed": self.seed,
            "size": self.size,
            "config": self.config,
        }

    def __str__(self) -> str:
        return f"{self.table} {self.dataset} {self.method} seed {self.seed} ({self.size})"


@dataclass(frozen=True)
class Table:
    """The runs of one table, and what the paper printed there."""

    name: str
    title: str
    task: str
    """Which kind of experiment it is, e.g. ``sequences``."""
    metrics: Sequence[str]
    """What the table shows, the deciding one first."""
    datasets: Sequence[str]
    methods: Sequence[str]
    sizes: Mapping[str, Mapping[str, Any]]
    """For each size: seeds, trials, options of the experiment, and data sets if not all."""
    options: Mapping[str, Mapping[str, Any]]
    """Options of single methods, at every size."""
    published: Mapping[str, Mapping[str, Mapping[str, float]]]
    """The paper's figures by data set, method and metric."""

    def runs(
        self,
        size: str = "paper",
        datasets: Sequence[str] | None = None,
        methods: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> Iterator[Run]:
        """The runs asked for, data set by data set; by default all of them."""
        if size not in self.sizes:
            raise ConfigError(f"size is {size!r}; {self.name} has {sorted(self.sizes)}")
        settings = dict(self.sizes[size])
        all_seeds = settings.pop("seeds")
        default = settings.pop("datasets", self.datasets)
        known = [*self.datasets, *(name for name in default if name not in self.datasets)]
        for dataset in _chosen("dataset", datasets, default, known, self.name):
            for seed in all_seeds if seeds is None else seeds:
                for method in _chosen("method", methods, self.methods, self.methods, self.name):
                    config = settings | {"options": dict(self.options.get(method, {}))}
                    # Some data sets need other settings than the rest.
                    config |= config.pop("dataset", {}).get(dataset, {})
                    yield Run(self.name, dataset, method, int(seed), size, config)


def table_names() -> list[str]:
    """The tables that come with the package.

    Examples
    --------
    >>> "table2" in table_names()
    True
    """
    folder = resources.files("labelmem.experiments") / "tables"
    return sorted(
        p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml")
    )


def load_table(name: str) -> Table:
    """A shipped table by its name, or one of your own by its path.

    Examples
    --------
    >>> load_table("table2").metrics
    ['log_perplexity', 'mrr']
    """
    if name.endswith(".toml"):
        path = Path(name)
        if not path.exists():
            raise ConfigError(f"there is no file {name}")
        text, name = path.read_text(encoding="utf-8"), path.stem
    elif name in table_names():
        file = resources.files("labelmem.experiments") / "tables" / f"{name}.toml"
        text = file.read_text(encoding="utf-8")
    else:
        raise ConfigError(
            f"there is no table {name!r}; known are {table_names()}, or give a .toml file"
        )
    try:
        raw = tomllib.loads(text)
        return Table(
            name=name,
            title=raw["title"],
            task=raw["task"],
            metrics=raw["metrics"],
            datasets=raw["datasets"],
            methods=raw["methods"],
            sizes=raw["size"],
            options=raw.get("method", {}),
            published=raw.get("published", {}),
        )
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise ConfigError(f"the table {name!r} cannot be read: {error!r}") from None


def _chosen(
    what: str,
    wanted: Sequence[str] | None,
    default: Sequence[str],
    known: Sequence[str],
    table: str,
) -> Sequence[str]:
    if wanted is None:
        return default
    for name in wanted:
        if name not in known:
            raise ConfigError(f"{table} has no {what} {name!r}; it has {', '.join(known)}")
    return wanted
