from __future__ import annotations

import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from labelmem_paper.datasets import Text8Recipe, load

from labelmem.errors import ConfigError, DataError

Write = Callable[[str, bytes], Path]

WIKI = {
    "train": " \n = Caf\u00e9 = \n \n the <unk> caf\u00e9 \n",
    "valid": " the Caf\u00e9 \n",
    "test": " <unk> \n",
}
TOKENS = ["<eos>", "=", "Café", "=", "<eos>", "<eos>", "the", "<unk>", "café", "<eos>"]


@pytest.mark.parametrize("packing", ["plain", "folder", "zip", "compact"])
def test_wikitext(write: Write, tmp_path: Path, packing: str) -> None:
    for part, text in WIKI.items():
        if packing == "compact":
            write(f"wikitext2.{part}.txt.xz", lzma.compress(text.encode()))
        elif packing == "zip":
            with zipfile.ZipFile(tmp_path / "wikitext-2-v1.zip", "a") as archive:
                archive.writestr(f"wikitext-2/wiki.{part}.tokens", text)
        else:
            folder = "wikitext-2/" if packing == "folder" else ""
            write(f"{folder}wiki.{part}.tokens", text.encode())
    data = load("wikitext2", root=tmp_path)
    assert data.words(data.train) == TOKENS
    assert data.words(data.part("valid")) == ["the", "Café", "<eos>"]
    assert data.words(data.test) == ["<unk>", "<eos>"]
    assert data.vocabulary == ("<eos>", "=", "Café", "the", "<unk>", "café")
    assert data.source.form == ("compact" if packing == "compact" else "raw")


def test_wikitext_without_line_ends(write: Write, tmp_path: Path) -> None:
    for part, text in WIKI.items():
        write(f"wiki.{part}.tokens", text.encode())
    data = load("wikitext2", {"end_of_line": False}, root=tmp_path)
    assert data.words(data.train) == [word for word in TOKENS if word != "<eos>"]
    with pytest.raises(ConfigError, match="'dev'"):
        data.part("dev")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("part", "content", "what"),
    [("valid", b"a new word\n", "'a' is in no training text"),
     ("train", b" \n", "train part .* empty"),
     ("test", b" the \n \xff \n", "line 2")],
)  # fmt: skip
def test_wikitext_faults(
    write: Write, tmp_path: Path, part: str, content: bytes, what: str
) -> None:
    for name, text in WIKI.items():
        write(f"wiki.{name}.tokens", content if name == part else text.encode())
    with pytest.raises(DataError, match=what):
        load("wikitext2", root=tmp_path)


TEXT8 = b" the cat sat the cat ran the dog" + b" the rat" + b" a cat"
CUT = Text8Recipe(min_count=2, valid_characters=8, test_characters=6)


@pytest.mark.parametrize("packed", [False, True])
def test_text8(write: Write, tmp_path: Path, packed: bool) -> None:
    if packed:
        with zipfile.ZipFile(tmp_path / "text8.zip", "w") as archive:
            archive.writestr("text8", TEXT8)
    else:
        write("text8/text8", TEXT8)
    data = load("text8", CUT, root=tmp_path)
    assert data.vocabulary == ("<UNK>", "the", "cat")
    assert data.words(data.train) == "the cat <UNK> the cat <UNK> the <UNK>".split()
    assert data.words(data.valid) == ["the", "<UNK>"]
    assert data.words(data.test) == ["<UNK>", "cat"]


def test_text8_is_cut_by_characters(write: Write, tmp_path: Path) -> None:
    write("text8", b"aa bb aa bb")
    data = load(
        "text8", {"min_count": 1, "valid_characters": 4, "test_characters": 3}, root=tmp_path
    )
    assert data.words(data.train) == ["aa", "b"]
    assert data.words(data.valid) == ["b", "aa"]
    assert data.words(data.test) == ["<UNK>"]


def test_text8_compact(write: Write, tmp_path: Path) -> None:
    texts = {
        "text8.first9086k": "one two one <UNK>",
        "text8.98M-99M.unk": "two <UNK>\n",
        "text8.last1M.unk": "one three\n",
    }
    for name, text in texts.items():
        write(f"{name}.txt.xz", lzma.compress(text.encode()))
    data = load("text8", {"min_count": 1}, root=tmp_path)
    assert data.vocabulary == ("<UNK>", "one", "two")
    assert data.words(data.train) == ["one", "two", "one", "<UNK>"]
    assert data.words(data.valid) == ["two", "<UNK>"]
    assert data.words(data.test) == ["one", "<UNK>"]
    assert data.source.subset


@pytest.mark.parametrize(
    ("content", "recipe", "what"),
    [
        (b"the cat\nthe Dog", CUT, r"text8, line 2: found 'Dog'"),
        (b"the cat", CUT, "has 7 characters"),
        (b"a b c d e f g h i j k l m n", CUT, "lower min_count"),
        (b"", CUT, "is empty"),
    ],
)
def test_text8_faults(
    write: Write, tmp_path: Path, content: bytes, recipe: Text8Recipe, what: str
) -> None:
    write("text8", content)
    with pytest.raises(DataError, match=what):
        load("text8", recipe, root=tmp_path)


@pytest.mark.parametrize("options", [{"min_count": 0}, {"test_characters": -1}])
def test_impossible_options(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        load("text8", options)
