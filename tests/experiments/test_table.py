from __future__ import annotations

from pathlib import Path

import pytest

from labelmem.data import names
from labelmem.errors import ConfigError
from labelmem.experiments.contender import contender
from labelmem.experiments.table import load_table, table_names


@pytest.mark.parametrize("name", table_names())
def test_every_shipped_table_names_only_what_exists(name: str) -> None:
    table = load_table(name)
    assert {"paper", "smoke"} <= set(table.sizes)
    assert set(table.datasets) <= set(names())
    for method in table.methods:
        contender(method)
    for dataset in table.published:
        assert dataset in table.datasets


def test_runs_are_the_product_of_datasets_seeds_and_methods() -> None:
    table = load_table("table2")
    runs = list(table.runs("paper"))
    seeds = table.sizes["paper"]["seeds"]
    assert len(runs) == len(table.datasets) * len(seeds) * len(table.methods)
    chosen = list(table.runs("paper", ["geolife"], ["counter"], [7]))
    assert [(r.dataset, r.method, r.seed) for r in chosen] == [("geolife", "counter", 7)]


def test_settings_of_a_dataset_replace_those_of_all(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'title="x"\ntask="sequences"\nmetrics=["mrr"]\ndatasets=["a","b"]\nmethods=["m"]\n'
        "[size.smoke]\nseeds=[0]\ntrials=3\n[size.smoke.dataset.b]\ntrials=9\n[method.m]\nk=1\n"
    )
    a, b = load_table(str(path)).runs("smoke")
    assert (a.config["trials"], b.config["trials"]) == (3, 9)
    assert a.config["options"] == {"k": 1}
    assert "dataset" not in b.config and "seeds" not in b.config


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
