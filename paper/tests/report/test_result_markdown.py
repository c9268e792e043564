from __future__ import annotations

from pathlib import Path

from labelmem_paper.report.result_ablation import ablation_of
from labelmem_paper.report.result_grid import grid_of, printed_of
from labelmem_paper.report.result_markdown import full_markdown_of, markdown_of
from labelmem_paper.report.result_speed import speed_of
from labelmem_paper.report.result_tables import NOTE, table_of
from report.made_up import made_up, many
from report.reading import loaded, variant

from labelmem.render.tables import to_markdown


def test_every_table_comes_with_its_words(tmp_path: Path) -> None:
    table = loaded(tmp_path, *many(seeds=1, variants=True))
    text = markdown_of(table)
    places = []
    for one in (grid_of(table), printed_of(table), speed_of(table), ablation_of(table)):
        assert one is not None
        shown = f"**{one.caption}**\n\n{to_markdown(one, intervals=False)}\n\n"
        places.append(text.index(shown))
        for remark in one.note.split("\n"):
            assert remark in text[places[-1] :]
    assert places == sorted(places)
    assert text.endswith(NOTE) and "†" in NOTE


def test_the_runs_are_told_with_their_commands(tmp_path: Path) -> None:
    part = made_up(dataset="brightkite", data={"subset": True})
    text = markdown_of(loaded(tmp_path, made_up(), made_up(seed=1, tokens=1700), part))
    assert (
        "\n- `fsq-nyc`, Foursquare check-ins, New York City: 40 test streams and 1,500 to 1,700 "
        "tokens for each seed. Made by `labelmem-paper reproduce table2 --dataset fsq-nyc`.\n"
    ) in text
    assert text.count("The files are a subset of what was published: not a reproduction") == 1
    for absent in ("left out", "Not all methods", "variant"):
        assert absent not in text


def test_several_remarks_are_a_list_and_one_is_a_sentence(tmp_path: Path) -> None:
    text = markdown_of(loaded(tmp_path, made_up(), made_up("static")))
    assert "\n\nIn each cell: " in text
    more = markdown_of(loaded(tmp_path, made_up(), not_run={"fsq-nyc": {"maml": "Nine days."}}))
    assert "\n\n- In each cell: " in more and "\n- ¹ Nine days.\n" in more


def test_a_table_that_is_only_an_ablation_shows_only_that(tmp_path: Path) -> None:
    text = markdown_of(loaded(tmp_path, made_up(), variant("no-key")))
    assert "variants of lmn" in text
    for absent in ("every method", "The paper's figures", "Size and time"):
        assert absent not in text


def test_the_long_form_has_every_interval(tmp_path: Path) -> None:
    table = loaded(tmp_path, made_up(), made_up("static", dataset="geolife"))
    text = full_markdown_of(table)
    assert text.startswith(markdown_of(table))
    for one in table.datasets:
        assert to_markdown(table_of(table, one)) in text
