"""Drawings made ready to stand inside a page."""

from __future__ import annotations

import re
from html import escape

import numpy as np
import numpy.typing as npt

from labelmem.render.palette import themed

__all__ = ["inline", "pixels"]


def inline(svg: str, prefix: str, description: str) -> str:
    """Turn a stand-alone drawing into an element of a page.

    Names inside it get a prefix, because two drawings on one page must not share any; its colours
    become the page's; and it says in words what it shows.

    Examples
    --------
    >>> inline('<?xml version="1.0"?><svg xmlns="x" width="9pt" height="9pt"><g id="a"/></svg>',
    ...        "f1", "A dot")
    '<svg role="img" aria-label="A dot"><g id="f1-a"/></svg>'
    """
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("xlink:href", "href")
    svg = re.sub(r'(\sid="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    opening, rest = svg.split(">", 1)
    opening = re.sub(r'\s(xmlns(:\w+)?|width|height|version)="[^"]*"', "", opening)
    label = escape(description, quote=True)
    opening = opening.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    return themed(f"{opening}>{rest}")


def pixels(image: npt.ArrayLike, description: str, size: int = 96) -> str:
    """A small grey picture (rows, columns), drawn as squares; 0 is paper, the largest is ink.

    Examples
    --------
    >>> pixels([[0, 1]], "half ink").count("<rect")
    1
    """
    picture = np.asarray(image, dtype=np.float64)
    rows, columns = picture.shape
    top = picture.max() if picture.max() > 0 else 1.0
    # A little overlap hides the seams that appear when squares are scaled.
    squares = "".join(
        f'<rect x="{x}" y="{y}" width="1.03" height="1.03" '
        f'fill-opacity="{picture[y, x] / top:.2f}"/>'
        for y in range(rows)
        for x in range(columns)
        if picture[y, x] > 0
    )
    label = escape(description, quote=True)
    return (
        f'<svg class="pixels" role="img" aria-label="{label}" viewBox="0 0 {columns} {rows}" '
        f'width="{size}" height="{size * rows // columns}" fill="currentColor">{squares}</svg>'
    )
