"""Remarks below a table, each with a small number where it belongs."""

from __future__ import annotations

__all__ = ["Footnotes"]

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Footnotes:
    """Numbers remarks in the order in which they are first made; the same remark has one number.

    Examples
    --------
    >>> notes = Footnotes()
    >>> notes.mark("One seed."), notes.mark("Too long."), notes.mark("One seed."), notes.mark("")
    ('¹', '²', '¹', '')
    >>> notes.texts
    ['¹ One seed.', '² Too long.']
    """

    def __init__(self) -> None:
        self._remarks: list[str] = []

    def mark(self, remark: str) -> str:
        """The number of a remark; nothing where there is nothing to remark."""
        if not remark:
            return ""
        if remark not in self._remarks:
            self._remarks.append(remark)
        return str(1 + self._remarks.index(remark)).translate(_RAISED)

    @property
    def texts(self) -> list[str]:
        """Every remark behind its number."""
        return [f"{self.mark(remark)} {remark}" for remark in self._remarks]
