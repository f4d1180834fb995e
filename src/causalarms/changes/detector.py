"""What every detector is: it watches round by round and says which mechanisms have changed.

The policy decides what to do about an alarm. A detector is deterministic: the same rounds give the
same alarms. Its state is plain arrays and scalars.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray
from causalarms.changes.view import View
from causalarms.checks import integer
from causalarms.errors import ModelError, SettingError
from causalarms.limits import MAX_REGIMES
from causalarms.sem.regimes import Counts, existing

# What a detector reports.

ANY = -1  # in place of regime and node: something changed, nobody knows what


class Alarm(NamedTuple):
    """A mechanism no longer produces what its model says."""

    round: int  # the round told last, counted from 1
    regime: int
    node: int
    change_point: int  # the last round before the change, as estimated
    statistic: float  # nats
    threshold: float

    def mechanisms(self, regimes: Counts) -> list[tuple[int, int]]:
        """Those that may have changed (regime, node), of nodes with so many regimes each.

        >>> Alarm(9, ANY, ANY, 5, 30.0, 20.0).mechanisms(np.array([1, 2]))
        [(0, 0), (0, 1), (1, 1)]
        """
        if (self.regime, self.node) != (ANY, ANY):
            return [(self.regime, self.node)]
        return [(regime, node) for regime, node in np.argwhere(existing(regimes)).tolist()]


def starts_after(alarms: Sequence[Alarm], regimes: Counts) -> npt.NDArray[np.int64]:
    """The round after which each mechanism began again, (R, N); 0: never."""
    starts = np.zeros((int(regimes.max()), len(regimes)), dtype=np.int64)
    for alarm in alarms:
        for mechanism in alarm.mechanisms(regimes):
            starts[mechanism] = alarm.change_point
    return starts


class Detector(ABC):
    """Base of all detectors, for `n_nodes` nodes of at most `n_regimes` regimes.

    needs    kinds of knowledge of a `View` it looks at; policies that do not have them refuse it
    window   how many past rounds it may ask a view for
    """

    needs: tuple[str, ...] = ()
    window: int = 0

    def __init__(self, n_nodes: int, *, n_regimes: int = 2) -> None:
        self.n_nodes = integer("n_nodes", n_nodes, minimum=1)
        self.n_regimes = integer("n_regimes", n_regimes, minimum=1)

    @property
    def watches(self) -> bool:
        """Whether it may ever alarm."""
        return True

    @abstractmethod
    def watch(
        self,
        round_: int,  # counted from 1
        intervention: npt.NDArray[np.uint8],  # (N,)
        values: FloatArray,  # (N,), as told
        view: View,
    ) -> list[Alarm]:
        """Take in a round; alarms of the mechanisms that took part in it, each at most once.

        Called for every round in which the policy has what the detector needs.
        """

    @abstractmethod
    def forget(self, regime: int, node: int) -> None:
        """Drop all evidence about a mechanism, which is learned again after an alarm."""

    def model_changed(self, view: View) -> None:  # noqa: B027 - most do not care
        """The policy believes in another model: judge past rounds by it."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything it remembers, as copies of arrays and scalars."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Continue where `state` was exported, in a detector built with the same arguments."""

    def check_fits(self, n_nodes: int, n_regimes: int) -> None:
        """SettingError where it was made for another system."""
        if self.n_nodes != n_nodes:
            raise SettingError(
                f"detector is for {self.n_nodes} nodes, but there are {n_nodes}: "
                f"make it with n_nodes={n_nodes}"
            )
        if self.n_regimes < n_regimes:
            raise SettingError(
                f"detector is for {self.n_regimes} regimes, but nodes have up to {n_regimes}: "
                f"make it with n_regimes={n_regimes}"
            )


def checked_alarms(
    detector: Detector, alarms: Sequence[Alarm], round_: int, regimes: Counts
) -> list[Alarm]:
    """The alarms, or a ModelError where one of them cannot be."""
    seen: set[tuple[int, int]] = set()
    for alarm in alarms:
        mechanism = alarm.regime, alarm.node
        named = 0 <= alarm.node < len(regimes) and 0 <= alarm.regime < regimes[alarm.node]
        problem = ""
        if not named and mechanism != (ANY, ANY):
            problem = f"regime {alarm.regime} of node {alarm.node}, which does not exist"
        elif mechanism in seen:
            problem = f"regime {alarm.regime} of node {alarm.node} twice"
        elif alarm.round != round_ or not -1 <= alarm.change_point <= round_:
            problem = f"round {alarm.round} and a change after round {alarm.change_point}"
        if problem:
            raise ModelError(
                f"{type(detector).__name__} alarms in round {round_} about {problem}: "
                "`causalarms.testing.check_detector` shows what is wrong with it"
            )
        seen.add(mechanism)
    return list(alarms)


# The stationary case: nothing ever changes.


class NoChange(Detector):
    """A detector that never alarms, for any number of nodes."""

    def __init__(self, n_nodes: int = 1, *, n_regimes: int = MAX_REGIMES) -> None:
        super().__init__(n_nodes, n_regimes=n_regimes)

    @property
    def watches(self) -> bool:
        return False

    def watch(
        self,
        round_: int,
        intervention: npt.NDArray[np.uint8],
        values: npt.NDArray[np.float64],
        view: View,
    ) -> list[Alarm]:
        return []

    def forget(self, regime: int, node: int) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass

    def check_fits(self, n_nodes: int, n_regimes: int) -> None:
        pass


# A mechanism whose residuals never fit.
#
# Whitening reveals missing edges as well as changes (Sec. V): where an edge is missing, learning
# the mechanism again does not help, and it alarms again soon. Several alarms in a row, each soon
# after the one before, point to the model rather than to the world.

IN_A_ROW = 3
SOON = 200  # rounds


def misfits(alarms: Sequence[Alarm]) -> list[tuple[int, int]]:
    """Mechanisms (regime, node) with three alarms, each within 200 rounds of the one before.

    >>> alarms = [Alarm(t, 0, 2, t - 5, 30.0, 20.0) for t in (300, 400, 520)]
    >>> misfits(alarms), misfits(alarms[:2])
    ([(0, 2)], [])
    """
    found = []
    for mechanism in sorted({(alarm.regime, alarm.node) for alarm in alarms}):
        rounds = [a.round for a in alarms if (a.regime, a.node) == mechanism]
        row = 1
        for before, after in pairwise(rounds):
            row = row + 1 if after - before <= SOON else 1
            if row == IN_A_ROW:
                found.append(mechanism)
                break
    return found
