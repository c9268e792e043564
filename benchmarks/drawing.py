"""The growth of a step as a small picture: one panel for each size, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

NAMES = {"dim": "dimension of h", "hidden": "hidden units of the combiner"}
COLOURS = ("#555555", "#0072b2", "#d55e00", "#009e73")
WIDE, HIGH, EDGE = 240, 190, 54


def drawn(rows: Sequence[dict[str, Any]]) -> str:
    """An SVG document."""
    names = list(dict.fromkeys(row["grows"] for row in rows))
    parts = list(dict.fromkeys(row["part"] for row in rows))
    low = math.log10(min(row["us"] for row in rows) * 0.8)
    high = math.log10(max(row["us"] for row in rows) * 1.2)
    width, height = WIDE * len(names), HIGH + 30
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="10">',
        "<title>Microseconds of a step against labels, cells, dimension and hidden units</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for column, name in enumerate(names):
        mine = [row for row in rows if row["grows"] == name]
        lines += panel(column * WIDE, name, mine, parts, (low, high))
    for i, (part, colour) in enumerate(zip(parts, COLOURS, strict=False)):
        x = EDGE + i * 190
        lines.append(f'<text x="{x}" y="{height - 6}" fill="{colour}">{part}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def panel(
    left: float, name: str, rows: list[dict[str, Any]], parts: list[str], span: tuple[float, float]
) -> list[str]:
    sizes = sorted({row["size"] for row in rows})
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])

    def across(size: float) -> float:
        return left + EDGE + (math.log10(size) - first) / (last - first) * (WIDE - EDGE - 20)

    def up(us: float) -> float:
        return HIGH - 24 - (math.log10(us) - span[0]) / (span[1] - span[0]) * (HIGH - 48)

    lines = [f'<text x="{left + EDGE}" y="14" font-weight="bold">{NAMES.get(name, name)}</text>']
    for power in range(math.ceil(span[0]), math.floor(span[1]) + 1):
        y = up(10**power)
        ends = f'x1="{left + EDGE}" x2="{left + WIDE - 20}" y1="{y:.1f}" y2="{y:.1f}"'
        lines.append(f'<line {ends} stroke="#dddddd"/>')
        text = f'x="{left + EDGE - 4}" y="{y + 3:.1f}" text-anchor="end"'
        lines.append(f"<text {text}>{10**power:,} µs</text>")
    for size in sizes:
        x = f'x="{across(size):.1f}" y="{HIGH - 8}" text-anchor="middle"'
        lines.append(f"<text {x}>{size:,}</text>")
    for part, colour in zip(parts, COLOURS, strict=False):
        own = sorted((row["size"], row["us"]) for row in rows if row["part"] == part)
        points = " ".join(f"{across(size):.1f},{up(us):.1f}" for size, us in own)
        style = f'fill="none" stroke="{colour}" stroke-width="1.5"'
        lines.append(f'<polyline points="{points}" {style}/>')
    return lines
