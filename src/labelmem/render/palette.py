"""The colours of all plots: calm, safe for colour-blind eyes, with a twin for dark pages."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COLOURS", "GRID", "INK", "METHODS", "MUTED", "Look", "css_variables", "themed"]


@dataclass(frozen=True)
class Colour:
    """One colour on light and on dark ground."""

    light: str
    dark: str


COLOURS = {
    "blue": Colour("#0067a5", "#5ab4ff"),
    "sky": Colour("#3a8fc9", "#a5d3f5"),
    "orange": Colour("#c4501b", "#ff9a6b"),
    "green": Colour("#00795a", "#4fd1a5"),
    "grey": Colour("#6b6f76", "#a3a9b2"),
    "purple": Colour("#8f4a9c", "#d49be0"),
    "brown": Colour("#86690a", "#dfc25a"),
    "silver": Colour("#8d939b", "#8d939b"),
}
"""Neighbours differ in lightness as well as in hue, so that they survive a grey print."""

INK = "#22262b"
MUTED = "#5c6269"
GRID = "#dfe3e8"
_PAGE = {
    "ink": Colour(INK, "#e8eaed"),
    "muted": Colour(MUTED, "#a8afb8"),
    "grid": Colour(GRID, "#383d44"),
}


@dataclass(frozen=True)
class Look:
    """How one series is drawn: never by colour alone."""

    colour: str
    dash: str = "solid"
    marker: str = "o"

    @property
    def hex(self) -> str:
        """The colour on light ground."""
        return COLOURS[self.colour].light


METHODS = {
    "lmn": Look("blue", "solid", "o"),
    "lmn-fixed": Look("sky", "dashed", "s"),
    "sgd-head": Look("orange", "dashdot", "^"),
    "counter": Look("green", "dotted", "D"),
    "ncm": Look("green", "dotted", "D"),
    "static": Look("grey", "solid", "v"),
    "maml": Look("purple", "dashed", "h"),
}
"""How methods are drawn that everybody knows, in every plot the same."""


def css_variables(dark: bool) -> str:
    """The colours as custom properties of a style sheet."""
    named = _PAGE | COLOURS
    return " ".join(f"--{n}: {c.dark if dark else c.light};" for n, c in named.items())


def themed(svg: str) -> str:
    """Replace the light colours of a drawing by the page's, so that it follows dark mode."""
    for name, colour in (_PAGE | COLOURS).items():
        svg = svg.replace(colour.light, f"var(--{name})")
    return svg
