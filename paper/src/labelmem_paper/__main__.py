"""``python -m labelmem_paper``."""

from labelmem_paper.cli import main

main()
