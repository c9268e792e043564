"""What the how-to page calls is there, with these options."""

from __future__ import annotations

import json
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
import typer.main

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "log-file.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
CALLS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]


@pytest.mark.parametrize("line", CALLS)
def test_a_call_of_the_page_is_understood(line: str) -> None:
    program, name, *arguments = shlex.split(line)
    app = import_module(f"labelmem.cli.{name.replace('-', '_')}").app
    command = typer.main.get_command(app)
    context = command.make_context(name, arguments, resilient_parsing=False)
    assert program == "labelmem" and context.params


def test_the_line_of_the_page_is_json() -> None:
    [text] = [text for kind, text in BLOCKS if kind == "json"]
    assert set(json.loads(text)) == {"row", "user", "time", "item", "p", "rank", "top"}
