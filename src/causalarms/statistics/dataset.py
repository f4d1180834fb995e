"""Rounds as they come in: append-only rows, and which of them each mechanism may learn from.

A mechanism is (regime, node). Its samples are the rows in which the node was in that regime since
the mechanism's start, which moves forward when a change is detected (Sec. V): forgetting one
mechanism leaves the others untouched. `cap` bounds the samples of a mechanism (the authors' program
uses the first 100), keeping the oldest or the newest of them.

A round is stored once: N values and N regimes, O(N t) in all. Which rows belong to a mechanism is
looked up in the regimes when asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, IntArray, Intervention, Interventions
from causalarms.checks import choice, integer, optional
from causalarms.errors import DataError
from causalarms.kernels import kernel
from causalarms.sem.regimes import as_interventions, node_names, regime_counts

KEPT = ("oldest", "newest")


class Dataset:
    """Append-only rows (n, N) with the regimes (n, N) they were measured under.

    `regimes` says how many each node may be in (two).

    >>> data = Dataset(2)
    >>> data.append([[1.0, 2.0], [3.0, 4.0]], [[0, 0], [0, 1]])
    >>> data.counts.tolist()
    [[2, 1], [0, 1]]
    >>> data.samples(1, 1).tolist()
    [[3.0, 4.0]]
    """

    def __init__(
        self,
        n_nodes: int,
        *,
        nodes: Sequence[str] | None = None,
        cap: int | None = None,
        keep: str = "oldest",
        regimes: npt.ArrayLike | None = None,
    ) -> None:
        optional(integer, "cap", cap, minimum=1)
        choice("keep", keep, KEPT)
        self.nodes = node_names(nodes, n_nodes)
        self.cap = cap
        self.keep = keep
        self.n_regimes = regime_counts(regimes, n_nodes)  # (N,)
        shape = int(self.n_regimes.max()), n_nodes
        self.starts: IntArray = np.zeros(shape, dtype=np.int64)
        self._length = 0
        self._values = np.empty((16, n_nodes))
        self._regimes = np.empty((16, n_nodes), dtype=np.uint8)
        self._counts: IntArray = np.zeros(shape, dtype=np.int64)

    def __len__(self) -> int:
        return self._length

    @property
    def n_nodes(self) -> int:
        return len(self.nodes)

    @property
    def values(self) -> FloatArray:
        """All rows, (n, N), read-only."""
        return _read_only(self._values[: self._length])

    @property
    def regimes(self) -> Interventions:
        """All regimes, (n, N), read-only."""
        return _read_only(self._regimes[: self._length])

    @property
    def counts(self) -> IntArray:
        """How many samples each mechanism learns from, (R, N)."""
        return self._counts if self.cap is None else np.minimum(self._counts, self.cap)

    def append(self, values: npt.ArrayLike, interventions: npt.ArrayLike) -> None:
        """Add rows; all of them are checked before any is added."""
        rows = np.atleast_2d(np.asarray(values, dtype=float))
        rounds = np.atleast_2d(np.asarray(interventions))
        regimes = as_interventions(rounds, self.nodes, self.n_regimes)
        if rows.shape != regimes.shape:
            raise DataError(f"{rows.shape} values do not fit {regimes.shape} regimes")
        if not np.isfinite(rows).all():
            row, node = np.argwhere(~np.isfinite(rows))[0]
            raise DataError(f"row {row} of node {self.nodes[node]!r} is {rows[row, node]}")
        for row, regime in zip(rows, regimes, strict=True):
            self.add(row, regime)

    def add(self, row: FloatArray, regimes: Intervention) -> None:
        """Add one row that is known to be finite, with regimes that its nodes are known to have."""
        if self._length == len(self._values):
            self._grow()
        self._values[self._length] = row
        self._regimes[self._length] = regimes
        _count(self._counts, regimes)
        self._length += 1

    def forget(self, regime: int, node: int, *, start: int | None = None) -> None:
        """Let a mechanism learn only from rows numbered `start` (default: those to come)."""
        # never backwards: rows from before a change belong to another mechanism
        start = len(self) if start is None else start
        if not self.starts[regime, node] <= start <= len(self):
            raise DataError(
                f"a mechanism that starts at row {self.starts[regime, node]} of {len(self)} "
                f"cannot start at row {start}: rows are forgotten once and for all"
            )
        self.starts[regime, node] = start
        self._counts[regime, node] = len(self._all_rows_of(regime, node))

    def rows_of(self, regime: int, node: int) -> IntArray:
        """Numbers of the rows a mechanism learns from, ascending."""
        rows = self._all_rows_of(regime, node)
        if self.cap is not None and len(rows) > self.cap:
            rows = rows[: self.cap] if self.keep == "oldest" else rows[-self.cap :]
        return _read_only(rows)

    def recent_rows_of(self, regime: int, node: int, n: int) -> IntArray:
        """Numbers of the newest `n` rows of a mechanism since its start, whatever the cap."""
        rows = self._all_rows_of(regime, node)
        return _read_only(rows[max(len(rows) - n, 0) :])

    def _all_rows_of(self, regime: int, node: int) -> IntArray:
        """Whatever the cap."""
        start = int(self.starts[regime, node])
        return start + np.flatnonzero(self._regimes[start : self._length, node] == regime)

    def samples(self, regime: int, node: int) -> FloatArray:
        """All nodes' values in the rows a mechanism learns from, (n_m, N)."""
        return self._values[self.rows_of(regime, node)]

    def state(self) -> dict[str, Any]:
        """Rows, regimes and starts, from which all else follows."""
        return {
            "values": self.values.copy(),
            "regimes": self.regimes.copy(),
            "starts": self.starts.copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Become the dataset whose state this is."""
        self.__init__(  # type: ignore[misc]
            self.n_nodes, nodes=self.nodes, cap=self.cap, keep=self.keep, regimes=self.n_regimes
        )
        if len(state["values"]):
            self.append(state["values"], state["regimes"])
        for regime, node in np.argwhere(state["starts"] > 0).tolist():
            self.forget(regime, node, start=int(state["starts"][regime, node]))

    def _grow(self) -> None:
        """Double the room, so that adding rows costs a constant each on average."""
        self._values = np.concatenate([self._values, np.empty_like(self._values)])
        self._regimes = np.concatenate([self._regimes, np.empty_like(self._regimes)])


@kernel
def _count(counts: IntArray, regimes: Intervention) -> None:
    for node in range(len(regimes)):
        counts[regimes[node], node] += 1


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.setflags(write=False)
    return view


# -- the last rounds only --------------------------------------------------------------------------


class RecentRounds:
    """What a mechanism keeps when it forgets all from before its change.

    A ring of `size` rounds of N values, however many were played.
    """

    def __init__(self, n_nodes: int, size: int = 100) -> None:
        self._values = np.zeros((size, n_nodes))
        self._regimes = np.zeros((size, n_nodes), dtype=np.uint8)
        self._rounds = np.zeros(size, dtype=np.int64)  # 0: empty
        self._made = np.zeros(size, dtype=np.int64)

    def add(
        self,
        round_: int,
        regimes: Intervention,
        values: FloatArray,
        made: int | None = None,
    ) -> None:
        """Round numbers count from 1; rounds may be left out, or come late.

        `made` as of `Policy.tell`.
        """
        row = round_ % len(self._rounds)
        # its place holds a round that is newer by at least the size of the ring
        if round_ < self._rounds[row]:
            return  # too late
        self._values[row], self._regimes[row], self._rounds[row] = values, regimes, round_
        self._made[row] = round_ if made is None else made

    def values(self, n: int) -> FloatArray:
        """The last n rounds, (n, N); fewer if fewer were played."""
        return self._values[self._last(n)]

    def regimes(self, n: int) -> Interventions:
        """The interventions of those rounds, (n, N)."""
        return self._regimes[self._last(n)]

    def _last(self, n: int) -> IntArray:
        numbers = np.argsort(self._rounds)[-n:]
        return numbers[self._rounds[numbers] > 0]

    def last_regimes(self) -> Intervention:
        """The last intervention, (N,); all zeros if nothing was played."""
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

    def _played(self, regime: int, node: int, after: int) -> IntArray:
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
