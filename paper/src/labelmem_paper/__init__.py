"""Honest reproductions of the tables of Labeled Memory Networks (AAAI 2018).

``datasets`` reads what is published, ``methods`` has what the paper compares beyond
:mod:`labelmem.baselines`, ``experiments`` runs the cells of ``tables``, ``report`` turns the
records into tables, plots and a page. Only public names of :mod:`labelmem` are imported here.
"""

from labelmem_paper._version import __version__

__all__ = ["__version__"]
