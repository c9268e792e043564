from __future__ import annotations

import math
from pathlib import Path

from labelmem_paper.report.result_lead import lead_of
from labelmem_paper.report.results import load_results
from report.made_up import Record, keep, made_up
from report.reading import loaded, rows_of

from labelmem.render.tables import to_markdown

TOKENS = [10, 20, 30, 40]


def kept(method: str, *rates: float, mrr: float = 0.2, **changes: object) -> Record:
    blocks = {
        "tokens": TOKENS,
        "log_perplexity": [n * rate for n, rate in zip(TOKENS, rates, strict=True)],
        "mrr": [n * mrr for n in TOKENS],
    }
    return made_up(method, blocks=blocks, **changes)


def test_every_method_against_lmn(tmp_path: Path) -> None:
    runs = [
        kept("lmn", 5, 7, 4, 6, mrr=0.3),
        kept("counter", 5.5, 7.5, 4.5, 6.5),  # worse on every block
        kept("lmn-fixed", 6, 6, 5, 5.5, mrr=0.3),  # better here, worse there
        made_up("static"),  # an older record
        kept("counter", 1, 1, 1, 1, dataset="geolife"),
    ]
    table = lead_of(loaded(tmp_path, *runs))
    assert table is not None
    rows = {row[0]: row[1:] for row in rows_of(to_markdown(table))[2:]}
    assert list(rows) == ["counter", "lmn-fixed"]
    assert rows["counter"] == ["+.50 ±.00 (+.100)", "–"]
    assert rows["lmn-fixed"][0].startswith("+.00†") and rows["lmn-fixed"][0].endswith("(+.000†)")


def test_a_loss_is_negative(tmp_path: Path) -> None:
    table = lead_of(loaded(tmp_path, kept("lmn", 5, 5, 5, 5), kept("counter", 4, 4, 4, 4, mrr=0.5)))
    assert table is not None
    assert table.rows[0]["fsq-nyc"] == "-1.00 ±.00 (-.300)"


def test_older_records_have_no_pairs(tmp_path: Path) -> None:
    assert lead_of(loaded(tmp_path, made_up("lmn"), made_up("counter"))) is None


def test_perplexity_is_paired_by_its_logarithm(tmp_path: Path) -> None:
    def run(method: str, loss: float) -> Record:
        blocks = {"tokens": [10, 10], "log_perplexity": [10 * loss, 20 * loss]}
        metrics = {"perplexity": math.exp(1.5 * loss), "log_perplexity": 1.5 * loss}
        config = {"options": {"memory": {"capacity": 100}}}
        text = {"table": "table5", "dataset": "wikitext2", "config": config, "blocks": blocks}
        wide = {"interval": {"perplexity": [1.0, 900.0]}}
        return made_up(method, metrics=metrics, **text, **wide)

    records = [run("lmn", 2.0), run("neural-cache", 2.2)]
    (table,) = load_results(keep(tmp_path, records, "table5"))
    lead = lead_of(table)
    assert lead is not None and "is in log-perplexity" in lead.note
    assert [row["wikitext2"] for row in lead.rows] == ["+.30 ±.10"]
    ours, theirs = (one.estimate("perplexity") for one in table.datasets[0].results[::-1])
    assert ours is not None and theirs is not None
    assert not ours.close_to(theirs)  # whatever the intervals: on the same words it is ahead
