"""What mkdocs does to the pages, so that they also read well in a repository browser."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_INCLUDE = re.compile(r"^<!-- readme: (?P<heading>.+) -->$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
_ELSEWHERE = re.compile(r"\]\((?!docs/|#|\w+:)")  # where a link of the README leaves docs/ out
_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr):<code>~?(?P<name>[\w.]+)</code>")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Include sections of the README, and mend links that lead out of docs/."""
    markdown = _INCLUDE.sub(lambda found: readme_section(found["heading"]), markdown)
    folder = posixpath.dirname(page.file.src_uri)
    return _LINK.sub(lambda found: _mended(found, folder), markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Turn the roles in docstrings into links where their target is on the site."""
    link = r'<autoref optional identifier="\g<name>"><code>\g<name></code></autoref>'
    return _ROLE.sub(link, html)


def readme_section(heading: str) -> str:
    """What stands under a heading of the README, seen from a page in docs/, a level higher."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    _, found, rest = text.partition(f"\n## {heading}\n")
    if not found:
        raise ValueError(f"README.md has no section {heading!r}")
    section = _ELSEWHERE.sub("](../", rest.partition("\n## ")[0]).replace("](docs/", "](")
    return re.sub(r"^#(#+ )", r"\1", section, flags=re.MULTILINE)


def _mended(link: re.Match[str], folder: str) -> str:
    """The README's tables are a page of the site; other files of the repository are only named."""
    target = posixpath.normpath(posixpath.join("docs", folder, link["target"]))
    if "://" in link["target"] or target.startswith("docs/"):
        return link[0]
    if target == "README.md":
        results = posixpath.relpath("results.md", folder or ".")
        return f"[{link['text']}]({results}{link['anchor'] or ''})"
    return link["text"]
