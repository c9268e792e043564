from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from labelmem_paper.datasets.download import Part, download

from labelmem.errors import ConfigError, DataError, MissingDataError

CONTENT = os.urandom(300_000)
SHA = hashlib.sha256(CONTENT).hexdigest()
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "new/folder/file.bin"


@pytest.fixture(autouse=True)
def content(site: Any) -> None:
    site.content = CONTENT


def test_whole_file_with_progress(site: Any, target: Path) -> None:
    seen: list[tuple[int, int]] = []
    digest = download(
        site.url, target, sha256=SHA, md5=MD5, progress=lambda *told: seen.append(told)
    )
    assert digest == SHA
    assert target.read_bytes() == CONTENT
    assert seen[0] == (0, 300_000)
    assert seen[-1] == (300_000, 300_000)
    assert [path.name for path in target.parent.iterdir()] == ["file.bin"]


def test_what_is_here_is_not_fetched_again(site: Any, target: Path) -> None:
    download(site.url, target)
    download(site.url, target, sha256=SHA)
    assert len(site.ranges) == 1
    target.write_bytes(b"altered")
    with pytest.raises(DataError, match=r"its sha256 is .* expected"):
        download(site.url, target, sha256=SHA)
    assert target.read_bytes() == b"altered"


def test_broken_connection_is_resumed(site: Any, target: Path) -> None:
    site.break_after = 100_000
    assert download(site.url, target, sha256=SHA, pause=0) == SHA
    assert site.ranges[0] is None
    assert site.ranges[1] == "bytes=100000-"


def test_giving_up_keeps_what_came_and_goes_on_later(site: Any, target: Path) -> None:
    site.break_after = 120_000
    with pytest.raises(MissingDataError, match="120,000 bytes are kept"):
        download(site.url, target, attempts=1)
    assert not target.exists()
    assert download(site.url, target) == SHA
    assert site.ranges == [None, "bytes=120000-"]


def test_killed_in_the_middle(site: Any, target: Path) -> None:
    site.hold_after = 150_000
    code = (
        "import sys; from pathlib import Path;"
        "from labelmem_paper.datasets.download import download;"
        "download(sys.argv[1], Path(sys.argv[2]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, site.url, str(target)])
    part = Part(target)
    deadline = time.monotonic() + 60
    while part.size() < 65_536 and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(DataError, match="another process"):
        download(site.url, target)
    process.kill()
    process.wait()
    kept = part.size()
    assert 65_536 <= kept < 300_000
    assert not target.exists()
    assert download(site.url, target, sha256=SHA) == SHA
    assert site.ranges == [None, f"bytes={kept}-"]


def test_another_version_is_fetched_from_the_start(site: Any, target: Path) -> None:
    site.break_after = 100_000
    with pytest.raises(MissingDataError):
        download(site.url, target, attempts=1)
    site.content, site.tag = CONTENT[::-1], '"two"'
    download(site.url, target)
    assert target.read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize(("resumable", "tag"), [(False, '"one"'), (True, ""), (True, 'W/"weak"')])
def test_servers_that_cannot_resume_send_all_again(
    site: Any, target: Path, resumable: bool, tag: str
) -> None:
    site.break_after, site.resumable, site.tag = 100_000, resumable, tag
    assert download(site.url, target, pause=0) == SHA


def test_all_had_come_before_the_end_was_noticed(site: Any, target: Path) -> None:
    target.parent.mkdir(parents=True)
    part = Part(target)
    part.restart(site.tag)
    part.path.write_bytes(CONTENT)
    assert download(site.url, target, sha256=SHA) == SHA


def test_more_has_come_than_there_is(site: Any, target: Path) -> None:
    target.parent.mkdir(parents=True)
    part = Part(target)
    part.restart(site.tag)
    part.path.write_bytes(CONTENT + b"x")
    assert download(site.url, target, sha256=SHA, pause=0) == SHA


@pytest.mark.parametrize("wrong", [{"sha256": "0" * 64}, {"md5": "0" * 32}])
def test_wrong_checksum_leaves_no_file(site: Any, target: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(DataError, match=r"its (sha256|md5) is .* expected 000"):
        download(site.url, target, **wrong)
    assert list(target.parent.iterdir()) == []


def test_missing_page_is_not_tried_again(site: Any, target: Path) -> None:
    site.status = 404
    with pytest.raises(MissingDataError, match="404"):
        download(site.url, target, pause=0)
    assert len(site.ranges) == 1
    assert list(target.parent.iterdir()) == []


def test_busy_server_is_tried_again(site: Any, target: Path) -> None:
    site.status = 503
    with pytest.raises(MissingDataError, match="503"):
        download(site.url, target, attempts=3, pause=0)
    assert len(site.ranges) == 3


def test_silence_is_a_broken_connection(site: Any, target: Path) -> None:
    site.hold_after = 70_000
    assert download(site.url, target, timeout=0.3, pause=0) == SHA
    assert len(site.ranges) == 2


def test_only_web_addresses(target: Path) -> None:
    with pytest.raises(ConfigError, match="http"):
        download("file:///etc/hosts", target)


def test_a_system_without_locks_downloads_all_the_same(
    site: Any, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    download(site.url, target)
    assert target.read_bytes() == CONTENT
