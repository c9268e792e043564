"""The tasks by name: each is called with a seed and a folder for what takes long."""

from collections.abc import Callable, Mapping
from pathlib import Path

from labelmem_paper.experiments.adapt.frozen import FrozenTask
from labelmem_paper.experiments.adapt.tasks.banking77 import make_banking77
from labelmem_paper.experiments.adapt.tasks.banking77_words import make_banking77_words
from labelmem_paper.experiments.adapt.tasks.checkins import make_checkins
from labelmem_paper.experiments.adapt.tasks.digits import make_digits
from labelmem_paper.experiments.adapt.tasks.letters import make_letters
from labelmem_paper.experiments.adapt.tasks.mnist import make_mnist
from labelmem_paper.experiments.adapt.tasks.omniglot import make_omniglot_50, make_omniglot_250
from labelmem_paper.experiments.adapt.tasks.segments import make_segments
from labelmem_paper.experiments.adapt.tasks.speakers import make_speakers

__all__ = ["TASKS"]

TASKS: Mapping[str, Callable[[int, Path], FrozenTask]] = {
    "digits": make_digits,
    "segments": make_segments,
    "banking77": make_banking77,
    "omniglot-250": make_omniglot_250,
    "omniglot-50": make_omniglot_50,
    "mnist": make_mnist,
    "banking77-words": make_banking77_words,
    "letters": make_letters,
    "checkins": make_checkins,
    "speakers": make_speakers,
}
"""What a task needs beside the library comes with the extra ``adapt``."""
