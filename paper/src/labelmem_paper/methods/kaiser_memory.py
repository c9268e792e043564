"""Kaiser's memory: one table of keys for all labels, always written, the oldest going first."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labelmem import functional as F
from labelmem.errors import ConfigError

__all__ = ["KaiserMemory"]

_FREE = -1  # the value of a cell that was never written
_CHUNK = 256  # queries that are compared with all keys at once


class KaiserMemory(nn.Module):
    """Keys of length one, the label and the age of each; a query is answered by the nearest key.

    Every example is written. If the nearest key had the right label, it moves towards the query,
    ``k = (k + q) / |k + q|``; if not, the query takes the place of the oldest key of all labels,
    ages being compared with some noise. What was written becomes young, all others age by one.

    Parameters
    ----------
    cells
        How many keys there are.
    dim
        Their length.
    margin
        By how much the nearest key of the right label should be nearer than that of any other.
    age_noise
        Ages are compared after adding numbers from [0, age_noise) to them.

    Examples
    --------
    >>> memory = KaiserMemory(cells=4, dim=2, age_noise=0.0)
    >>> h, y = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]]), torch.tensor([3, 8, 3])
    >>> memory.replay(h, y, torch.Generator())       # the first two have never been shown
    tensor([-1,  3,  3])

    References
    ----------
    Kaiser, Nachum, Roy and Bengio (2017), Learning to Remember Rare Events, section 2. There a
    query looks at its k nearest keys; the answer, the loss and the update depend on the nearest one
    of each kind only, so that no k is needed where the search is exact.
    """

    keys: Tensor
    values: Tensor
    ages: Tensor

    def __init__(self, cells: int, dim: int, margin: float = 0.1, age_noise: float = 8.0) -> None:
        super().__init__()
        if cells < 1 or dim < 1 or margin < 0 or age_noise < 0:
            raise ConfigError(
                f"cells is {cells}, dim is {dim}, margin is {margin}, age_noise is {age_noise}; "
                "expected whole numbers from 1 and numbers from 0"
            )
        self.margin, self.age_noise = margin, age_noise
        self.register_buffer("keys", torch.zeros(cells, dim))
        self.register_buffer("values", torch.full((cells,), _FREE))
        self.register_buffer("ages", torch.zeros(cells))

    def reset(self) -> None:
        """Forget everything."""
        self.keys.zero_()
        self.values.fill_(_FREE)
        self.ages.zero_()

    def similarities(self, q: Tensor) -> Tensor:
        """Cosines (n, cells) of queries (n, dim) of length one; -inf where nothing was written."""
        found: Tensor = q @ self.keys.to(q.dtype).T
        return found.masked_fill(self.values == _FREE, -torch.inf)

    def loss(self, h: Tensor, y: Tensor) -> Tensor:
        """Mean of ``max(0, nearest wrong - nearest right + margin)``, over those that have both."""
        near = F.normalise(h) @ self.keys.clone().T  # the next write must not change the gradient
        near = near.masked_fill(self.values == _FREE, -torch.inf)
        right = self.values == y[:, None]
        best = near.masked_fill(~right, -torch.inf).amax(dim=1)
        worst = near.masked_fill(right, -torch.inf).amax(dim=1)
        both = torch.isfinite(best) & torch.isfinite(worst)
        # Infinite entries are replaced before they meet, or their gradients are not numbers.
        lead = torch.where(both, worst, 0.0) - torch.where(both, best, 0.0) + self.margin
        return (lead.clamp(min=0) * both).sum() / both.sum().clamp(min=1)

    @torch.no_grad()
    def write(self, h: Tensor, y: Tensor, generator: torch.Generator) -> None:
        """Learn a batch at once, every query being compared with the memory as it was before.

        The misses take the oldest cells, one each; where two queries hit one key, the later counts.
        """
        q = F.normalise(h).to(self.keys.dtype)
        near, cell = self.similarities(q).max(dim=1)
        hit = torch.isfinite(near) & (self.values[cell] == y)
        oldest = self._aged(generator).argsort(descending=True, stable=True)
        place = oldest[((~hit).cumsum(dim=0) - 1).clamp(min=0, max=len(oldest) - 1)]
        cell = torch.where(hit, cell, place)
        self.keys[cell] = F.normalise(torch.where(hit[:, None], self.keys[cell] + q, q))
        self.values[cell] = y
        self.ages += 1
        self.ages[cell] = 0

    @torch.no_grad()
    def replay(self, h: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """Answer and learn one example after the other; the answers (n,), -1 from an empty memory.

        Exact, though many queries are compared with all keys at once: a write changes one key, and
        the later queries of the chunk are compared with that one again.
        """
        queries = F.normalise(h).to(self.keys.dtype)
        truth = y.tolist()
        answers = []
        for start in range(0, len(truth), _CHUNK):
            q = queries[start : start + _CHUNK]
            near = self.similarities(q)
            for t, label in enumerate(truth[start : start + _CHUNK]):
                cell = int(near[t].argmax())
                answers.append(int(self.values[cell]))
                if answers[-1] == label:
                    self.keys[cell] = F.normalise(self.keys[cell] + q[t])
                else:
                    cell = int(self._aged(generator).argmax())
                    self.keys[cell], self.values[cell] = q[t], label
                self.ages += 1
                self.ages[cell] = 0
                near[t + 1 :, cell] = q[t + 1 :] @ self.keys[cell]
        return torch.tensor(answers)

    def _aged(self, generator: torch.Generator) -> Tensor:
        noise = torch.rand(len(self.ages), generator=generator)
        return self.ages + self.age_noise * noise.to(self.ages.device)
