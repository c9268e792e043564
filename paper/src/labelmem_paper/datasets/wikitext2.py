"""WikiText-2: two million words of Wikipedia articles (Merity et al., 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from labelmem.errors import DataError
from labelmem_paper.datasets.layout import Arrays, Dataset, Layout
from labelmem_paper.datasets.opening import read_all
from labelmem_paper.datasets.problems import malformed
from labelmem_paper.datasets.text import as_text, encode, text_arrays

__all__ = ["DATASET", "WikiText2Recipe"]

PARTS = ("train", "valid", "test")
EOS = "<eos>"


@dataclass(frozen=True)
class WikiText2Recipe:
    """How the text becomes tokens.

    Words are numbered by their first appearance in the training part; rare ones are ``<unk>`` in
    the published files already.
    """

    end_of_line: bool = True
    """Whether each line, blank ones too, ends with an ``<eos>`` word, as in published figures."""


def split_words(content: bytes, path: Path, recipe: WikiText2Recipe) -> list[str]:
    r"""Return the words of a text.

    Examples
    --------
    >>> split_words(b" = Cats = \n \n", Path("x"), WikiText2Recipe())
    ['=', 'Cats', '=', '<eos>', '<eos>']
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        seen = content[error.start : error.start + 10].decode("latin-1")
        raise malformed(path, line, seen, "UTF-8 text") from error
    lines = text.removesuffix("\n").split("\n")
    end = [EOS] if recipe.end_of_line else []
    return [word for line in lines for word in line.split() + end]


def prepare(contents: dict[str, bytes], path: Path, recipe: WikiText2Recipe) -> Arrays:
    """Number the words of the three parts."""
    for part, content in contents.items():
        if not content.strip():
            raise DataError(f"the {part} part in {path} is empty; get it again from its publisher")
    words = {part: split_words(content, path, recipe) for part, content in contents.items()}
    numbers = {word: index for index, word in enumerate(dict.fromkeys(words["train"]))}
    return text_arrays({part: encode(words[part], numbers, None) for part in PARTS}, numbers)


def read_files(paths: tuple[Path, ...], recipe: WikiText2Recipe) -> Arrays:
    """Read three files, packed or not."""
    contents = {part: read_all(path) for part, path in zip(PARTS, paths, strict=True)}
    return prepare(contents, paths[0].parent, recipe)


def read_zip(paths: tuple[Path, ...], recipe: WikiText2Recipe) -> Arrays:
    """Read the published archive."""
    contents = {part: read_all(paths[0], f"wiki.{part}.tokens") for part in PARTS}
    return prepare(contents, paths[0], recipe)


DATASET = Dataset(
    "wikitext2",
    WikiText2Recipe(),
    layouts=(
        Layout("raw", tuple(f"wiki.{part}.tokens" for part in PARTS), read_files),
        Layout("raw", tuple(f"wikitext-2/wiki.{part}.tokens" for part in PARTS), read_files),
        Layout("raw", ("wikitext-2-v1.zip",), read_zip),
        Layout("compact", tuple(f"wikitext2.{part}.txt.xz" for part in PARTS), read_files),
    ),
    assemble=partial(as_text, "wikitext2"),
)
