"""The records of all experiments, grouped by table, data set and method, averaged over seeds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import fmean

from labelmem.errors import DataError
from labelmem_paper.experiments.records import Record, Records, digest
from labelmem_paper.experiments.table import Table, load_table, table_names
from labelmem_paper.report.pairing import Blocks, PairedEstimate

__all__ = ["TIMED", "DatasetResults", "Result", "TableResults", "load_results"]

ABLATION = "ablation"
"""The part of a table that tells what the parts of a method bring."""
TIMED = {"lockstep": "many streams", "speed": "one stream"}
"""Sizes whose runs are made for their times, one method after another on a machine that does
nothing else; figures of other sizes stand beside these."""
SAME_ORDER = {"perplexity": "log_perplexity"}
"""Metrics that put methods in the order of another one, which can be added up over tokens."""
NEEDED = ("table", "dataset", "method", "seed", "size", "config", "metrics", "started")
"""What a record must have to be shown."""


@dataclass(frozen=True)
class Result:
    """What one method did on one data set: a record for each seed, all of one configuration.

    Examples
    --------
    >>> runs = [{"seed": s, "metrics": {"mrr": m}, "interval": {"mrr": [m - 0.1, m + 0.1]}}
    ...         for s, m in enumerate([0.25, 0.75])]
    >>> Result("lmn", runs).estimate("mrr")
    PairedEstimate(value=0.5, low=0.4, high=0.6, beside='')
    """

    method: str
    records: Sequence[Record]
    """In the order of their seeds."""
    cells: int | None = None
    """The size of the memory, where the configuration sets one."""
    left_out: int = 0
    """How many older records with other configurations there are."""

    @property
    def seeds(self) -> list[int]:
        """The seeds that were run."""
        return [int(record["seed"]) for record in self.records]

    @property
    def variant_of(self) -> str | None:
        """The method that it is a variant of; None where it is one of its own."""
        base = self.records[0]["config"].get("options", {}).get("is", self.method)
        return None if base == self.method else str(base)

    @property
    def devices(self) -> list[str]:
        """Where it ran, sorted, so that the same records always give the same text."""
        return sorted({record["device"] for record in self.records if record.get("device")})

    @property
    def parameters(self) -> int | None:
        """How many numbers were trained, those of the model included."""
        counts = [int(r["parameters"]) for r in self.records if r.get("parameters") is not None]
        return max(counts, default=None)

    @property
    def us_per_token(self) -> float:
        """Microseconds for each token, averaged over seeds; nan where it was not measured."""
        times = [float(r["us_per_token"]) for r in self.records if "us_per_token" in r]
        return fmean(times) if times else math.nan

    def estimate(self, metric: str) -> PairedEstimate | None:
        """The mean of a metric over the seeds, between the means of the seeds' bounds."""
        having = [record for record in self.records if metric in record["metrics"]]
        if not having:
            return None
        # A single stream has no interval.
        bounds = [r.get("interval", {}).get(metric) or (math.nan, math.nan) for r in having]
        return PairedEstimate(
            fmean(float(record["metrics"][metric]) for record in having),
            fmean(float(low) for low, _ in bounds),
            fmean(float(high) for _, high in bounds),
            blocks=self._blocks(metric),
        )

    def _blocks(self, metric: str) -> Blocks | None:
        """The sums of a metric by blocks of streams, seed by seed; only some records keep them."""
        name = SAME_ORDER.get(metric, metric)
        kept = {int(r["seed"]): r["blocks"] for r in self.records if name in r.get("blocks", {})}
        return {seed: (by["tokens"], by[name]) for seed, by in kept.items()} or None


@dataclass(frozen=True)
class DatasetResults:
    """All methods on one data set, in the order of the table."""

    dataset: str
    results: Sequence[Result]
    own: Mapping[str, Collection[str]] = field(default_factory=dict)
    """For methods that the table gives settings of their own, e.g. fewer trials: which."""

    @property
    def records(self) -> list[Record]:
        """Every record that counts."""
        return [record for result in self.results for record in result.records]

    @property
    def subset(self) -> bool:
        """Whether any of the runs read only part of what was published."""
        return any(record.get("data", {}).get("subset", False) for record in self.records)

    @property
    def left_out(self) -> int:
        """How many older records with other configurations there are."""
        return sum(result.left_out for result in self.results)

    @property
    def alike(self) -> bool:
        """Whether all methods ran with the same settings, apart from those of their own."""
        keys = {key for record in self.records for key in record["config"]} - {"options"}
        found: defaultdict[str, set[str]] = defaultdict(set)
        for record in self.records:
            for key in keys.difference(self.own.get(record["method"], ())):
                found[key].add(digest(record["config"].get(key)))
        return all(len(values) == 1 for values in found.values())

    def find(self, method: str, cells: int | None = None) -> Result | None:
        """The result of a method with a memory of that size."""
        return next((r for r in self.results if (r.method, r.cells) == (method, cells)), None)

    def largest(self) -> list[Result]:
        """One result for each method: that with the largest memory where there are several."""
        best: dict[str, Result] = {}
        for result in self.results:
            kept = best.setdefault(result.method, result)
            if (result.cells or 0) > (kept.cells or 0):
                best[result.method] = result
        return list(best.values())


@dataclass(frozen=True)
class TableResults:
    """What is recorded of one table at one size."""

    table: Table
    size: str
    datasets: Sequence[DatasetResults]
    shipped: bool = True
    """Whether the table comes with the package; if not, only its records are known."""
    timed: Mapping[str, DatasetResults] = field(default_factory=dict)
    """What the sizes of ``TIMED`` say of the first data set, where they have records."""

    @property
    def name(self) -> str:
        """The name of the table, as in its records."""
        return self.table.name

    @property
    def methods(self) -> list[str]:
        """Every method with a record or a reason for having none, in the order of the table."""
        recorded = [result.method for one in self.datasets for result in one.results]
        not_run = [m for one in self.datasets for m in self.table.not_run.get(one.dataset, ())]
        return ordered(dict.fromkeys([*recorded, *not_run]), self.table.methods)

    @property
    def ablation(self) -> list[str]:
        """The variants, and before them what the first of them is a variant of."""
        variants = [method for method in self.methods if self.block_of(method) == ABLATION]
        base = self.variant_of(variants[0]) if variants else None
        return [*(method for method in self.methods if method == base), *variants]

    @property
    def compared(self) -> list[str]:
        """The methods that stand side by side; all of them where the table is only an ablation."""
        if self.only_ablation:
            return self.methods
        return [method for method in self.methods if not self.block_of(method)]

    @property
    def blocks(self) -> dict[str, list[str]]:
        """The methods of every other part of the table, by its heading."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for method in self.methods:
            if self.block_of(method) not in ("", ABLATION):
                found[self.block_of(method)].append(method)
        return dict(found)

    def block_of(self, method: str) -> str:
        """The part of the table that a row stands in: see :attr:`Row.block`."""
        block = self.table.row(method).block
        if block is None:
            return ABLATION if self.variant_of(method) else ""
        return block

    @property
    def only_ablation(self) -> bool:
        """Whether there is nothing in the table but a method and its variants."""
        return set(self.ablation) == set(self.methods)

    def variant_of(self, method: str) -> str | None:
        """The method that a row is a variant of, as recorded or else as the table has it."""
        for one in self.datasets:
            for result in one.results:
                if result.method == method:
                    return result.variant_of
        base: str | None = self.table.row(method).options.get("is")
        return base

    def label(self, method: str) -> str:
        """What the tables call a method."""
        return self.table.row(method).title or method

    def command(self, dataset: str) -> str:
        """What to type to make the records of a data set."""
        table = self.name if self.shipped else f"{self.name}.toml"
        size = "" if self.size == "paper" else f" --size {self.size}"
        return f"labelmem-paper reproduce {table} --dataset {dataset}{size}"


def load_results(folder: str | Path, size: str = "paper") -> list[TableResults]:
    """Read every ``*.jsonl`` of a folder and group what was run at one size.

    Records of the same data set, method, memory size and seed may differ in their configuration,
    because a table was changed between runs. Only those of the newest configuration count.
    """
    records = [record for path in sorted(Path(folder).glob("*.jsonl")) for record in _read(path)]
    wanted = [record for record in records if record["size"] == size]
    if not wanted:
        raise DataError(_nothing(Path(folder), size, records))
    by_table = _grouped(wanted, "table")
    timed = _grouped((r for r in records if r["size"] in TIMED and size not in TIMED), "table")
    return [_table(name, size, by_table[name], timed.get(name, ())) for name in sorted(by_table)]


def _read(path: Path) -> Iterable[Record]:
    for record in Records(path):
        missing = [name for name in NEEDED if name not in record]
        if missing:
            raise DataError(
                f"{path} holds a line without {', '.join(missing)}; it must hold only records of "
                "`labelmem-paper reproduce`: remove the line"
            )
        yield record


def _nothing(folder: Path, size: str, records: Sequence[Record]) -> str:
    if not records:
        return (
            f"there are no records in {folder}; run `labelmem-paper reproduce table2` first, or "
            "name another folder with --results"
        )
    sizes = sorted({str(record["size"]) for record in records})
    return (
        f"the {len(records)} records in {folder} are of size {', '.join(sizes)}, none of size "
        f"{size}; choose one with --size, or run `labelmem-paper reproduce` with --size {size}"
    )


def _grouped(records: Iterable[Record], field: str) -> dict[str, list[Record]]:
    groups: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[record[field]].append(record)
    return dict(groups)


def _table(
    name: str, size: str, records: Sequence[Record], timed: Sequence[Record]
) -> TableResults:
    shipped = name in table_names()
    table = load_table(name) if shipped else _unknown(name, records)
    by_dataset = _grouped(records, "dataset")
    datasets = [
        DatasetResults(dataset, _results(table, by_dataset[dataset]), _own(table, dataset))
        for dataset in ordered(by_dataset, table.datasets)
    ]
    first = datasets[0].dataset
    own = _grouped((record for record in timed if record["dataset"] == first), "size")
    times = {kind: DatasetResults(first, _results(table, own[kind])) for kind in own}
    return TableResults(table, size, datasets, shipped, times)


def _own(table: Table, dataset: str) -> dict[str, Collection[str]]:
    settings = {method: table.row(method).settings_on(dataset) for method in table.methods}
    return {method: tuple(said) for method, said in settings.items() if said}


def _unknown(name: str, records: Sequence[Record]) -> Table:
    """What can be told of a table from its records alone."""
    found = dict.fromkeys(metric for record in records for metric in record["metrics"])
    metrics = ordered(found, ("log_perplexity", "mrr"))
    return Table(name, name, "", metrics, [], [], {}, {}, {})


def _results(table: Table, records: Sequence[Record]) -> list[Result]:
    results = []
    by_method = _grouped(records, "method")
    for method in ordered(by_method, table.methods):
        by_cells: defaultdict[int | None, list[Record]] = defaultdict(list)
        for record in by_method[method]:
            by_cells[_cells(record)].append(record)
        for cells in sorted(by_cells, key=lambda cells: cells or 0):
            newest, left_out = _newest(by_cells[cells])
            results.append(Result(method, newest, cells, left_out))
    return results


def _cells(record: Record) -> int | None:
    capacity = record["config"].get("options", {}).get("memory", {}).get("capacity")
    return None if capacity is None else int(capacity)


def _newest(records: Sequence[Record]) -> tuple[list[Record], int]:
    """The records with the configuration of the run that was started last, one for each seed."""
    in_time = sorted(records, key=lambda record: datetime.fromisoformat(record["started"]))
    current = digest(in_time[-1]["config"])
    by_seed = {r["seed"]: r for r in in_time if digest(r["config"]) == current}
    return [by_seed[seed] for seed in sorted(by_seed)], len(records) - len(by_seed)


def ordered(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Those of ``order`` first, in that order, then the others by name."""
    place = {name: i for i, name in enumerate(order)}
    return sorted(names, key=lambda name: (place.get(name, len(place)), name))
