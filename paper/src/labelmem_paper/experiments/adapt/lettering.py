"""Pictures of single characters in many typefaces, each turned, moved and soiled at random."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelmem_paper.experiments.adapt.extras import needed

__all__ = ["CHARACTERS", "draw_letters", "font_files"]

CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
EDGE = 128
NOISE = 20.0
"""Standard deviation of the grey values' noise, white being 255."""
MATPLOTLIB = (
    *("DejaVuSans", "DejaVuSansMono", "DejaVuSerif", "STIXGeneral"),
    *("cmb10", "cmr10", "cmss10", "cmti10", "cmtt10"),
)
"""Those of its typefaces that hold letters in their usual places."""
PACKAGES = (
    "font_amatic_sc",
    "font_caladea",
    "font_fredoka_one",
    "font_intuitive",
    "font_manrope",
    "font_source_serif_pro",
)

Pixels = npt.NDArray[np.uint8]


def font_files(task: str) -> list[Path]:
    """The typefaces of matplotlib and of the packages, one file for each style."""
    folder = Path(needed("matplotlib", task).get_data_path()) / "fonts" / "ttf"
    files: list[Path] = []
    for name in MATPLOTLIB:
        files += [*folder.glob(f"{name}.ttf"), *folder.glob(f"{name}[-BI]*.ttf")]
    for package in PACKAGES:
        where = Path(str(needed(package, task).__file__)).parent / "files"
        files += [file for file in where.glob("*.ttf") if "Variable" not in file.name]
    return sorted(set(files), key=lambda file: file.name)


def draw_letters(fonts: Sequence[Path], each: int, rng: np.random.Generator) -> Pixels:
    """(characters, each, edge, edge) pictures, dark on light."""
    draw: Any = needed("PIL.ImageDraw", "letters")
    image: Any = needed("PIL.Image", "letters")
    font: Any = needed("PIL.ImageFont", "letters")

    def one(character: str) -> Pixels:
        face = font.truetype(str(fonts[int(rng.integers(len(fonts)))]), int(rng.integers(50, 90)))
        sheet = image.new("L", (EDGE, EDGE), 0)
        draw.Draw(sheet).text((EDGE / 2, EDGE / 2), character, fill=255, font=face, anchor="mm")
        bent = sheet.transform(sheet.size, image.Transform.AFFINE, _bend(rng), image.BILINEAR)
        paper, ink = rng.uniform(170, 255), rng.uniform(0, 90)
        grey = paper + (ink - paper) * np.asarray(bent, np.float64) / 255
        return np.clip(grey + rng.normal(0, NOISE, grey.shape), 0, 255).astype(np.uint8)

    return np.stack([[one(character) for _ in range(each)] for character in CHARACTERS])


def _bend(rng: np.random.Generator) -> tuple[float, ...]:
    """An affine map about the middle: turned by up to 15 degrees, slanted, moved by a tenth."""
    angle, slant = rng.uniform(-0.26, 0.26), rng.uniform(-0.3, 0.3)
    turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    linear = turned @ np.array([[1, slant], [0, 1]])
    middle = np.full(2, EDGE / 2)
    moved = middle - linear @ middle + rng.uniform(-EDGE / 10, EDGE / 10, 2)
    (a, b), (c, d) = linear.tolist()
    return a, b, float(moved[0]), c, d, float(moved[1])
