from __future__ import annotations

from pathlib import Path

from labelmem_paper.report.result_ablation import ablation_of
from labelmem_paper.report.results import TableResults
from report.made_up import DATASETS, VARIANTS, made_up, many
from report.reading import loaded, rows_of, variant

from labelmem.render.tables import Table, to_markdown


def ablation(table: TableResults) -> Table:
    found = ablation_of(table)
    assert found is not None
    return found


def cells(table: TableResults) -> dict[str, list[str]]:
    markdown = to_markdown(ablation(table), intervals=False)
    return {row[0]: row[1:] for row in rows_of(markdown)[2:]}


def test_a_table_without_variants_has_none(tmp_path: Path) -> None:
    assert ablation_of(loaded(tmp_path, made_up(), made_up("static"))) is None


def test_differences_are_those_to_the_first_row(tmp_path: Path) -> None:
    runs = made_up("lmn", loss=6.0), variant("no-key", loss=6.25), variant("no-theta", loss=5.9)
    table = loaded(tmp_path, *runs, made_up("static", loss=1.0))
    assert cells(table) == {
        "lmn": ["6.00 (.250)"], "no-key": ["6.25 (.250) +.25"], "no-theta": ["**5.90** (.250) -.10"]
    }  # fmt: skip
    assert ablation(table).caption.endswith("variants of lmn.")


def test_only_seeds_that_both_have_are_compared(tmp_path: Path) -> None:
    base = [made_up("lmn", seed, loss=6.0 + seed) for seed in (0, 1, 2)]
    other = [variant("no-key", seed=seed, loss=6.5 + seed) for seed in (1, 2, 3)]
    table = loaded(tmp_path, *base, *other)
    # The means are 7.00 and 8.50, but of different streams.
    assert cells(table)["no-key"] == ["8.50 (.250) +.50"]
    alone = loaded(tmp_path, base[0], other[2])
    assert cells(alone)["no-key"] == ["9.50 (.250)"]


def test_seeds_that_disagree_are_marked(tmp_path: Path) -> None:
    base = [made_up("lmn", seed) for seed in (0, 1)]
    other = [variant("no-key", seed=seed, loss=6.0 + x) for seed, x in ((0, 0.3), (1, -0.1))]
    assert cells(loaded(tmp_path, *base, *other))["no-key"] == ["6.10 (.250) ≈+.10"]


def test_titles_notes_order_and_missing_cells(tmp_path: Path) -> None:
    rows = {"b": {"is": "lmn", "title": "No key", "note": "As in the paper."}}
    runs = made_up("lmn"), variant("b"), variant("a"), variant("a", dataset="geolife")
    reasons = {"geolife": {"b": "Nine days."}}
    table = loaded(tmp_path, *runs, rows=rows, not_run=reasons)
    table.table.methods[:] = ["static", "b", "lmn", "a"]  # type: ignore[index]
    assert list(cells(table)) == ["lmn", "No key¹", "a"]
    assert cells(table)["No key¹"][1] == "–²"
    assert cells(table)["a"] == ["**6.00** (.250) +.00", "6.00 (.250)"]
    assert ablation(table).note.split("\n")[1:] == ["¹ As in the paper.", "² Nine days."]


def test_data_sets_without_variants_are_left_out(tmp_path: Path) -> None:
    runs = made_up("lmn"), variant("a"), made_up("lmn", dataset="geolife")
    assert [c.key for c in ablation(loaded(tmp_path, *runs)).columns] == ["method", "fsq-nyc"]


def test_variants_without_what_they_vary(tmp_path: Path) -> None:
    table = loaded(tmp_path, variant("a", loss=6.0), variant("b", loss=6.1))
    assert cells(table) == {"a": ["**6.00** (.250)"], "b": ["6.10 (.250) +.10"]}


def test_variants_of_several_methods_share_the_first_row(tmp_path: Path) -> None:
    runs = made_up("lmn"), made_up("lmn-fixed"), variant("a"), variant("b", "lmn-fixed")
    assert list(cells(loaded(tmp_path, *runs))) == ["lmn", "a", "b"]


def test_beside_all_of_table_2(tmp_path: Path) -> None:
    shown = cells(loaded(tmp_path, *many(variants=True)))
    assert set(shown) == {"lmn", *VARIANTS}
    assert {len(row) for row in shown.values()} == {len(DATASETS)}
