"""The default form once more, slowly: numpy, one label at a time, statistics made anew each step.

Nothing is kept but what was shown, the cells, and the few numbers that follow from each other. All
labels are candidates, so it agrees with the library where the model has no more labels than are
looked at one by one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelmem.logit_memory import LogitMemoryOptions

FEATURES = 9


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x[np.isfinite(x)].max())
    return e / e.sum()


class Oracle:
    """One user; predict, then observe."""

    def __init__(self, known: int, options: LogitMemoryOptions) -> None:
        self.L, self.o = known, options
        self.shown: list[tuple[np.ndarray, int]] = []
        self.totals: list[float] = []
        self.peaks: list[float] = []
        self.cells: list[dict[str, Any]] = []
        self.rows: dict[int, dict[int, float]] = {}
        self.theta, self.start = np.array(options.start), np.array(options.start)
        self.prior = np.diag(np.array(options.spread) ** -2.0)
        self.held = self.prior.copy()
        self.kappa, self.kappa_held = 0.15, 1.0
        self.noise, self.to_new, self.to_known = options.noise, options.caution, 0.0
        self.turn, self.made, self.next = 0, 0, 1.0
        self.corrections: dict[int, np.ndarray] = {}
        self.inverses: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    # ------------------------------------------------------------ statistics

    @property
    def labels(self) -> int:
        return self.L + len({y for _, y in self.shown if y >= self.L})

    def inverse(self) -> tuple[np.ndarray, np.ndarray]:
        """A and the mean of all keys, from what had been shown when A was last made."""
        if self.made not in self.inverses:
            self.inverses[self.made] = self.inverse_anew()
        return self.inverses[self.made]

    def inverse_anew(self) -> tuple[np.ndarray, np.ndarray]:
        past = self.shown[: self.made]
        keys = np.array([x for x, _ in past])
        d = keys.shape[1]
        S, held = np.zeros((d, d)), 0
        for y in {y for _, y in past}:
            own = np.array([x for x, label in past if label == y])
            S += (own - own.mean(0)).T @ (own - own.mean(0))
            held += len(own) - 1
        if held < 1 or np.trace(S) <= 0:
            spread = ((keys - keys.mean(0)) ** 2).sum(1).mean()
            floor = max(spread, 1e-6 * (keys.mean(0) ** 2).sum(), 1e-30)
            return np.eye(d) * d / floor, keys.mean(0)
        C = S / held
        t, t2 = np.trace(C), (C * C).sum()
        spread = max(t2 - t * t / d, 1e-12 * t2)
        share = min(1.0, ((1 - 2 / d) * t2 + t * t) / ((held + 1 - 2 / d) * spread))
        shrunk = (1 - share) * C + (share + 1e-6) * t / d * np.eye(d)
        return np.linalg.inv(shrunk), keys.mean(0)

    def score_of_mean(self, x: np.ndarray, y: int, without: int | None) -> float:
        """Kappa (u' A (x - m) - u' A u / 2)."""
        own = [key for i, (key, label) in enumerate(self.shown) if label == y and i != without]
        if not own:
            return 0.0
        A, m = self.inverse()
        pull = len(own) / (len(own) + self.o.pseudo_count)
        u = pull * (np.mean(own, 0) - m)
        return float(self.kappa * (u @ A @ (x - m) - u @ A @ u / 2))

    def trust(self) -> float:
        held = len(self.shown) - len({y for _, y in self.shown})
        return (held + 4) / (held + 20)

    # ------------------------------------------------------------ evidence

    def features(
        self, x: np.ndarray, z: np.ndarray, votes: dict[int, float], without: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(K, 9) features of all labels there are, and their offsets."""
        K, n = self.labels, len(self.shown)
        peak = np.mean(self.peaks) if self.peaks else z.max() - z.mean()
        tame = min(1.0, (math.log(self.L) + self.o.certainty) / max(peak, 1e-9))
        total = math.log(np.exp(z).sum())
        usual = np.array(self.totals)
        surprise = 0.0
        if n >= 6:
            spread = math.sqrt(max((usual**2).mean() - usual.mean() ** 2, 1e-12))
            surprise = float(np.clip((total - usual.mean()) / spread, -3, 3))
        mean = [self.score_of_mean(x, y, without) if n else 0.0 for y in range(K)]
        ground = math.log(sum(math.exp(v) for v in mean[: self.L]) / self.L)
        choice = int(z.argmax())
        row = dict(self.rows.get(choice, {}))
        if without is not None:
            label = self.shown[without][1]
            row[label] = max(row.get(label, 0.0) - 1, 0.0)
        F, offset = np.zeros((K, FEATURES)), np.zeros(K)
        new = max(1, K - self.L)
        old = sum(y < self.L for _, y in self.shown)
        for y in range(K):
            own = sum(label == y and i != without for i, (_, label) in enumerate(self.shown))
            ahead = self.trust() * min(max(mean[y] - ground, -20.0), 20.0)
            before = 0.5 / self.labels + 0.5 * (y == choice)
            slotted = own or y in votes or y in row or y in self.slotted
            F[y] = (
                tame * z[y] if y < self.L else math.log(np.exp(tame * z).sum()),
                y == choice,
                ahead if y >= self.L and own else 0.0,
                ahead * own / (own + 4) if y < self.L else 0.0,
                -surprise if y >= self.L else 0.0,
                math.log(2 * own + 1),
                self.o.strength * votes.get(y, 0.0),
                math.log((row.get(y, 0.0) + before) / before) if slotted else 0.0,
                self.corrections[y] @ (x - self.inverse()[1]) if y in self.corrections else 0.0,
            )
            if y >= self.L:
                offset[y] = math.log((n - old + 0.5) / (old + 5) / new)
        return F, offset

    @property
    def slotted(self) -> set[int]:
        return {y for _, y in self.shown} | {y for cell in self.cells for y in cell["votes"]}

    def heard(self, x: np.ndarray) -> dict[int, float]:
        """What the cells vote, by label."""
        votes: dict[int, float] = {}
        if not self.cells:
            return votes
        A, m = self.inverse()
        size = max(np.mean([(cell["x"] - m) @ A @ (cell["x"] - m) for cell in self.cells]), 1e-9)
        for cell in self.cells:
            far = (cell["x"] - x) @ A @ (cell["x"] - x)
            near = math.exp(-self.o.sharpness / 2 * far / size)
            for y, v in cell["votes"].items():
                votes[y] = votes.get(y, 0.0) + near * v
        return votes

    # ------------------------------------------------------------ the two verbs

    def predict(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        self.x, self.z = x, z
        self.F, self.offset = self.features(x, z, self.heard(x))
        self.f = self.F @ self.theta + self.offset
        K, choice = len(self.f), int(z.argmax())
        careful = [0.0 if y == choice else self.caution(y) for y in range(K)]
        return (1 - self.noise) * softmax(self.f - careful) + self.noise / K

    def caution(self, y: int) -> float:
        return self.to_new if y >= self.L else self.to_known

    def observe(self, y: int) -> None:
        K, p = len(self.f), softmax(self.f)
        believed = 1.0
        if y < K:
            right = (1 - self.noise) * p[y]
            believed = right / (right + self.noise / K)
        self.be_careful(y, believed)
        if y < K:
            self.learn(y)
        self.totals.append(math.log(np.exp(self.z).sum()))
        self.peaks.append(float(self.z.max() - self.z.mean()))
        if any(label == y for _, label in self.shown):
            self.calibrate(y)
        self.remember_row(int(self.z.argmax()), y)
        self.shown.append((self.x, y))
        n = len(self.shown)
        if n <= 8 or n >= self.next:
            self.made, self.next = n, int(1.5 * max(n, 8)) + 1
        sure = y < K and p[y] >= self.o.gate
        self.replay(None if sure else self.write(y))

    def be_careful(self, y: int, believed: float) -> None:
        choice = int(self.z.argmax())
        others = [k for k in range(len(self.f)) if k != choice]
        other = max(others, key=lambda k: self.f[k])
        new = other >= self.L
        gap = self.f[other] - self.f[choice] - self.caution(other)
        lost = 1 / (1 + math.exp(-min(max(gap / 0.5, -30), 30)))
        change = -1.5 * self.noise / len(self.f) * lost
        to_new, to_known = (change, 0.0) if new else (0.0, change)
        if y < self.L:
            to_new, to_known = to_new - self.o.harm, to_known - 0.003
            moved = 0.0
            if y == choice and gap < 4:
                moved = lost * believed
            elif y == other:
                moved = -lost
                to_new -= 0.5 * lost
            to_new, to_known = (to_new + moved, to_known) if new else (to_new, to_known + moved)
        self.to_new = min(max(self.to_new + to_new, 0.0), 6.0)
        self.to_known = min(max(self.to_known + to_known, 0.0), 6.0)

    def learn(self, y: int) -> None:
        keep, u = self.o.forget, self.noise / len(self.f)
        held = keep * self.held + (1 - keep) * self.prior
        back = (1 - keep) * self.prior @ (self.start - self.theta)
        centre = self.theta + np.linalg.solve(held, back)

        def loss(w: np.ndarray) -> float:
            p = (1 - self.noise) * softmax(self.F @ w + self.offset)[y] + u
            return float((w - centre) @ held @ (w - centre) / 2 - math.log(p + 1e-300))

        theta = centre
        for _ in range(3):
            p = softmax(self.F @ theta + self.offset)
            right = (1 - self.noise) * p[y]
            share = right / (right + u)
            H = share * sum(
                q * np.outer(row - p @ self.F, row - p @ self.F)
                for q, row in zip(p, self.F, strict=True)
            )
            slope = share * (self.F[y] - p @ self.F) - held @ (theta - centre)
            step = np.linalg.solve(held + H, slope)
            tried = [theta + part * step for part in (1.0, 0.5, 0.25, 0.1)]
            theta = next((w for w in tried if loss(w) <= loss(theta) + 1e-9), theta)
        self.theta, self.held = theta, held + H

    def calibrate(self, y: int) -> None:
        met = sorted({label for _, label in self.shown})
        s = np.array([self.score_of_mean(self.x, label, None) for label in met])
        p = softmax(s)
        gradient = s[met.index(y)] - p @ s
        self.kappa_held = 0.998 * self.kappa_held + p @ s**2 - (p @ s) ** 2 + 1e-3
        self.kappa *= math.exp(min(max(gradient / self.kappa_held, -0.5), 0.5))

    def remember_row(self, choice: int, y: int) -> None:
        row = self.rows.setdefault(choice, {})
        left = min(1.0, (self.o.row - 1) / max(sum(row.values()), 1e-9))
        self.rows[choice] = {k: v * left for k, v in row.items()}
        self.rows[choice][y] = self.rows[choice].get(y, 0.0) + 1

    def write(self, y: int) -> int:
        cell = {"x": self.x, "z": self.z, "y": y, "votes": {y: 0.0}, "at": len(self.shown) - 1}
        if len(self.cells) < self.o.capacity:
            self.cells.append(cell)
            return len(self.cells) - 1
        place = min(range(len(self.cells)), key=lambda i: abs(self.cells[i]["votes"][self.own(i)]))
        self.cells[place] = cell
        return place

    def own(self, i: int) -> int:
        return int(self.cells[i]["y"])

    def replay(self, written: int | None) -> None:
        n = len(self.cells)
        if not n:
            return
        asked = min(self.o.revisits, n)
        cells = {(self.turn + i) % n for i in range(asked)} | ({written} - {None})
        self.turn = (self.turn + asked) % n
        theta = self.theta.copy()
        theta[6] = 1.0
        changed, doubted = {}, []
        A, m = self.inverse()
        moves = {y: np.zeros(len(m)) for y in self.slotted}
        for i in sorted(cells):
            cell = self.cells[i]
            F, offset = self.features(cell["x"], cell["z"], self.heard(cell["x"]), cell["at"])
            f, y = F @ theta + offset, cell["y"]
            v = np.array([cell["votes"].get(k, 0.0) for k in range(len(f))])
            alone = softmax(f - self.o.strength * v)
            right = (1 - self.noise) * alone[y]
            believed = right / (right + self.noise / self.labels)
            doubted.append(1 - believed)
            believed = max(believed, self.o.believed)
            across = A @ (cell["x"] - m)
            across /= max(across @ (cell["x"] - m), 1e-9)
            for k in moves:
                moves[k] += self.o.rate * believed * ((k == y) - alone[k]) * across
            for _ in range(3):
                step = (believed * ((np.arange(len(f)) == y) - softmax(f)) - v) / (
                    1 + self.o.strength / 2
                )
                v, f = v + step, f + self.o.strength * step
            size = np.abs(v)
            size[y] = np.inf
            kept = np.argsort(-size, kind="stable")[: self.o.votes]
            changed[i] = {int(k): float(v[k]) for k in kept if k == y or abs(v[k]) > 1e-4}
        for k, move in moves.items():
            self.corrections[k] = self.o.kept * self.corrections.get(k, 0.0) + move
        for i, votes in changed.items():
            self.cells[i]["votes"] = votes
        share = min(1.0, n / len(self.shown)) * np.mean(doubted)
        change = share - self.noise + 0.1 * (self.o.noise - self.noise)
        self.noise = min(max(self.noise + change / 100, 1e-4), 0.6)
