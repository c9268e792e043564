"""Whether kernels may be given a user: a file that was tampered with could lead them astray."""

from __future__ import annotations

import torch
from torch import Tensor

from labelmem.logit_memory.user import User

__all__ = ["fits"]


def fits(user: User) -> bool:
    """Whether all tensors have the sizes that belong together, and name slots that exist."""
    t = user.tensors()
    d, m, n = user.statistics.dim, len(t["slot_labels"]), len(t["cells.key"])
    shapes = {
        "slot_labels": (m,),
        "corrections.rows": (m, d),
        "statistics.sums": (m, d),
        "cells.key": (n, d),
        "cells.place": (n, d),
        "cells.about": (n, user.options.votes),
        "cells.vote": (n, user.options.votes),
        "cells.label": (n, min(user.options.top, user.known)),
        "cells.value": (n, min(user.options.top, user.known)),
        "weights.held": tuple(user.weights.prior.shape),
        "weights.theta": tuple(user.weights.start.shape),
        "caution.nats": (2,),
        "numbers": (7,),
        "statistics.numbers": (6,),
    }
    shapes |= {f"statistics.{name}": (d,) for name in ("mean", "origin")}
    shapes |= {f"statistics.{name}": (d, d) for name in ("scatter", "root")}
    shapes |= {f"statistics.{name}": (m,) for name in ("counts", "squares")}
    shapes |= {f"cells.{name}": (n,) for name in ("slot", "rest", "total")}
    if any(tuple(t[name].shape) != shape for name, shape in shapes.items()):
        return False
    named = [t["cells.slot"], t["cells.about"], t["rows"][:, 1]]
    apart = len(torch.unique(t["slot_labels"])) == m
    return apart and _within(t["slot_labels"], None) and all(_within(x, m) for x in named)


def _within(x: Tensor, end: int | None) -> bool:
    return not x.numel() or (int(x.min()) >= 0 and (end is None or int(x.max()) < end))
