"""The data sets of the paper behind one small interface.

Examples
--------
>>> from labelmem.data import load
>>> data = load("synthetic", seed=0)
>>> [len(data.split.part(part)) for part in ("train", "valid", "test")]
[151, 17, 72]
"""

from labelmem.data.banking77 import Banking77Recipe
from labelmem.data.checkins import CheckinRecipe
from labelmem.data.geolife import GeolifeRecipe
from labelmem.data.images import Images
from labelmem.data.intents import Intents
from labelmem.data.loading import default_recipe, load, source_of
from labelmem.data.omniglot import OmniglotRecipe
from labelmem.data.registry import Info, info, names
from labelmem.data.sequences import Sequences
from labelmem.data.source import Source
from labelmem.data.split import Split
from labelmem.data.synthetic import SyntheticRecipe, generate
from labelmem.data.text import Text
from labelmem.data.text8 import Text8Recipe
from labelmem.data.wikitext2 import WikiText2Recipe
from labelmem.data.yoochoose import YoochooseRecipe

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
    "generate",
    "info",
    "load",
    "names",
    "source_of",
]
