"""What every page must be: balanced, free of external resources, its ids its own."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link", "input"}
LOADS = {"src", "srcset", "data", "poster", "action", "formaction", "background"}


class _Checker(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.pointers: list[str] = []
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self._attributes(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes something else at {self.getpos()}")

    def _attributes(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "iframe", "object", "embed", "base"):
            self.problems.append(f"<{tag}> has no place in a self-contained page")
        if len({name for name, _ in attrs}) != len(attrs):
            self.problems.append(f"<{tag}> has an attribute twice")
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in LOADS:
                self.problems.append(f"<{tag} {name}={value}>")
            elif name.endswith("href"):
                if not (value or "").startswith("#"):
                    self.problems.append(f"<{tag} {name}={value}> leads elsewhere")
                self.pointers.append((value or "")[1:])
            self.pointers += re.findall(r"url\(#([^)]*)\)", value or "")
            if re.search(r"url\((?!#)", value or ""):
                self.problems.append(f"<{tag} {name}={value}> loads something")


def check_page(html: str) -> None:
    """Fail on anything that a self-contained page must not have."""
    checker = _Checker()
    checker.feed(html)
    checker.close()
    assert not checker.problems, checker.problems[:5]
    assert not checker.open, f"never closed: {checker.open}"
    assert len(set(checker.ids)) == len(checker.ids), "an id is used twice"
    lost = set(checker.pointers) - set(checker.ids)
    assert not lost, f"these lead nowhere: {sorted(lost)[:5]}"
    style = html[html.index("<style>") : html.index("</style>")]
    assert "@import" not in style and "url(" not in style
    assert "http" not in html, "an address of the network"
