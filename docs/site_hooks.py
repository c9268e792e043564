"""What mkdocs does to the pages, so that they also read well in a repository browser."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr):<code>~?(?P<name>[\w.]+)</code>")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Mend links that lead out of docs/."""
    folder = posixpath.dirname(page.file.src_uri)
    return _LINK.sub(lambda found: _mended(found, folder), markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Turn the roles in docstrings into links where their target is on the site."""
    link = r'<autoref optional identifier="\g<name>"><code>\g<name></code></autoref>'
    return _ROLE.sub(link, html)


def _mended(link: re.Match[str], folder: str) -> str:
    """Files of the repository that are not on the site are only named."""
    target = posixpath.normpath(posixpath.join("docs", folder, link["target"]))
    if "://" in link["target"] or target.startswith("docs/"):
        return link[0]
    return link["text"]
