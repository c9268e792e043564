from __future__ import annotations

import re

import numpy as np

from labelmem.render.svg import inline, pixels

DRAWING = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE svg PUBLIC "x" "http://nowhere">
<svg xmlns:xlink="http://a" width="9pt" height="8pt" viewBox="0 0 9 8" xmlns="http://b">
 <metadata><rdf>http://c</rdf></metadata>
 <!-- a remark -->
 <defs><clipPath id="p1"><rect/></clipPath></defs>
 <g id="axes"><use xlink:href="#p1" clip-path="url(#p1)" style="stroke: #0067a5"/></g>
</svg>
"""


def test_a_drawing_becomes_an_element_of_the_page() -> None:
    html = inline(DRAWING, "d7", 'A "drawing"')
    assert html.startswith('<svg role="img" aria-label="A &quot;drawing&quot;" viewBox="0 0 9 8">')
    assert "http" not in html and "remark" not in html
    assert 'id="d7-p1"' in html and 'id="d7-axes"' in html
    assert 'href="#d7-p1"' in html and "url(#d7-p1)" in html and "xlink" not in html
    assert "stroke: var(--blue)" in html


def test_pixels_draw_what_is_not_blank() -> None:
    image = np.array([[0, 1, 2], [4, 0, 0]])
    html = pixels(image, "ink", size=30)
    drawn = {
        (int(x), int(y)): float(ink)
        for x, y, ink in re.findall(r'x="(\d)" y="(\d)".*?fill-opacity="([\d.]+)"', html)
    }
    assert drawn == {(1, 0): 0.25, (2, 0): 0.5, (0, 1): 1.0}
    assert 'viewBox="0 0 3 2" width="30" height="20"' in html


def test_a_blank_picture_stays_blank() -> None:
    assert "<rect" not in pixels(np.zeros((2, 2)), "nothing")
