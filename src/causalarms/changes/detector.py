"""What every detector is: it watches round by round and says which mechanisms have changed.

The policy decides what to do about an alarm. A detector is deterministic: the same rounds give the
same alarms. Its state is plain arrays and scalars.

Next to the round itself a detector may look at what its policy knows (`View`). It names the kinds
of knowledge it `needs`, a policy those it `offers`. Policies compute nothing that is not asked for.
Numbers are in the units the policy computes in (`scaled`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray, Intervention
from causalarms.checks import integer
from causalarms.errors import ModelError, SettingError
from causalarms.limits import MAX_REGIMES
from causalarms.models.linear import MechanismWeights
from causalarms.sem.regimes import Counts, existing
from causalarms.state import HasState
from causalarms.statistics.dataset import Dataset
from causalarms.statistics.units import Units

MODEL, PREDICTION = KINDS = ("model", "prediction")


class Model(NamedTuple):
    """A linear system as it is believed now."""

    weights: FloatArray  # (R, N, N) as [regime, parent, child]
    intercept: FloatArray  # (R, N), the means of the noise
    noise_std: FloatArray  # (R, N)

    def played(self, intervention: Intervention) -> FloatArray:
        """Weights of the mechanisms an intervention plays, (N, N) as [parent, child]."""
        nodes = np.arange(len(intervention))
        return np.ascontiguousarray(self.weights[intervention, :, nodes].T)


class Prediction(NamedTuple):
    """How surprising a round is to each of its mechanisms (`predictive.py`)."""

    scores: FloatArray  # (N,), N(0, 1) until it changes; nan if it cannot be tested
    stds: FloatArray  # (N,), with which values were predicted
    predictors: BoolArray  # (N, N) as [node, predictor]


class MechanismRounds(NamedTuple):
    """Rounds a mechanism was played in, the newest last."""

    numbers: IntArray  # (n,), counted from 1
    values: FloatArray  # (n, N), scaled


class View:
    """What a policy knows before it learns from the round that is watched.

    This one offers nothing. Policies override what they offer, and `offers` itself.
    """

    def __init__(self, regimes: Counts) -> None:
        self.regimes = regimes  # (N,), how many each node has

    @property
    def offers(self) -> tuple[str, ...]:
        """Kinds of knowledge there are at the moment."""
        return ()

    def scaled(self, values: FloatArray) -> FloatArray:
        """Values as told, (..., N), in the units of everything else here."""
        return values

    def model(self) -> Model:
        """`MODEL`: the system as it is believed now."""
        raise self._lacks(MODEL)

    def rounds_of(self, regime: int, node: int, most: int) -> MechanismRounds:
        """`MODEL`: the last rounds of a mechanism, as many as the policy still has."""
        raise self._lacks(MODEL)

    def rounds_under(self, intervention: Intervention, most: int) -> FloatArray:
        """`MODEL`: values of the last rounds under this very intervention, (n, N), in any order.

        The round that is watched is one of them.
        """
        raise self._lacks(MODEL)

    def prediction(self, intervention: Intervention, values: FloatArray) -> Prediction:
        """`PREDICTION`: of a round that is not learned from yet, values as told."""
        raise self._lacks(PREDICTION)

    def whitened(self, intervention: Intervention, values: FloatArray) -> FloatArray:
        """`MODEL`: y_i = x_i - w . x_P of every node (eq. whiten_x), (N,), from values as told."""
        scaled = self.scaled(values)
        return scaled - scaled @ self.model().played(intervention)

    def _lacks(self, kind: str) -> ModelError:
        return ModelError(f"a detector that looks at the {kind} must say so in `needs`")


class _ModelView(View):
    """Weights of a graph that was learned; None while there is none."""

    def __init__(self, regimes: Counts, weights: MechanismWeights | None) -> None:
        super().__init__(regimes)
        self._weights = weights

    @property
    def offers(self) -> tuple[str, ...]:
        return () if self._weights is None else (MODEL,)

    def model(self) -> Model:
        weights = self._weights
        if weights is None:
            raise self._lacks(MODEL)
        return Model(weights.weights, weights.intercept, weights.noise_std)


class DatasetView(_ModelView):
    """The view of a policy that keeps all rounds."""

    def __init__(self, weights: MechanismWeights | None, units: Units, data: Dataset) -> None:
        super().__init__(data.n_regimes, weights)
        self._units = units
        self._data = data

    def scaled(self, values: FloatArray) -> FloatArray:
        return self._units.apply(values)

    def rounds_of(self, regime: int, node: int, most: int) -> MechanismRounds:
        rows = self._data.recent_rows_of(regime, node, most)
        return MechanismRounds(rows + 1, self.scaled(self._data.values[rows]))

    def rounds_under(self, intervention: Intervention, most: int) -> FloatArray:
        """Since the last change of any of its mechanisms."""
        nodes = np.arange(len(intervention))
        # Rounds before the last of these changes came from another system.
        start = int(self._data.starts[intervention, nodes].max())
        rows = np.flatnonzero((self._data.regimes[start:] == intervention).all(axis=1))
        return self.scaled(self._data.values[start + rows[max(len(rows) - most, 0) :]])


class CommittedView(_ModelView):
    """The view of a policy that keeps only the last rounds of one intervention."""

    def __init__(
        self,
        regimes: Counts,
        weights: MechanismWeights | None,
        origin: FloatArray,
        committed: Intervention,
        recent: FloatArray,  # (n, N), relative to the origin
    ) -> None:
        super().__init__(regimes, weights)
        self._origin = origin
        self._committed = committed
        self._recent = recent

    def scaled(self, values: FloatArray) -> FloatArray:
        return values - self._origin

    def rounds_of(self, regime: int, node: int, most: int) -> MechanismRounds:
        return MechanismRounds(np.zeros(0, dtype=np.int64), np.zeros((0, len(self.regimes))))

    def rounds_under(self, intervention: Intervention, most: int) -> FloatArray:
        same = np.array_equal(intervention, self._committed)
        return self._recent if same else self._recent[:0]


# -- what a detector reports -----------------------------------------------------------------------

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
    watches: bool = True  # whether it may ever alarm; False: it is never asked

    def __init__(self, n_nodes: int, *, n_regimes: int = 2) -> None:
        self.n_nodes = integer("n_nodes", n_nodes, minimum=1)
        self.n_regimes = integer("n_regimes", n_regimes, minimum=1)

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
        """SettingError if it was made for another system."""
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
    """The alarms, or a ModelError if one of them cannot be."""
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


class NoChange(HasState, Detector):
    """The stationary case: a detector that never alarms, for any number of nodes."""

    watches = False

    def __init__(self, n_nodes: int = 1, *, n_regimes: int = MAX_REGIMES) -> None:
        super().__init__(n_nodes, n_regimes=n_regimes)

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

    def check_fits(self, n_nodes: int, n_regimes: int) -> None:
        pass


# -- a mechanism whose residuals never fit ---------------------------------------------------------
#
# Whitening reveals missing edges as well as changes (Sec. V): if an edge is missing, learning
# the mechanism again does not help, and it alarms again soon. Several alarms in a row, each soon
# after the one before, point to the model rather than to the world.

ALARMS_OF_A_MISFIT = 3
MISFIT_ROUNDS = 200  # between one alarm of a misfit and the next, at most


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
            # A mechanism that changes again after longer may well have changed in the world.
            row = row + 1 if after - before <= MISFIT_ROUNDS else 1
            if row == ALARMS_OF_A_MISFIT:
                found.append(mechanism)
                break
    return found
