from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from labelmem_paper.report.result_files import as_plain, write_plots, write_report
from labelmem_paper.report.result_page import page_of
from labelmem_paper.report.result_plots import drawings_of
from labelmem_paper.report.results import TableResults, load_results
from render.html_checks import check_page
from report.made_up import DATASETS, METHODS, keep, made_up, many, with_cells

from labelmem.errors import MissingExtraError

VOID = {"meta", "br", "hr", "img", "wbr", "link", "input"}


class Balance(HTMLParser):
    """Sees whether every element is closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[TableResults]:
    traces = [{"user": "<ann & bob>", "theta": [0.2, 0.4]}]
    runs = [
        made_up("lmn", device="GPU <1>", traces=traces),
        made_up("static"),
        with_cells(10, dataset="geolife"),
        with_cells(20, dataset="geolife", data={"subset": True}),
    ]
    return load_results(keep(tmp_path_factory.mktemp("results"), runs))


@pytest.fixture(scope="module")
def out(tables: list[TableResults], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the report, in a folder that was not there."""
    folder = tmp_path_factory.mktemp("report") / "deep/out"
    written = write_report(tables, folder)
    assert sorted(folder.iterdir()) == written
    return folder


def parsed(page: str) -> Balance:
    parser = Balance()
    parser.feed(page)
    parser.close()
    return parser


def test_all_files_are_written(out: Path) -> None:
    written = sorted(out.iterdir())
    plots = {
        f"table2-{plot}"
        for plot in ("fsq-nyc-position", "fsq-nyc-time", "fsq-nyc-theta-lmn",
                     "geolife-position", "geolife-time", "geolife-memory")
    }  # fmt: skip
    assert {p.name for p in written} == {
        "index.html", "tables.md", *(f"{p}.{end}" for p in plots for end in ("svg", "png")),
    }  # fmt: skip
    for path in written:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        elif path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
    assert (out / "tables.md").read_text().startswith("# table2: Online sequence prediction\n")


def test_the_page_is_well_formed_and_needs_nothing_else(out: Path) -> None:
    page = (out / "index.html").read_text()
    parser = parsed(page)
    assert parser.open == []
    tags = [tag for tag, _ in parser.seen]
    assert not {"script", "link", "img", "iframe", "object"} & set(tags)
    assert tags.count("svg") == 6
    targets = [(a.get("href") or "") for _, a in parser.seen if "href" in a]
    ids = [a["id"] for _, a in parser.seen if "id" in a]
    assert len(ids) == len(set(ids))
    assert all(target.startswith("#") and target[1:] in ids for target in targets)
    assert not re.search(r"https?://|@import|url\((?!#)", page)
    assert not [a for _, a in parser.seen if "src" in a]


def test_the_page_tells_what_must_be_known(out: Path) -> None:
    page = (out / "index.html").read_text()
    assert "GPU &lt;1&gt;" in page  # and nowhere as markup
    assert "<code>labelmem-paper reproduce table2 --dataset geolife</code>" in page
    assert "not a reproduction" in page
    assert "geolife (subset)" in page
    assert "95 % bootstrap interval" in page
    assert "<strong>6.00</strong><small>5.90 to 6.20</small>" in page
    assert "<dd>The model without adaptation.</dd>" in page
    assert "0123456789ab" in page


def test_smoke_figures_are_called_so(tmp_path: Path) -> None:
    keep(tmp_path, [made_up(size="smoke")])
    write_report(load_results(tmp_path, "smoke"), tmp_path / "out")
    assert "these figures show that everything runs" in (tmp_path / "out/index.html").read_text()


def test_the_same_records_make_the_same_report(
    tables: list[TableResults], out: Path, tmp_path: Path
) -> None:
    for path in write_report(tables, tmp_path):
        assert path.read_bytes() == (out / path.name).read_bytes()


def test_plots_that_stand_alone_have_a_ground(tables: list[TableResults], tmp_path: Path) -> None:
    written = write_plots(tables, tmp_path / "docs/plots")
    assert [p.name for p in written] == [
        "table2-fsq-nyc-position.svg", "table2-geolife-position.svg", "table2-geolife-memory.svg",
    ]  # fmt: skip
    for path in written:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
        ground = re.search(r'<g id="patch_1">\s*<path[^>]*style="([^"]*)"', path.read_text())
        assert ground is not None and ground[1] == "fill: #ffffff"
    before = [path.read_bytes() for path in written]
    assert [p.read_bytes() for p in write_plots(tables, tmp_path / "docs/plots")] == before


def test_a_page_of_all_methods_on_all_data_sets(tmp_path: Path) -> None:
    (table,) = load_results(keep(tmp_path, many(seeds=1, variants=True)))
    drawings = list(drawings_of(table, table.datasets[0]))
    page = page_of([table], {("table2", "fsq-nyc"): drawings}).render()
    check_page(page)
    assert page.count("<svg") == len(drawings) == 2
    assert page.index("table2: overview</h2>") < page.index("table2: ablation</h2>")
    overview = page[page.index("table2: overview</h2>") : page.index("table2: ablation</h2>")]
    body = overview[overview.index("<tbody>") : overview.index("</tbody>")]
    assert body.count("<tr>") == len(METHODS) and body.count("<td") == 17 * len(DATASETS)
    assert "<dd>A variant of lmn.</dd>" in page


def test_without_matplotlib_nothing_is_written(
    tables: list[TableResults], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="pip install matplotlib"):
        write_report(tables, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_plain_figures(tables: list[TableResults]) -> None:
    rows = json.loads(json.dumps(as_plain(tables), allow_nan=False))
    assert [(row["dataset"], row["method"], row["cells"]) for row in rows] == [
        ("fsq-nyc", "static", None),
        ("fsq-nyc", "lmn", None),
        ("geolife", "lmn", 10),
        ("geolife", "lmn", 20),
    ]
    assert rows[1]["metrics"] == {"log_perplexity": 6.0, "mrr": 0.25}
    assert rows[1]["interval"]["log_perplexity"] == [5.9, 6.2]
    assert rows[1]["paper"] == {"log_perplexity": 5.54, "mrr": 0.27}
    assert [row["subset"] for row in rows] == [False, False, True, True]


def test_plain_figures_of_one_stream(tmp_path: Path) -> None:
    nan = float("nan")
    run = made_up(interval={"log_perplexity": [nan, nan], "mrr": [nan, nan]})
    (row,) = as_plain(load_results(keep(tmp_path, [run])))
    assert row["interval"] == {"log_perplexity": None, "mrr": None}
