from __future__ import annotations

import errno
import os
import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from labelmem import __version__
from labelmem.cli import COMMANDS, MOVED, app
from labelmem.cli.shell import LazyCommand
from labelmem.errors import ConfigError

runner = CliRunner()
BROKEN = typer.Typer()


@BROKEN.command()
def broken(how: str) -> None:
    """Fail in the way that is asked for."""
    if how == "ours":
        raise ConfigError("seen one thing;\n  expected another")
    if how == "stopped":
        raise KeyboardInterrupt
    if how == "full":
        raise OSError(errno.ENOSPC, "No space left on device", "big.jsonl")
    raise ZeroDivisionError("a bug")


@pytest.fixture
def breakable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module in the place of ``labelmem demo`` that only fails."""
    module: Any = type(sys)("labelmem.cli.demo")
    module.app = BROKEN
    monkeypatch.setitem(sys.modules, "labelmem.cli.demo", module)
    monkeypatch.delenv("LABELMEM_DEBUG", raising=False)


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_lists_every_command_with_its_purpose(arguments: list[str]) -> None:
    shown = runner.invoke(app, arguments)
    assert shown.exit_code == (0 if arguments else 2)
    for name, summary in COMMANDS.items():
        assert f"  {name}" in shown.output and summary[:40] in shown.output


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from labelmem.cli import main\n"
        "sys.argv = ['labelmem', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'torch', 'numpy', 'rich.table', 'matplotlib', 'sklearn', 'pooch'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "ours = {m for m in sys.modules if m.startswith('labelmem.cli.')}\n"
        "assert ours == {'labelmem.cli.shell'}, ours\n"
    )
    done = python("-c", program)
    assert done.returncode == 0, done.stderr


def test_the_version() -> None:
    assert runner.invoke(app, ["--version"]).output == f"labelmem {__version__}\n"


def test_the_module_is_the_command() -> None:
    done = python("-m", "labelmem", "--version")
    assert (done.returncode, done.stdout) == (0, f"labelmem {__version__}\n")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_has_help_of_its_own(name: str) -> None:
    shown = runner.invoke(app, [name, "--help"])
    assert shown.exit_code == 0, shown.output
    assert f"labelmem {name}" in shown.output.replace("root", "labelmem")
    assert "completion" not in shown.output


def test_the_shell_completes_commands() -> None:
    typed = {"COMP_WORDS": "labelmem f", "COMP_CWORD": "1"}
    asked = python("-m", "labelmem", _LABELMEM_COMPLETE="complete_bash", **typed)
    assert asked.stdout.split() == ["fit", "forget"]


def test_an_unknown_command_is_a_mistake_of_the_user() -> None:
    shown = runner.invoke(app, ["nope"])
    assert shown.exit_code == 2
    assert "No such command 'nope'" in shown.stderr and "Traceback" not in shown.output


@pytest.mark.usefixtures("breakable")
def test_our_errors_are_one_line() -> None:
    shown = runner.invoke(app, ["demo", "ours"])
    assert shown.exit_code == 2
    assert shown.stderr == "labelmem: seen one thing; expected another\n"
    assert shown.stdout == ""


@pytest.mark.usefixtures("breakable")
def test_a_full_disk_is_one_line() -> None:
    shown = runner.invoke(app, ["demo", "full"])
    assert shown.exit_code == 2
    assert shown.stderr == "labelmem: big.jsonl: No space left on device\n"


@pytest.mark.usefixtures("breakable")
def test_stopping_is_quiet() -> None:
    shown = runner.invoke(app, ["demo", "stopped"])
    assert (shown.exit_code, shown.stderr) == (130, "labelmem: stopped\n")


@pytest.mark.usefixtures("breakable")
def test_debugging_shows_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABELMEM_DEBUG", "1")
    shown = runner.invoke(app, ["demo", "ours"])
    assert isinstance(shown.exception, ConfigError)


@pytest.mark.usefixtures("breakable")
def test_bugs_are_not_hidden() -> None:
    assert isinstance(runner.invoke(app, ["demo", "bug"]).exception, ZeroDivisionError)


def test_errors_of_the_real_command_have_no_traceback() -> None:
    done = python("-m", "labelmem", "inspect", "nope", "--user", "me")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr and "nope" in done.stderr


@pytest.mark.parametrize("name", MOVED)
def test_a_command_that_moved_says_where_to(name: str) -> None:
    for arguments in ([name], [name, "list", "--json"]):
        shown = runner.invoke(app, arguments)
        assert shown.exit_code == 2
        assert f"labelmem {name} is now labelmem-paper {name}" in shown.output
    assert f"  {name} " not in runner.invoke(app, ["--help"]).output


def test_a_command_is_not_imported_to_be_listed() -> None:
    command = LazyCommand("nowhere", "Not there.", "labelmem.cli.nowhere")
    assert command.get_short_help_str() == "Not there."
    with pytest.raises(ModuleNotFoundError):
        command.make_context("nowhere", [])
