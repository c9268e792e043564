"""The report page of a log that was taken in."""

from __future__ import annotations

from typing import Any

from labelmem.render.page import Page
from labelmem.render.tables import Column, Table

__all__ = ["curve_table", "figures_table", "page_of"]

_FIGURES = (
    Column("accuracy", "first prediction right", ".1%", short="accuracy"),
    Column("top", "among the predictions written", ".1%", short="top"),
    Column("mrr", "MRR", ".3f"),
    Column("log_perplexity", "nats", ".3f"),
)


def figures_table(outcome: dict[str, Any]) -> Table:
    """The figures over all events."""
    row = {"events": f"{outcome['events']:,}"} | outcome["figures"]
    return Table((Column("events", "events"), *_FIGURES), [row])


def curve_table(outcome: dict[str, Any]) -> Table:
    """How figures change the longer a user is known."""
    rows = [
        {"place": f"{part['from']:,} to {part['to']:,}", "count": part["events"]} | part
        for part in outcome["by_position"]
    ]
    columns = (Column("place", "a user's events number"), Column("count", "events", ",.0f"))
    return Table((*columns, *_FIGURES), rows)


def page_of(outcome: dict[str, Any]) -> Page:
    """All that is known of one file, as a page without scripts."""
    page = Page(
        f"Predictions for {outcome['file']}",
        "Every event was predicted before it was revealed, from what the same user showed before.",
    )
    page.section("All events")
    page.table(figures_table(outcome))
    page.text(
        "MRR is the mean of one over the rank of the true item. Nats are the mean of -log P, over "
        "events whose item had a name: the model knows it, or the user had it before."
    )
    page.section("The longer a user is known")
    page.table(curve_table(outcome))
    if outcome.get("problems"):
        page.section("Rows left out or put right")
        page.points(f"{kind}: {count:,}" for kind, count in outcome["problems"].items())
    if outcome["output"]:
        page.section("Predictions")
        page.text(f"One JSON object for each event: {outcome['output']}")
    return page
