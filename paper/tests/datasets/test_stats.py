from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from labelmem_paper.datasets.stats import as_markdown, table1


def test_rows_of_table_1(write: Callable[[str, bytes], Path], tmp_path: Path) -> None:
    line = "{}\t2010-10-17T01:48:53Z\t39.7\t-104.9\tvenue{}\n"
    text = "".join(line.format(user, n) for user in range(10) for n in range(60))
    write("loc-brightkite_totalCheckins.txt", text.encode())
    rows = {row.name: row for row in table1(tmp_path)}
    assert list(rows) == ["brightkite", "fsq-nyc", "fsq-tokyo", "geolife", "yoochoose"]
    ours = rows["brightkite"].ours
    assert ours is not None
    assert (ours.train, ours.test, ours.mean_length, ours.labels) == (8, 2, 60.0, 60)
    assert rows["fsq-nyc"].ours is None
    assert rows["fsq-nyc"].paper.labels == 8325
    text = as_markdown(rows.values())
    assert "| brightkite | paper | 1,800 | 521 | 238 | 22,811 | |" in text
    assert "| | ours | 8 | 2 | 60 | 60 | raw |" in text
    assert "not here" in text
