"""The slow loops of ``tests/oracle`` on the users of a form."""

from __future__ import annotations

from typing import Any

import torch
from slow import OracleStream, softmax
from torch import Tensor

from conformance.forms import Form
from conformance.users import Output

__all__ = ["FormOracle", "oracle_run"]


class FormOracle(OracleStream):
    """One user's stream, with or without a model score."""

    @torch.no_grad()
    def output(self, x: Tensor) -> Output:
        """Pure, like predict, until a label is observed."""
        h, self._next = self.model.features(x[None], self.state)
        lmn, r = self.lmn, None
        labels = list(lmn.labels)
        if hasattr(self.model, "head"):
            logits = self.model.head(h)[0].tolist()
            r = dict(zip(labels, softmax(logits), strict=False))
        found = lmn.predict(h[0].tolist(), r)
        rows: dict[str, Any] = {
            name: torch.tensor([values[y] for y in labels], dtype=torch.float64)
            for name, values in (found | {"r": {y: (r or {}).get(y, 0.0) for y in labels}}).items()
            if values or not labels
        }
        theta, model = (rows["theta"], rows["r"]) if r is not None else (None, None)
        return Output(labels, rows["P"], theta, model, rows["s"])


def oracle_run(form: Form, recorded: tuple[Tensor, list[Any]]) -> list[Output]:
    """What the oracle answers to one user."""
    oracle, outputs = FormOracle.like(form.build()), []
    for x, y in zip(*recorded, strict=True):
        outputs.append(oracle.output(x))
        oracle.observe(y)
    return outputs
