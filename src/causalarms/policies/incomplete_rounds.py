"""Rounds in which values are missing, held so that they can be filled anew by what is known later.

The last ones are held; older ones keep what they said when they were last filled. Filling all that
are held costs the same however many rounds were played, and is due whenever a tenth more rounds are
known than at the last time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError
from causalarms.policies.state_check import FLOATS, Entry
from causalarms.posterior.exact import Draws
from causalarms.posterior.gaps import add_rounds

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Intervention = npt.NDArray[np.uint8]

LEARN, DROP = GAPS = ("learn", "drop")
HELD = 200  # rounds at most that are filled anew; at as many, the older half is filled for good
GROWN = 1.1  # times as many rounds as when the held ones were filled
DRAWS_TO_FILL = 16  # of the system, from which values are expected
LARGEST = 1e150


class IncompleteRounds:
    """`gram` (R, N, N+1, N+1) is what they say, in weighted rows; `counts` (R, N) from how many."""

    def __init__(self, n_regimes: int, n_nodes: int) -> None:
        self.gram = np.zeros((n_regimes, n_nodes, n_nodes + 1, n_nodes + 1))
        self.counts = np.zeros((n_regimes, n_nodes), dtype=np.int64)
        self._for_good = np.zeros_like(self.gram)  # part of `gram` of rounds no longer held
        self._values = np.zeros((0, n_nodes))  # as told
        self._regimes = np.zeros((0, n_nodes), dtype=np.uint8)
        self._rounds = np.zeros(0, dtype=np.int64)
        self._filled_at = 0  # the round

    def __len__(self) -> int:
        return len(self._rounds)

    def add(self, round_: int, regimes: Intervention, values: FloatArray) -> None:
        """One round more, which says nothing before it is filled."""
        self._values = np.concatenate([self._values, values[None]])
        self._regimes = np.concatenate([self._regimes, regimes[None]])
        self._rounds = np.append(self._rounds, round_)
        measured = np.flatnonzero(~np.isnan(values))
        self.counts[regimes[measured], measured] += 1

    def due(self, round_: int) -> bool:
        """Whether all are to be filled anew, and not only the last."""
        return len(self) > 0 and (len(self) >= HELD or round_ >= GROWN * self._filled_at)

    def fill_last(self, draws: Draws, starts: IntArray, origin: FloatArray) -> None:
        """The round that was added last, by draws relative to the origin, as `gram` is."""
        self._add(self.gram, slice(len(self) - 1, None), draws, starts, origin, origin)

    def fill(
        self,
        round_: int,
        draws: Draws,
        starts: IntArray,  # (R, N), the round after which each mechanism began anew
        zero: FloatArray,  # (N,), which the draws are relative to
        origin: FloatArray,  # (N,), which `gram` is to be relative to
    ) -> None:
        """All that are held, anew."""
        self._filled_at = round_
        if len(self) >= HELD:
            old = slice(None, HELD // 2)
            self._add(self._for_good, old, draws, starts, zero, origin)
            self._values, self._regimes = self._values[HELD // 2 :], self._regimes[HELD // 2 :]
            self._rounds = self._rounds[HELD // 2 :]
        self.gram = self._for_good.copy()
        self._add(self.gram, slice(None), draws, starts, zero, origin)

    def _add(
        self,
        gram: FloatArray,
        which: slice,
        draws: Draws,
        starts: IntArray,
        zero: FloatArray,
        origin: FloatArray,
    ) -> None:
        regimes = self._regimes[which]
        taught = self._rounds[which, None] > starts[regimes, np.arange(regimes.shape[1])]
        add_rounds(
            gram, self._values[which] - zero, zero - origin, regimes, taught,
            draws.order, draws.weights, draws.intercept, draws.noise_std,
        )  # fmt: skip

    def forget(self, regime: int, node: int, start: int) -> None:
        """Only rounds after `start` count for a mechanism; they do once they are filled anew."""
        self.gram[regime, node] = 0.0
        self._for_good[regime, node] = 0.0
        later = (self._rounds > start) & (self._regimes[:, node] == regime)
        self.counts[regime, node] = int((later & ~np.isnan(self._values[:, node])).sum())
        self._filled_at = 0

    def state(self) -> dict[str, Any]:
        return {
            "gram": self.gram.copy(),
            "for_good": self._for_good.copy(),
            "counts": self.counts.copy(),
            "values": self._values.copy(),
            "regimes": self._regimes.copy(),
            "rounds": self._rounds.copy(),
            "filled_at": self._filled_at,
        }

    def entries(self) -> dict[str, Entry]:
        """Values may be missing."""
        return {"values": with_gaps((None, self._values.shape[1]))}

    def restore(self, state: dict[str, Any]) -> None:
        lengths = {len(state[name]) for name in ("values", "regimes", "rounds")}
        rounds = np.array(state["rounds"])
        if len(lengths) > 1 or len(rounds) > HELD or (np.diff(rounds) <= 0).any():
            raise DataError("the incomplete rounds are not as many as they say")
        if not np.isnan(state["values"]).any(axis=1).all():
            raise DataError("a round is held as incomplete that is complete")
        self.gram, self._for_good = np.array(state["gram"]), np.array(state["for_good"])
        self.counts = np.array(state["counts"])
        self._values, self._regimes = np.array(state["values"]), np.array(state["regimes"])
        self._rounds, self._filled_at = rounds, int(state["filled_at"])

    def check_recent(self, rounds: IntArray, values: FloatArray) -> None:
        """DataError where the last rounds, (n,) and (n, N), lack other values than the held ones.

        More rounds are held than are recent, wherever more are incomplete.
        """
        incomplete = np.flatnonzero(np.isnan(values).any(axis=1))
        incomplete = incomplete[np.argsort(rounds[incomplete])]
        held = np.isin(self._rounds, rounds)
        same = np.array_equal(rounds[incomplete], self._rounds[held])
        if not same or not np.array_equal(values[incomplete], self._values[held], equal_nan=True):
            raise DataError("the recent rounds lack other values than those held as incomplete")


def with_gaps(shape: tuple[int | None, ...]) -> Entry:
    """Values of rounds, of which some may be missing."""
    return Entry(FLOATS, shape, -LARGEST, LARGEST, finite=False, nan=True)
