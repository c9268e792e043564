from __future__ import annotations

from pathlib import Path

import pytest
from labelmem_paper.datasets import names
from labelmem_paper.experiments.adapt.tasks import TASKS
from labelmem_paper.experiments.kinds import contender
from labelmem_paper.experiments.table import Table, load_table, merged, table_names

from labelmem.errors import ConfigError

HEAD = 'title="x"\ntask="sequences"\nmetrics=["mrr"]\ndatasets=["a","b"]\nmethods=["m","n"]\n'
SIZE = "[size.paper]\nseeds=[0,1]\ntrials=3\nmodel={kind='gru',dim=8}\n"
SMOKE = "[size.smoke]\nseeds=[0]\ntrials=1\ndatasets=['tiny']\n"


def written(folder: Path, *parts: str) -> Table:
    """A table of the data sets a and b and the methods m and n, with ``parts``."""
    path = folder / "mine.toml"
    path.write_text("\n".join([HEAD, SIZE, SMOKE, *parts]))
    return load_table(str(path))


def pairs(table: Table, *wishes: object) -> list[tuple[str, str]]:
    """Data set and method of every run with the first seed."""
    runs = table.runs("paper", *wishes)  # type: ignore[arg-type]
    return [(run.dataset, run.method) for run in runs if run.seed == 0]


@pytest.mark.parametrize("name", table_names())
def test_every_shipped_table_names_only_what_exists(name: str) -> None:
    table = load_table(name)
    assert {"paper", "smoke"} <= set(table.sizes)
    assert set(table.datasets) <= set(TASKS if table.task == "adapt" else names())
    for method in table.methods:
        contender(method, table.row(method).options, table.task)
    for dataset in (*table.published, *table.not_run):
        assert dataset in table.datasets
    for reasons in table.not_run.values():
        assert set(reasons) <= set(table.methods)


def test_runs_are_the_product_of_datasets_seeds_and_methods(tmp_path: Path) -> None:
    runs = written(tmp_path).runs("paper")
    assert [(run.dataset, run.seed, run.method) for run in runs] == [
        (dataset, seed, method) for dataset in "ab" for seed in (0, 1) for method in "mn"
    ]
    chosen = list(load_table("table2").runs("paper", ["geolife"], ["counter"], [7]))
    assert [(r.dataset, r.method, r.seed) for r in chosen] == [("geolife", "counter", 7)]


def test_settings_of_a_dataset_are_laid_over_those_of_all(tmp_path: Path) -> None:
    more = "[size.paper.dataset.b]\ntrials=9\nmodel={dim=4}\n[method.m]\nk=1\n"
    a, _, b, _ = written(tmp_path, more).runs("paper", seeds=[0])
    assert (a.config["trials"], b.config["trials"]) == (3, 9)
    assert a.config["model"] == {"kind": "gru", "dim": 8}
    assert b.config["model"] == {"kind": "gru", "dim": 4}
    assert a.config["options"] == {"k": 1}
    assert "dataset" not in b.config and "seeds" not in b.config


def test_options_of_a_row_on_a_dataset_are_laid_over_its_others(tmp_path: Path) -> None:
    more = (
        "[method.m]\nk=1\nmodel={kind='gru',dim=8}\n"
        "[method.m.dataset.b]\nmodel={dim=4}\ncombiner={hidden=2}\n"
    )
    a, b = written(tmp_path, more).runs("paper", methods=["m"], seeds=[0])
    assert a.config["options"] == {"k": 1, "model": {"kind": "gru", "dim": 8}}
    assert b.config["options"] == {
        "k": 1, "model": {"kind": "gru", "dim": 4}, "combiner": {"hidden": 2},
    }  # fmt: skip


def test_merging_is_one_level_deep_and_changes_neither_side() -> None:
    base = {"a": {"x": {"p": 1}, "y": 2}, "b": {"z": 3}, "c": 4}
    over = {"a": {"x": {"q": 5}}, "b": 6, "c": {"w": 7}}
    result = merged(base, over)
    assert result == {"a": {"x": {"q": 5}, "y": 2}, "b": 6, "c": {"w": 7}}
    result["a"]["y"] = 0
    assert base["a"]["y"] == 2 and over["a"] == {"x": {"q": 5}}  # type: ignore[index]


def test_a_variant_runs_under_its_own_name_and_keeps_what_it_is(tmp_path: Path) -> None:
    more = '[method.n]\nis="lmn"\npartition=false\ntitle="undivided"\nnote="As in the paper."\n'
    table = written(tmp_path, more)
    (run,) = table.runs("paper", ["a"], ["n"], [0])
    assert run.method == "n"
    # Title and note are not in the identity: a better word must not ask for a new run.
    assert run.config["options"] == {"is": "lmn", "partition": False}
    assert contender(run.method, run.config["options"]) is contender("lmn")
    row = table.row("n")
    assert (row.title, row.note) == ("undivided", "As in the paper.")
    assert (table.row("m").title, table.row("m").options) == ("", {})


def test_a_row_may_be_limited_to_some_datasets(tmp_path: Path) -> None:
    table = written(tmp_path, '[method.n]\ndatasets=["b"]\n')
    assert pairs(table) == [("a", "m"), ("b", "m"), ("b", "n")]
    # What only stands in for the data sets, as at the smoke size, sees every row.
    assert [run.method for run in table.runs("smoke")] == ["m", "n"]
    with pytest.raises(ConfigError, match="mine has no run of n on a: rows may be limited"):
        pairs(table, ["a"], ["n"])


def test_what_is_not_run_must_be_asked_for_by_name(tmp_path: Path) -> None:
    table = written(tmp_path, '[not_run.a]\nn="nine days"\n')
    assert pairs(table) == [("a", "m"), ("b", "m"), ("b", "n")]
    assert pairs(table, None, ["n"]) == [("b", "n")]
    assert pairs(table, ["a"]) == [("a", "m")]
    assert pairs(table, ["a"], ["n"]) == [("a", "n")]


@pytest.mark.parametrize(
    ("part", "where"),
    [
        ("[size.paper.dataset.c]\ntrials=1\n", "size.paper"),
        ("[method.m.dataset.c]\nk=1\n", "method.m"),
        ("[method.m]\ndatasets=['a','c']\n", "method.m"),
        ("[not_run.c]\nm='why'\n", "not_run"),
    ],
    ids=["size", "options", "limit", "not_run"],
)
def test_a_mistyped_dataset_is_told(tmp_path: Path, part: str, where: str) -> None:
    with pytest.raises(ConfigError, match=f"{where} of mine speaks of the data set 'c'"):
        written(tmp_path, part)


def test_some_datasets_may_be_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("\n".join([HEAD, "apart=['b']", SIZE]))
    assert load_table(str(path)).apart == ["b"]
    path.write_text("\n".join([HEAD, "apart=['c']", SIZE]))
    with pytest.raises(ConfigError, match="apart of mine speaks of the data set 'c'"):
        load_table(str(path))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"size": "huge"}, "size is 'huge'"),
        ({"datasets": ["mnist"]}, "no dataset 'mnist'"),
        ({"methods": ["magic"]}, "no method 'magic'"),
    ],
)
def test_unknown_wishes_are_refused(call: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        list(load_table("table2").runs(**call))  # type: ignore[arg-type]


def test_unknown_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no table 'table99'"):
        load_table("table99")
    with pytest.raises(ConfigError, match="there is no file"):
        load_table("nowhere.toml")
    (tmp_path / "bad.toml").write_text("title = ")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_table(str(tmp_path / "bad.toml"))
    with pytest.raises(ConfigError, match="there is no method 'magic'"):
        contender("magic")


def test_a_row_like_another_says_only_what_differs(tmp_path: Path) -> None:
    table = written(
        tmp_path,
        "[method.m]\nmodel={dim=8,kind='h'}\nfolds=4\nsettings={trials=2}\n",
        "[method.m.dataset.b]\nmodel={dim=16}\nfolds=2\nsettings={trials=1}\n",
        "[method.n]\nlike='m'\nwithout=['folds']\nmodel={kind='g'}\ntitle='other'\n",
    )
    _, n, _, on_b = table.runs("paper", seeds=[0])
    assert n.config["options"] == {"is": "m", "model": {"dim": 8, "kind": "g"}}
    assert on_b.config["options"] == {"is": "m", "model": {"dim": 16, "kind": "g"}}
    assert (n.config["trials"], on_b.config["trials"]) == (2, 1)
    assert table.row("n").title == "other"


def test_a_size_may_have_fewer_methods(tmp_path: Path) -> None:
    table = written(tmp_path, "[size.short]\nseeds=[0]\ntrials=1\nmethods=['n']\n")
    assert [run.method for run in table.runs("short")] == ["n", "n"]
    assert [run.method for run in table.runs("short", methods=["m"])] == ["m", "m"]
