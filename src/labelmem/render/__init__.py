"""Figures for people: tables, plots and one self-contained page.

Nothing here computes a result. Tables and plots are made from plain numbers, so that the demo and
the experiments share them.
"""

from labelmem.render.page import Page
from labelmem.render.tables import Column, Estimate, Table, to_html, to_markdown, to_rich

__all__ = ["Column", "Estimate", "Page", "Table", "to_html", "to_markdown", "to_rich"]
