from __future__ import annotations

import time

import pytest

from labelmem.progress import progress_bar


def test_silent_where_nobody_watches(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("work", total=2) as report:
        report()
        report(1, note="x")
    assert capfd.readouterr() == ("", "")


def test_shows_title_and_note_on_the_error_stream(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("digging", total=3, show=True) as report:
        for _ in range(3):
            report(1, note="loss 0.5")
            time.sleep(0.01)
    out, err = capfd.readouterr()
    assert out == ""
    assert "digging" in err and "loss 0.5" in err and "3/3" in err and "/s" in err
