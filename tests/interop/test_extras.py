"""What each module needs, seen from a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

BLOCK = """
import sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {name!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def fresh(script: str) -> str:
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["sklearn", "river"])
def test_a_missing_extra_is_named(name: str) -> None:
    script = BLOCK.format(name=name) + textwrap.dedent(
        f"""
        from labelmem.errors import MissingExtraError
        try:
            import labelmem.interop.{name}
        except MissingExtraError as error:
            print(error)
        """
    )
    assert f"pip install 'labelmem[{name}]'" in fresh(script)


def test_a_memory_alone_does_without_torch() -> None:
    script = BLOCK.format(name="torch") + textwrap.dedent(
        """
        from labelmem.interop.river import LabelMemClassifier
        classifier = LabelMemClassifier()
        classifier.learn_one({"x": 1.0}, "yes")
        print(classifier.predict_one({"x": 1.0}))
        """
    )
    assert fresh(script).strip() == "yes"
