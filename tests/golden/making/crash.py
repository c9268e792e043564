"""An ``adapt`` that dies between writing a piece's predictions and storing its users."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from golden.folders import adapt


def crashed(folder: Path, log: Path, out: Path, after: int) -> None:
    """Take in a log, and die when ``after`` pieces were committed; files stay as they are then."""
    from labelmem.logs.states import States  # of the version that made the files

    commit, calls = States.commit, []

    def dying(self: States, *arguments: Any) -> None:
        if len(calls) == after:
            raise KeyboardInterrupt
        calls.append(1)
        commit(self, *arguments)

    States.commit = dying  # type: ignore[method-assign]
    try:
        adapt(folder, log, out)
    except AssertionError:  # the command was stopped, as it should be
        return
    finally:
        States.commit = commit  # type: ignore[method-assign]
    raise RuntimeError(f"the log has no more than {after} pieces")
