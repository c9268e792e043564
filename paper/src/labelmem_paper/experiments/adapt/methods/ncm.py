"""Nearest class mean, the means of known labels taken from the training examples."""

from __future__ import annotations

from labelmem.search import Point
from labelmem_paper.experiments.adapt.contender import AdaptBaseline
from labelmem_paper.experiments.adapt.frozen import FrozenTask


class NCM(AdaptBaseline):
    """The metric, and how sure to be; temperatures are those of vectors with a mean square of 1."""

    name = "ncm"
    grid = {"temperature": [1.0, 3.0, 10.0, 30.0, 100.0], "metric": ["cosine", "euclidean"]}
    start = {"temperature": 10.0, "metric": "euclidean"}

    def chosen(self, point: Point, frozen: FrozenTask) -> Point:
        """Squared distances grow with the vectors, cosines do not."""
        size = 1.0 if point["metric"] == "cosine" else float(frozen.train_h.square().mean())
        return {**point, "temperature": point["temperature"] / size}


CONTENDER = NCM
