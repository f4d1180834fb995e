"""What is asked, how much is computed for it, and what is answered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.search.constraints import Constraints

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Rows = npt.NDArray[np.uint8]


class Lookahead(NamedTuple):
    """How much is computed, and how much what is learned counts."""

    early: int = 60  # rounds in which every round is judged as a test
    orders: int = 6
    points: int = 6  # parent sets per mechanism and order
    truths: int = 48  # early
    first_truths: int = 16  # judge all candidates; the others only the most promising of them
    finalists: int = 6
    candidates: int = 18
    decisions: int = 40
    horizon: float = 1.0  # rounds to come that profit, early, as a multiple of those played
    draws: int = 300  # later
    dissenters: int = 20  # of them that are looked at, at most
    tests: int = 10  # candidates later
    late_horizon: float = 5.0  # later, as a multiple of the square root of those played
    repeats: tuple[int, ...] = (1, 6)
    steady_orders: int = 8  # for the average of a round that is not judged
    slight: float = 1e-3  # of the spread of rewards: less is no reason to disagree or to move
    spacing: int = 15  # a judged round every age / spacing rounds
    most_held: int = 30
    searched: int = 32  # draws whose best is searched for, where there are too many to compare all


class Situation(NamedTuple):
    """What is asked: which interventions may be played, and what is being played."""

    reward: int
    regimes: IntArray  # (N,)
    arms: IntArray | None  # (A,) allowed ones by their index; None: all
    cost: FloatArray | None  # (A,), in units of the posterior's reward
    pending: Rows  # (n, N)
    recent: Rows  # (m, N), the last rounds told, the last one last
    age: int  # rounds played or being played since the last change
    among: Constraints | None = None  # where there are too many: what may be played, and its cost
    rows: Rows | None = None  # (A, N) then: those that are compared


class Chosen(NamedTuple):
    """In the units of the posterior."""

    intervention: npt.NDArray[np.uint8]
    mean: float
    width: float  # of the draws above the mean; nan where there are none
    saved: float = 0.0  # by what is learned, over `rounds` rounds
    rounds: int = 0
    paid: float = 0.0  # by not playing the best on average
    instead_of: npt.NDArray[np.uint8] | None = None  # that one, where it is not played
