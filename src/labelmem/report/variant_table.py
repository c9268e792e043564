"""Variants of methods with all their figures, where a table is made of them."""

from __future__ import annotations

from dataclasses import fields

from labelmem.report.result_tables import table_of
from labelmem.report.results import DatasetResults, TableResults
from labelmem.report.tables import Table

__all__ = ["variant_table_of"]


class _Variants(TableResults):
    """The same results, of which the variants stand side by side."""

    @property
    def compared(self) -> list[str]:
        return [method for method in self.methods if self.variant_of(method)]


def variant_table_of(results: TableResults, dataset: DatasetResults) -> Table | None:
    """The variants on one data set, every metric of the table; None where there are none.

    Tables of sequences compare methods, and their ablation says enough of the variants. In those of
    pictures a variant has another network, other labels or more cells, and every column counts.
    """
    if results.table.task == "sequences" or results.only_ablation:
        return None
    made = _Variants(*(getattr(results, field.name) for field in fields(results)))
    return table_of(made, dataset) if made.compared else None
