from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the caller's data or leaves anything in the caller's cache folder."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.delenv("LABELMEM_DATA", raising=False)
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes], Path]:
    """Write a file below a folder that `load(root=tmp_path)` can look in."""

    def put(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return put


@dataclass
class Site:
    """A small web server whose behaviour a test can change while it runs."""

    url: str = ""
    content: bytes = b""
    tag: str = '"one"'
    resumable: bool = True
    status: int = 200
    break_after: int | None = None
    """Close the connection after so many bytes of the next answer."""
    hold_after: int | None = None
    """Stop sending after so many bytes of the next answer, until `release` is set."""
    release: threading.Event = field(default_factory=threading.Event)
    ranges: list[str | None] = field(default_factory=list)
    """The Range header of every request so far."""


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            site.ranges.append(wanted)
            if site.status != 200:
                self.send_error(site.status)
                return
            start = 0
            if wanted and site.resumable and self.headers.get("If-Range") == site.tag:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(site.content) > 0:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(site.content)}")
                self.end_headers()
                return
            body = site.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            if site.tag:
                self.send_header("ETag", site.tag)
            self.end_headers()
            self._send(body)

        def _send(self, body: bytes) -> None:
            broken, site.break_after = site.break_after, None
            held, site.hold_after = site.hold_after, None
            first = broken if broken is not None else held
            self.wfile.write(body[:first])
            self.wfile.flush()
            if broken is not None:
                self.close_connection = True
                return
            if held is not None:
                site.release.wait(60)
                try:
                    self.wfile.write(body[first:])
                except OSError:
                    self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_port}/file.bin"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield site
    site.release.set()
    server.shutdown()
    server.server_close()
    thread.join()
