"""The last few rounds: what a mechanism keeps when it forgets all from before its change."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class RecentRounds:
    """A ring of rounds; `size` rounds of N values, however many were played."""

    def __init__(self, n_nodes: int, size: int = 100) -> None:
        self._values = np.zeros((size, n_nodes))
        self._regimes = np.zeros((size, n_nodes), dtype=np.uint8)
        self._rounds = np.zeros(size, dtype=np.int64)  # 0: empty
        self._made = np.zeros(size, dtype=np.int64)

    def add(
        self,
        round_: int,
        regimes: npt.NDArray[np.uint8],
        values: FloatArray,
        made: int | None = None,
    ) -> None:
        """Round numbers count from 1; rounds may be left out, or come late.

        `made` as of `Policy.tell`.
        """
        row = round_ % len(self._rounds)
        if round_ < self._rounds[row]:
            return  # too late
        self._values[row], self._regimes[row], self._rounds[row] = values, regimes, round_
        self._made[row] = round_ if made is None else made

    def values(self, n: int) -> FloatArray:
        """The last n rounds, (n, N); fewer where fewer were played."""
        return self._values[self._last(n)]

    def regimes(self, n: int) -> npt.NDArray[np.uint8]:
        """The interventions of those rounds, (n, N)."""
        return self._regimes[self._last(n)]

    def _last(self, n: int) -> npt.NDArray[np.int64]:
        numbers = np.argsort(self._rounds)[-n:]
        return numbers[self._rounds[numbers] > 0]

    def last_regimes(self) -> npt.NDArray[np.uint8]:
        """The last intervention, (N,); all zeros where nothing was played."""
        return self._regimes[np.argmax(self._rounds)]

    def samples(self, regime: int, node: int, *, after: int) -> FloatArray:
        """Values of all nodes in the rounds a mechanism was played in after a round, (n, N).

        Those that were made before the first of them and told late are not among them.
        """
        rows = self._played(regime, node, after)
        return self._values[rows[self._made[rows] >= self.began(regime, node, after=after)]]

    def began(self, regime: int, node: int, *, after: int) -> int:
        """When the first round after a round in which the mechanism was played was made; or 0."""
        rows = self._played(regime, node, after)
        return int(self._made[rows[0]]) if len(rows) else 0

    def _played(self, regime: int, node: int, after: int) -> npt.NDArray[np.int64]:
        rows = (self._rounds > max(after, 0)) & (self._regimes[:, node] == regime)
        numbers = np.flatnonzero(rows)
        return numbers[np.argsort(self._rounds[numbers])]

    def state(self) -> dict[str, Any]:
        return {
            "values": self._values.copy(),
            "regimes": self._regimes.copy(),
            "rounds": self._rounds.copy(),
            "made": self._made.copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._values[:] = state["values"]
        self._regimes[:] = state["regimes"]
        self._rounds[:] = state["rounds"]
        self._made[:] = state["made"]
