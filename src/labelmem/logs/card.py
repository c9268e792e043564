"""The card of a fitted model: what it was made from, how good it is, and whether to use it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from labelmem import __version__
from labelmem.logs.fitting import Fit
from labelmem.logs.methods import TOP
from labelmem.logs.model import CAPACITY
from labelmem.logs.parts import Parts
from labelmem.logs.recipe import Recipe
from labelmem.logs.scores import Interval
from labelmem.logs.summary import Summary
from labelmem.logs.words import counted
from labelmem.render.tables import Column, Estimate, Table, to_markdown
from labelmem.storage import write_file

__all__ = ["TITLES", "card_of", "figures_table", "verdict", "write_card"]

TITLES = {
    "lmn": "this model, adapting",
    "counter": "per-user counter, tuned",
    "static": "a model that is not adapted",
    "unigram": "the same for everybody (unigram)",
}
COLUMNS = (
    Column("method", "Method"),
    Column("accuracy", "first prediction right", ".1%", best="high", short="accuracy"),
    Column("top", f"among the first {TOP}", ".1%", best="high", short=f"top {TOP}"),
    Column("mrr", "MRR", ".3f", best="high"),
    Column("log_perplexity", "nats", ".3f", best="low"),
)


def card_of(
    summary: Summary, parts: Parts, recipe: Recipe, fit: Fit, about: dict[str, Any]
) -> dict[str, Any]:
    """All of the card as plain values.

    Parameters
    ----------
    about
        What else to say of the fit: the file's name, columns, seed.
    """
    gains = fit.scores["lmn"].gains(fit.scores["counter"])
    measured = {
        name: {key: asdict(value) for key, value in scores.intervals().items()}
        for name, scores in fit.scores.items()
    }
    return {
        "labelmem": __version__,
        "about": about,
        "data": asdict(summary),
        "understood": summary.lines(),
        "users": {part: len(users) for part, users in parts.users.items()},
        "items_known": len(parts.vocabulary),
        "recipe": asdict(recipe),
        "training": fit.facts,
        "figures": measured,
        "gain_over_counter": {name: asdict(gain) for name, gain in gains.items()},
        "verdict": verdict(gains),
    }


def verdict(gains: dict[str, Interval]) -> dict[str, str]:
    """Whether to use the model, from what it gains over counting.

    Examples
    --------
    >>> sure, unsure = Interval(0.2, 0.1, 0.3), Interval(0.1, -0.1, 0.3)
    >>> verdict({"log_perplexity": sure, "mrr": sure})["use"]
    'yes'
    >>> verdict({"log_perplexity": sure, "mrr": unsure})["use"]
    'unclear'
    """
    nats, mrr = gains["log_perplexity"], gains["mrr"]
    said = (
        f"Against a tuned per-user counter it gains {mrr.value:+.3f} MRR "
        f"({mrr.low:+.3f} to {mrr.high:+.3f}) and {nats.value:+.3f} nats "
        f"({nats.low:+.3f} to {nats.high:+.3f})."
    )
    if nats.low > 0 and mrr.low > 0:
        return {"use": "yes", "sentence": f"Worth using on logs like this one. {said}"}
    if nats.value <= 0 and mrr.value <= 0:
        advice = "NOT worth using here: counting each user's items is as good or better. "
        return {"use": "no", "sentence": advice + said + " Use the counter."}
    advice = "NOT clearly worth using here: the gain over counting is within the interval. "
    return {"use": "unclear", "sentence": advice + said + " Prefer the counter: it is simpler."}


def figures_table(card: dict[str, Any]) -> Table:
    """The figures of all methods."""
    rows = [
        {"method": TITLES[name]} | {key: Estimate(**value) for key, value in figures.items()}
        for name, figures in card["figures"].items()
    ]
    return Table(COLUMNS, rows)


def write_card(folder: Path, card: dict[str, Any]) -> None:
    """Write ``card.json`` and ``card.md``."""
    write_file(folder / "card.json", (json.dumps(card, indent=1) + "\n").encode())
    write_file(folder / "card.md", _markdown(card).encode())


def _markdown(card: dict[str, Any]) -> str:
    def points(lines: list[str]) -> str:
        return "\n".join(f"- {line}" for line in lines)

    parts = [
        f"# Model card: {card['about']['file']}",
        f"**{card['verdict']['sentence']}**",
        f"## Data\n{points(card['understood'] + _data(card))}",
        f"## Figures\nOn {counted(card['training']['test_users'], 'user')} that nothing was "
        "trained or tuned on; every event is predicted before it is revealed.",
        to_markdown(figures_table(card)),
        "95 % intervals by drawing users again. Nats are over events whose item has a name for the "
        "adapting methods: the model knows it, or the user had it before. A method that cannot "
        "name an item gives it the floor of 1e-10.",
        f"## How it was made\n{points(_made(card))}",
        f"## When not to use it\n{points(_limits(card))}",
    ]
    return "\n\n".join(parts) + "\n"


def _data(card: dict[str, Any]) -> list[str]:
    users, left = card["users"], card["data"]["items"] - card["items_known"]
    lines = [
        f"users: {users['train']:,} to train, {users['valid']:,} to validate, {users['test']:,} to "
        f"test, dealt out by seed {card['about']['seed']}",
        f"the model knows {card['items_known']:,} items; the other {left:,} are rare (fewer than "
        f"{card['recipe']['least_users']} training users, or not among the "
        f"{card['recipe']['most_items']:,} widest known). They are not folded into one: each is "
        "predicted from the memory of the users who have it, from their second event with it on",
    ]
    if card["data"]["skipped"]:
        counts = ", ".join(f"{kind}: {n:,}" for kind, n in card["data"]["skipped"].items())
        lines.append(f"rows left out or put right ({counts})")
    return lines


def _made(card: dict[str, Any]) -> list[str]:
    recipe, training = card["recipe"], card["training"]
    folds = (
        f"on {training['combiner_users']:,} training users, each seen through a model that was "
        f"trained without them ({recipe['folds']} parts)"
        if recipe["folds"]
        else f"on {training['combiner_users']:,} validation users, a third of them held out"
    )
    return [
        f"model: averages of a user's past items, trained on items new to their user, at most "
        f"{recipe['epochs']} epochs over {training['model_users']:,} users",
        f"memory: up to {CAPACITY:,} items of a user; theta, lam and delta chosen on validation "
        f"users in at most {recipe['trials']} trials: {training['memory']}",
        f"combiner: trained {folds}, on {recipe['windows']} windows of {recipe['window']} events "
        f"of each, at most {recipe['combiner_epochs']} epochs",
        f"the model that is not adapted: trained on all events of {training['static_users']:,} "
        f"users, at most {recipe['static_epochs']} epochs; with more it would do better",
        f"streams are cut to {recipe['steps']:,} events in training; numbers of users and epochs "
        "are bounded by the size of the log (`labelmem fit --effort 4` allows four times as much)",
    ]


def _limits(card: dict[str, Any]) -> list[str]:
    lines = [] if card["verdict"]["use"] == "yes" else [card["verdict"]["sentence"]]
    return [
        *lines,
        "where users hardly repeat themselves there is little to remember "
        f"(here {card['data']['repeats']:.0%} of the events do)",
        "users and items far from those above: the figures say nothing about them",
        "an item that nobody had when the model was fitted is predicted only for users who have "
        "had it; fit again when the catalogue has changed",
    ]
