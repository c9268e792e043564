"""The data sets of the paper behind one small interface.

Examples
--------
>>> from labelmem_paper.datasets import load
>>> data = load("synthetic", seed=0)
>>> [len(data.split.part(part)) for part in ("train", "valid", "test")]
[151, 17, 72]
"""

from labelmem.split import Split
from labelmem_paper.datasets.banking77 import Banking77Recipe
from labelmem_paper.datasets.checkins import CheckinRecipe
from labelmem_paper.datasets.geolife import GeolifeRecipe
from labelmem_paper.datasets.images import Images
from labelmem_paper.datasets.intents import Intents
from labelmem_paper.datasets.loading import default_recipe, load, source_of
from labelmem_paper.datasets.omniglot import OmniglotRecipe
from labelmem_paper.datasets.registry import Info, info, names
from labelmem_paper.datasets.sequences import Sequences
from labelmem_paper.datasets.source import Source
from labelmem_paper.datasets.synthetic import SyntheticRecipe
from labelmem_paper.datasets.text import Text
from labelmem_paper.datasets.text8 import Text8Recipe
from labelmem_paper.datasets.wikitext2 import WikiText2Recipe
from labelmem_paper.datasets.yoochoose import YoochooseRecipe

__all__ = [
    "Banking77Recipe",
    "CheckinRecipe",
    "GeolifeRecipe",
    "Images",
    "Info",
    "Intents",
    "OmniglotRecipe",
    "Sequences",
    "Source",
    "Split",
    "SyntheticRecipe",
    "Text",
    "Text8Recipe",
    "WikiText2Recipe",
    "YoochooseRecipe",
    "default_recipe",
    "info",
    "load",
    "names",
    "source_of",
]
