"""Write the files that the tests of this folder read. Run by hand, and only to add files.

    python tests/golden/make.py streams baselines paper interop logs

The files that are committed were made by labelmem 0.2.0 at commit db7516f, with format 1. A later
version must *read* these files; made anew by it they would prove nothing. To add a case, check out
that commit, or say in README.md which version made it.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "paper" / "tests")]


def main(parts: list[str]) -> None:
    """Make the parts that are named."""
    from golden.making import baselines, interop, logs, paper, streams

    known = {
        "streams": streams.write,
        "baselines": baselines.write,
        "paper": paper.write,
        "interop": interop.write,
        "logs": logs.write,
    }
    for part in parts:
        known[part]()


if __name__ == "__main__":
    main(sys.argv[1:])
