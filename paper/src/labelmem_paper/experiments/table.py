"""A table of the paper as data: which methods on which data sets, at which size."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from labelmem.errors import ConfigError
from labelmem_paper.experiments.records import Record

__all__ = ["Row", "Run", "Table", "load_table", "merged", "table_names"]

ABOUT = ("title", "note", "block", "datasets", "dataset", "settings")
"""What ``[method.ROW]`` says of the row itself; all the rest is options of its method."""


@dataclass(frozen=True)
class Run:
    """One cell of a table with one seed: everything that decides its figures."""

    table: str
    dataset: str
    method: str
    seed: int
    size: str
    config: Mapping[str, Any]
    task: str = "sequences"
    """The kind of the table, which picks the code that runs it."""

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
class Row:
    """One row of a table: a method or, where its options say what it ``is``, a variant of one."""

    name: str
    """What its records call their method."""
    title: str = ""
    """How the tables of a report call it; empty takes the name."""
    note: str = ""
    """What a reader must know of it, written below those tables."""
    block: str | None = None
    """The part of the table that it stands in: ``""`` is the first, where methods are compared,
    ``ablation`` that of variants; others are headings. None puts variants into the ablation."""
    datasets: Sequence[str] | None = None
    """The data sets of the table that it is run on; None is all of them."""
    dataset: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options that differ on some data sets."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of its method, at every size."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What it has other than the size says, e.g. fewer trials."""

    def options_on(self, dataset: str) -> dict[str, Any]:
        """Options of its method on one data set."""
        said = dict(self.dataset.get(dataset, {}))
        said.pop("settings", None)
        return merged(self.options, said)

    def settings_on(self, dataset: str) -> Mapping[str, Any]:
        """What it has other than the size says, on one data set."""
        return merged(self.settings, self.dataset.get(dataset, {}).get("settings", {}))


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
    """For each size: seeds, trials, options of the experiment; data sets and methods if not all."""
    options: Mapping[str, Mapping[str, Any]]
    """What the file says of single rows; see :meth:`row`."""
    published: Mapping[str, Mapping[str, Mapping[str, float]]]
    """The paper's figures by data set, method and metric."""
    not_run: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By data set and method, why there is no figure; only who names both gets the run."""
    apart: Sequence[str] = ()
    """The data sets that a report keeps apart: nobody looked at them while a method was made."""

    def row(self, method: str) -> Row:
        """What is said of a row; of most methods that is nothing.

        ``like = "ROW"`` makes it a variant of another one, with all that is said of that one except
        the options named in ``without``.
        """
        said = dict(self.options.get(method, {}))
        like, without = said.pop("like", None), said.pop("without", ())
        about = {key: said[key] for key in ABOUT if key in said}
        options = {key: value for key, value in said.items() if key not in ABOUT}
        if like is None:
            return Row(method, options=options, **about)
        # A variant: all that its model row says, but for what it leaves out or says itself.
        other = self.row(like)

        def kept(said: Mapping[str, Any]) -> dict[str, Any]:
            return {key: value for key, value in said.items() if key not in without}

        shared = {name: kept(of) for name, of in other.dataset.items()}
        own = {"is": like} | options
        about["dataset"] = {
            name: merged(shared.get(name, {}), about.get("dataset", {}).get(name, {}))
            for name in [*shared, *about.get("dataset", {})]
        }
        about["settings"] = merged(other.settings, about.get("settings", {}))
        return Row(method, options=merged(kept(other.options), own), **about)

    def runs(
        self,
        size: str = "paper",
        datasets: Sequence[str] | None = None,
        methods: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> Iterator[Run]:
        """The runs asked for, data set by data set; by default all that the table means to have."""
        if size not in self.sizes:
            raise ConfigError(f"size is {size!r}; {self.name} has {sorted(self.sizes)}")
        settings = dict(self.sizes[size])
        all_seeds = settings.pop("seeds")
        default = settings.pop("datasets", self.datasets)
        known = [*self.datasets, *(name for name in default if name not in self.datasets)]
        by_dataset = settings.pop("dataset", {})
        usual = settings.pop("methods", self.methods)
        rows = [
            self.row(method)
            for method in _chosen("method", methods, usual, self.methods, self.name)
        ]
        chosen = _chosen("dataset", datasets, default, known, self.name)
        named = datasets is not None and methods is not None
        if not any(self._has(row, dataset, named) for dataset in chosen for row in rows):
            raise ConfigError(
                f"{self.name} has no run of {', '.join(row.name for row in rows)} on "
                f"{', '.join(chosen)}: rows may be limited to some data sets, and what stands "
                "under not_run is run only if both data set and method are named"
            )
        for dataset in chosen:
            shared = merged(settings, by_dataset.get(dataset, {}))
            for seed in all_seeds if seeds is None else seeds:
                for row in rows:
                    if self._has(row, dataset, named):
                        config = merged(shared, row.settings_on(dataset))
                        config["options"] = row.options_on(dataset)
                        yield Run(self.name, dataset, row.name, int(seed), size, config, self.task)

    def _has(self, row: Row, dataset: str, named: bool) -> bool:
        """Whether a row is run on a data set; ``named`` if somebody asked for just these two."""
        # What is no data set of the table stands in for all of them, as the smoke size's does.
        limits = None if dataset not in self.datasets else row.datasets
        if limits is not None and dataset not in limits:
            return False
        return named or row.name not in self.not_run.get(dataset, {})


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid over ``base``; a dictionary in both keeps what only ``base`` has.

    Examples
    --------
    >>> merged({"trials": 24, "model": {"kind": "gru", "dim": 128}}, {"model": {"dim": 64}})
    {'trials': 24, 'model': {'kind': 'gru', 'dim': 64}}
    """
    both = {
        name: {**base[name], **value}
        for name, value in over.items()
        if isinstance(value, Mapping) and isinstance(base.get(name), Mapping)
    }
    return {**base, **over, **both}


def table_names() -> list[str]:
    """The tables that come with the package.

    Examples
    --------
    >>> "table2" in table_names()
    True
    """
    folder = resources.files("labelmem_paper") / "tables"
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
        file = resources.files("labelmem_paper") / "tables" / f"{name}.toml"
        text = file.read_text(encoding="utf-8")
    else:
        raise ConfigError(
            f"there is no table {name!r}; known are {table_names()}, or give a .toml file"
        )
    try:
        raw = tomllib.loads(text)
        table = Table(
            name=name,
            title=raw["title"],
            task=raw["task"],
            metrics=raw["metrics"],
            datasets=raw["datasets"],
            methods=raw["methods"],
            sizes=raw["size"],
            options=raw.get("method", {}),
            published=raw.get("published", {}),
            not_run=raw.get("not_run", {}),
            apart=raw.get("apart", ()),
        )
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise ConfigError(f"the table {name!r} cannot be read: {error!r}") from None
    _check_datasets(table)
    return table


def _check_datasets(table: Table) -> None:
    """A data set with a mistake in its name would be passed over, and nobody would know."""
    known = {*table.datasets, *(one for s in table.sizes.values() for one in s.get("datasets", ()))}
    said: dict[str, Iterable[str]] = {
        f"size.{size}": said.get("dataset", {}) for size, said in table.sizes.items()
    }
    for method in table.options:
        row = table.row(method)
        said[f"method.{method}"] = [*row.dataset, *(row.datasets or ())]
    said |= {"not_run": table.not_run, "apart": table.apart}
    for where, names in said.items():
        for name in names:
            if name not in known:
                raise ConfigError(
                    f"{where} of {table.name} speaks of the data set {name!r}; the table has "
                    f"{', '.join(sorted(known))}"
                )


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
