"""What every detector is: it watches round by round and says which mechanisms have changed.

The policy decides what to do about an alarm. A detector is deterministic: the same rounds give the
same alarms. Its state is plain arrays and scalars.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.changes.alarm import ANY, Alarm
from causalarms.changes.view import View
from causalarms.checks import whole
from causalarms.errors import ModelError, SettingError
from causalarms.sem.regimes import Counts
from causalarms.state_entries import Entry

FloatArray = npt.NDArray[np.float64]


class Detector(ABC):
    """Base of all detectors, for `n_nodes` nodes of at most `n_regimes` regimes.

    needs    kinds of knowledge of a `View` it looks at; policies that do not have them refuse it
    window   how many past rounds it may ask a view for
    """

    needs: tuple[str, ...] = ()
    window: int = 0

    def __init__(self, n_nodes: int, *, n_regimes: int = 2) -> None:
        self.n_nodes = whole("n_nodes", n_nodes, least=1)
        self.n_regimes = whole("n_regimes", n_regimes, least=1)

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
        """Drop all evidence about a mechanism, which is learned anew after an alarm."""

    def model_changed(self, view: View) -> None:  # noqa: B027 - most do not care
        """The policy believes in another model: judge past rounds by it."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything it remembers, as copies of arrays and scalars."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Continue where `state` was exported, in a detector built with the same arguments."""

    def entries(self, n_told: int) -> dict[str, Entry]:
        """Entries of the state whose lengths or ranges a fresh state does not show."""
        return {}

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
