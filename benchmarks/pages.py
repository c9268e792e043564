"""The tables of `docs/performance.md`, in Markdown, from the rows of one run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from step_parts import AFTER, BEFORE

Row = dict[str, Any]
RIVALS = ("FAISS IVF", "hnswlib", "usearch", "river's kNN")
PLAIN = ", specification"


def pages(rows: Sequence[Row], parts_of_steps: Sequence[Row]) -> str:
    """Reads, steps, their parts, whole steps and rivals, one table after another."""
    known = [row for row in rows if row["us"] is not None]
    tasks = (rivals(known, "neighbours"), rivals(known, "labels"))
    own = (steps(known), step_parts(parts_of_steps), whole_steps(known))
    parts = (reads(known), *own, *tasks)
    return "\n\n".join("\n".join(part) for part in parts)


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|---" * len(head) + "|",
        *("| " + " | ".join(line) + " |" for line in lines),
    ]


def ratio(rows: Sequence[Row], what: str) -> str:
    return next((f"{row['ratio']:.2f}" for row in rows if row["what"] == what), "")


def reads(rows: Sequence[Row]) -> list[str]:
    mine = [r for r in rows if r["what"].startswith("read ") and PLAIN not in r["what"]]
    return table(
        ("cells × 128", "floor (µs)", "read (µs)", "ratio", "specification"),
        [
            (
                row["what"].removeprefix("read ").replace(" cells", ""),
                f"{row['floor']:,.0f}",
                f"{row['us']:,.0f}",
                f"{row['ratio']:.2f}",
                ratio(rows, row["what"] + PLAIN),
            )
            for row in mine
        ],
    )


def steps(rows: Sequence[Row]) -> list[str]:
    mine = [r for r in rows if r["what"].startswith("step of ") and PLAIN not in r["what"]]
    return table(
        ("", "own (µs)", "over the forward", "specification"),
        [
            (
                row["what"].removeprefix("step of "),
                f"{row['us']:,.0f}",
                f"{row['ratio']:.2f}",
                ratio(rows, row["what"] + PLAIN),
            )
            for row in mine
        ],
    )


def step_parts(rows: Sequence[Row]) -> list[str]:
    """Microseconds of the parts of a step before and after."""
    names = list(dict.fromkeys(row["step"] for row in rows))
    found = {(row["part"], row["step"], row["way"]): f"{row['us']:,.0f}" for row in rows}
    lines = [
        (part, *(f"{found[part, name, BEFORE]} → {found[part, name, AFTER]}" for name in names))
        for part in dict.fromkeys(row["part"] for row in rows)
    ]
    return table(("part (µs)", *names), lines)


def whole_steps(rows: Sequence[Row]) -> list[str]:
    mine = [row for row in rows if row["what"].endswith(", whole step")]
    names = list(dict.fromkeys(row["over"] for row in mine))
    lines = []
    for what in dict.fromkeys(row["what"] for row in mine):
        found = {row["over"]: f"{row['ratio']:.1f}" for row in mine if row["what"] == what}
        lines.append((what.removesuffix(", whole step"), *(found[name] for name in names)))
    return table(("over", *(name.removesuffix(", whole step") for name in names)), lines)


def rivals(rows: Sequence[Row], task: str) -> list[str]:
    """Times of the rivals over the memory's at one of the tasks."""
    mine = [r for r in rows if r["what"].endswith(f" vectors, {task}")]
    found = {tuple(r["what"].split(", ")[:2]): r for r in mine}
    sizes = list(dict.fromkeys(size for _, size in found))
    lines = []
    for size in sizes:
        here = {name: found.get((name, size)) for name in RIVALS}
        known = next(row for row in here.values() if row is not None)
        times = ("" if row is None else f"{row['ratio']:.2f}" for row in here.values())
        own = (f"{known['floor']:,.0f}", f"{100 * known['recall_of_memory']:.0f}")
        lines.append((size.removesuffix(" vectors"), *own, *times))
    return table(("vectors", "memory (µs)", "recall (%)", *RIVALS), lines)
