"""Rounds as they come in: append-only rows, and which of them each mechanism may learn from.

A mechanism is (regime, node). Its samples are the rows in which the node was in that regime since
the mechanism's start, which moves forward when a change is detected (Sec. V): forgetting one
mechanism leaves the others untouched. `cap` bounds the samples of a mechanism (the authors' program
uses the first 100), keeping the oldest or the newest of them.

A round is stored once: N values and N regimes, O(N t) in all. Which rows belong to a mechanism is
looked up in the regimes when asked for.

`Moments` are the sums that a regression of a node on any parents needs, and `RecentRounds` the last
rounds as they are: a policy that keeps only these costs the same however many rounds were played.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, IntArray, Intervention, Interventions
from causalarms.checks import choice, integer, optional
from causalarms.errors import DataError
from causalarms.kernels import kernel
from causalarms.sem.regimes import as_interventions, existing, node_names, regime_counts
from causalarms.state import HasState, arrays
from causalarms.statistics.units import Units

KEPT = ("oldest", "newest")
RECENT_ROUNDS = 100  # from which a mechanism that has changed begins again


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


class RecentRounds(HasState):
    """What a mechanism keeps when it forgets all from before its change.

    A ring of the last `RECENT_ROUNDS` rounds of N values, however many were played.
    """

    learned = arrays("_values", "_regimes", "_rounds", "_made")

    def __init__(self, n_nodes: int) -> None:
        self._values = np.zeros((RECENT_ROUNDS, n_nodes))
        self._regimes = np.zeros((RECENT_ROUNDS, n_nodes), dtype=np.uint8)
        self._rounds = np.zeros(RECENT_ROUNDS, dtype=np.int64)  # 0: empty
        self._made = np.zeros(RECENT_ROUNDS, dtype=np.int64)

    def add(
        self, round_: int, regimes: Intervention, values: FloatArray, made: int | None = None
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


# -- sums of products instead of rounds ------------------------------------------------------------


class Moments:
    """Gram moments of every mechanism: `gram` (R, N, N+1, N+1) and `counts` (R, N).

    For mechanism (regime, node) the sum over its samples of z z^T with z = (x_1 .. x_N, 1). The
    constant serves known noise means (the target is x_i - nu_i) and unknown ones (an intercept). A
    told round costs O(N^2) per mechanism it touches. `regimes` says how many each node has (two).
    """

    def __init__(
        self, n_nodes: int, *, cap: int | None = None, regimes: npt.ArrayLike | None = None
    ) -> None:
        self.cap = cap  # only the first so many samples of a mechanism count
        self.n_regimes = regime_counts(regimes, n_nodes)  # (N,)
        shape = int(self.n_regimes.max()), n_nodes
        self.gram: FloatArray = np.zeros((*shape, n_nodes + 1, n_nodes + 1))
        self.counts: IntArray = np.zeros(shape, dtype=np.int64)
        self._nodes, self._z = np.arange(n_nodes), np.ones(n_nodes + 1)  # used by every `add`

    @classmethod
    def of(cls, data: Dataset, change: Callable[[FloatArray], FloatArray] | None = None) -> Moments:
        """The moments of the samples each mechanism of a dataset learns from, in other units."""
        moments = cls(data.n_nodes, regimes=data.n_regimes)
        for regime, node in np.argwhere(existing(data.n_regimes)).tolist():
            moments.recompute(data, regime, node, change)
        return moments

    def add(self, values: FloatArray, interventions: Intervention) -> None:
        """One round: every node's current mechanism learns from it."""
        # Not a kernel: the first, random rounds of a study then need no compiler.
        nodes, regimes = self._nodes, interventions
        if self.cap is not None:
            nodes = nodes[self.counts[regimes, nodes] < self.cap]
            regimes = regimes[nodes]
        z = self._z
        z[:-1] = values
        self.gram[regimes, nodes] += z[:, None] * z
        self.counts[regimes, nodes] += 1

    def recompute(
        self,
        data: Dataset,
        regime: int,
        node: int,
        change: Callable[[FloatArray], FloatArray] | None = None,
    ) -> None:
        """One mechanism from its samples, e.g. after it forgot some."""
        values = data.samples(regime, node)
        samples = np.ascontiguousarray((values if change is None else change(values)).T)
        self.gram[regime, node] = gram_matrix(samples)
        self.counts[regime, node] = samples.shape[1]

    def forget(self, regime: int, node: int) -> None:
        """One mechanism starts from nothing."""
        self.gram[regime, node] = 0.0
        self.counts[regime, node] = 0

    def in_units(self, units: Units) -> Moments:
        """Moments of (x - shift) / scale; the very same object if that changes nothing."""
        if units.trivial:
            return self
        n_nodes = len(units.scale)
        change = np.zeros((n_nodes + 1, n_nodes + 1))
        change[:-1, :-1] = np.diag(1 / units.scale)
        change[:-1, -1] = -units.shift / units.scale
        change[-1, -1] = 1.0
        scaled = Moments(n_nodes, regimes=self.n_regimes)
        with np.errstate(all="ignore"):
            scaled.gram[:] = change @ self.gram @ change.T
        # squares of values near the largest double overflow in small units
        if not np.isfinite(scaled.gram).all():
            raise DataError("the values told are too large to compute with in units of noise_scale")
        scaled.counts[:] = self.counts
        return scaled

    def state(self) -> dict[str, Any]:
        return {"gram": self.gram.copy(), "counts": self.counts.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self.gram[:] = state["gram"]
        self.counts[:] = state["counts"]
        # The last entry of z is 1: a state whose sums do not fit its counts was not written by this
        # program.
        if not (self.gram[:, :, -1, -1] == self.counts).all():
            raise DataError("the moments are not those of as many samples as were counted")


@kernel
def gram_matrix(samples: FloatArray) -> FloatArray:
    """Sum of z z^T with z = (x, 1) over samples given as one contiguous row per node, (N, n).

    A plain loop: for a few dozen nodes, starting the threads of a BLAS takes longer than the sum.
    """
    n_nodes, n_samples = samples.shape
    gram = np.empty((n_nodes + 1, n_nodes + 1))
    for i in range(n_nodes):
        for j in range(i + 1):
            total = 0.0
            for t in range(n_samples):
                total += samples[i, t] * samples[j, t]
            gram[i, j] = gram[j, i] = total
        gram[i, n_nodes] = gram[n_nodes, i] = samples[i].sum()
    gram[n_nodes, n_nodes] = n_samples
    return gram
