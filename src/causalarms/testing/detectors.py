"""What every detector promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from causalarms.changes.detector import Alarm, Detector, checked_alarms
from causalarms.changes.view import (
    KINDS,
    MODEL,
    PREDICTION,
    DatasetView,
    MechanismRounds,
    Model,
    Prediction,
)
from causalarms.models.linear import MechanismWeights
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.regimes import existing
from causalarms.statistics.dataset import Dataset
from causalarms.statistics.units import Units
from causalarms.testing.promises import (
    assert_kept,
    assert_plain,
    assert_same_state,
    copied,
    global_random_state,
    keep,
    stored,
)

FloatArray = npt.NDArray[np.float64]
Intervention = npt.NDArray[np.uint8]
Round = tuple[Intervention, FloatArray]

N_ROUNDS = 400
CHANGE = 300  # after it every mechanism is another
SHIFT = 50.0  # standard deviations of the noise
SAME = 50  # rounds of one intervention, then another: for those who compare rounds under one
REFIT = 20  # rounds between two calls of `model_changed`
TRIED_REGIMES = 3
MOMENTS = (CHANGE // 2, CHANGE + 1, CHANGE + 10)  # with little evidence, and with more


class SystemView(DatasetView):
    """Of somebody who knows the system as it was before the change, and shows what is needed."""

    def __init__(self, sem: LinearSEM, needs: Sequence[str]) -> None:
        self._needs = tuple(needs)
        self._rounds = Dataset(sem.n_nodes, regimes=sem.regimes)
        units = Units(np.zeros(sem.n_nodes), np.ones(sem.n_nodes))
        super().__init__(known_weights(sem), units, self._rounds)

    @property
    def offers(self) -> tuple[str, ...]:
        return self._needs

    def add(self, intervention: Intervention, values: FloatArray) -> int:
        """Number of the round."""
        self._rounds.add(values, intervention)
        return len(self._rounds)

    def forget(self) -> None:
        """Rounds so far are from before a change."""
        for regime, node in np.argwhere(existing(self.regimes)).tolist():
            self._rounds.forget(regime, node)

    def model(self) -> Model:
        if MODEL not in self._needs:
            raise self._lacks(MODEL)
        return super().model()

    def rounds_of(self, regime: int, node: int, most: int) -> MechanismRounds:
        self.model()
        return super().rounds_of(regime, node, most)

    def rounds_under(self, intervention: Intervention, most: int) -> FloatArray:
        self.model()
        return super().rounds_under(intervention, most)

    def prediction(self, intervention: Intervention, values: FloatArray) -> Prediction:
        if PREDICTION not in self._needs:
            raise self._lacks(PREDICTION)
        model, nodes = super().model(), np.arange(len(intervention))
        std = model.noise_std[intervention, nodes]
        weights = model.played(intervention)
        errors = values - values @ weights - model.intercept[intervention, nodes]
        predictors = np.ascontiguousarray((weights != 0).T)
        return Prediction.by_known_weights(errors / std, std, predictors)


def known_weights(sem: LinearSEM) -> MechanismWeights:
    """Of a system that is known, without any uncertainty."""
    shape = sem.weights.shape[:2]
    mean, std = (np.array(np.broadcast_to(x, shape)) for x in (sem.noise_mean, sem.noise_std))
    nothing = np.zeros(shape)
    return MechanismWeights(
        sem.weights, mean, std, nothing, nothing.astype(np.int64), None, sem.regimes
    )


@dataclass(frozen=True)
class DetectorCase:
    """A detector, the system it is told about, and rounds of it."""

    make: Callable[[], Detector]
    sem: LinearSEM
    rounds: Sequence[Round]

    def view(self) -> SystemView:
        return SystemView(self.sem, self.make().needs)


def check_detector(factory: Callable[[], Detector]) -> None:
    """AssertionError where a detector breaks a promise that every detector gives.

    factory   makes a fresh detector, always with the same settings

    It watches 300 rounds of a random linear system, and 100 after every mechanism has changed.
    """
    detector = factory()
    assert isinstance(detector, Detector), f"{detector!r} is no causalarms.changes.Detector"
    keep(DETECTOR_PROMISES, detector_case(factory), type(detector).__name__)


def detector_case(factory: Callable[[], Detector]) -> DetectorCase:
    """Rounds of a random linear system of the size the detector is for."""
    detector = factory()
    sem = random_sem(detector.n_nodes, seed=3, regimes=min(detector.n_regimes, TRIED_REGIMES))
    return DetectorCase(factory, sem, rounds_of(sem))


def rounds_of(sem: LinearSEM) -> list[Round]:
    """Of the system, and after the change of one whose noise has other means."""
    rng = np.random.default_rng(0)
    changed = replace_means(sem, sem.noise_mean + SHIFT * sem.noise_std)
    rounds = []
    for t in range(N_ROUNDS):
        if t % SAME == 0:
            a = rng.integers(0, sem.regimes).astype(np.uint8)
        now = sem if t < CHANGE else changed
        rounds.append((a, now.sample(a[None], rng)[0]))
    return rounds


def replace_means(sem: LinearSEM, noise_mean: FloatArray) -> LinearSEM:
    return LinearSEM(
        weights=sem.weights, noise_mean=noise_mean, noise_std=sem.noise_std, regimes=sem.regimes
    )


def watch(
    detector: Detector, view: SystemView, rounds: Sequence[Round], *, forget: bool = True
) -> list[Alarm]:
    """As a policy does: mechanisms that alarm are forgotten, the model is fitted now and then."""
    found = []
    for a, x in rounds:
        number = view.add(a, x)
        given_a, given_x = a.copy(), x.copy()
        alarms = detector.watch(number, given_a, given_x, view)
        assert isinstance(alarms, list), f"watch returns {alarms!r:.60}, not a list"
        assert all(isinstance(alarm, Alarm) for alarm in alarms), f"{alarms!r:.60} are no alarms"
        assert np.array_equal(given_a, a), "the intervention was changed"
        assert np.array_equal(given_x, x), "the values were changed"
        found += alarms
        for alarm in alarms if forget else ():
            for mechanism in alarm.mechanisms(view.regimes):
                detector.forget(*mechanism)
            view.forget()
        if number % REFIT == 0:
            detector.model_changed(view)
    return found


def _says_what_it_is(case: DetectorCase) -> None:
    detector = case.make()
    unknown = set(detector.needs) - set(KINDS)
    assert not unknown, f"needs {sorted(unknown)}; a view has {', '.join(KINDS)}"
    assert isinstance(detector.watches, bool), "`watches` is neither True nor False"
    assert detector.window >= 0, f"the window is {detector.window}"
    detector.check_fits(case.sem.n_nodes, int(case.sem.regimes.max()))


def _alarms_name_what_exists(case: DetectorCase) -> None:
    detector, view = case.make(), case.view()
    for number, played in enumerate(case.rounds, start=1):
        checked_alarms(detector, watch(detector, view, [played]), number, case.sem.regimes)


def _finds_a_large_change(case: DetectorCase) -> None:
    detector, view = case.make(), case.view()
    watch(detector, view, case.rounds[:CHANGE])
    found = watch(detector, view, case.rounds[CHANGE:])
    assert bool(found) == detector.watches, (
        f"{len(found)} alarms in the {N_ROUNDS - CHANGE} rounds after every mechanism moved by "
        f"{SHIFT:g} standard deviations, and `watches` is {detector.watches}"
    )


def _same_rounds_same_alarms(case: DetectorCase) -> None:
    one, other = case.make(), case.make()
    same = watch(one, case.view(), case.rounds) == watch(other, case.view(), case.rounds)
    assert same, "two detectors with the same settings alarm differently"
    assert_same_state(one.state(), other.state())


def _restored_goes_on(case: DetectorCase) -> None:
    for n_rounds in (0, *MOMENTS):
        old, new, view = case.make(), case.make(), case.view()
        watch(new, case.view(), case.rounds[: CHANGE // 3])  # must leave no trace
        watch(old, view, case.rounds[:n_rounds])
        other_view = case.view()
        watch(case.make(), other_view, case.rounds[:n_rounds])
        new.restore(stored(old.state()))
        assert_same_state(new.state(), old.state())
        rest = case.rounds[n_rounds:]
        assert watch(new, other_view, rest) == watch(old, view, rest), (
            f"restored after {n_rounds} rounds it alarms otherwise than the old one"
        )
        assert_same_state(new.state(), old.state())


def _states_are_plain_copies(case: DetectorCase) -> None:
    for n_rounds in MOMENTS:
        detector, view = case.make(), case.view()
        watch(detector, view, case.rounds[:n_rounds])
        state = detector.state()
        assert_plain(state)
        kept = copied(state)
        for played in case.rounds[n_rounds : n_rounds + 2]:
            watch(detector, view, [played])
            assert_kept(state, kept)


def _forgets(case: DetectorCase) -> None:
    detector, view = case.make(), case.view()
    watch(detector, view, case.rounds[: CHANGE + SAME // 2], forget=False)
    for regime, node in np.argwhere(existing(case.sem.regimes)).tolist():
        detector.forget(regime, node)
    view.forget()
    found = watch(detector, view, case.rounds[:1])
    assert not found, f"{found[:1]} after `forget`, in a round as predicted"


def _draws_nothing(case: DetectorCase) -> None:
    found = []
    for seed in (1, 2):
        with global_random_state(seed):
            found.append(watch(case.make(), case.view(), case.rounds))
    assert found[0] == found[1], "alarms depend on the global random state"


DETECTOR_PROMISES: dict[str, Callable[[DetectorCase], None]] = {
    "`needs`, `watches`, `window` and its size say what it is": _says_what_it_is,
    "alarms name this round and a mechanism that exists, each once": _alarms_name_what_exists,
    "a change that nobody can overlook is found, if it watches": _finds_a_large_change,
    "the same rounds give the same alarms": _same_rounds_same_alarms,
    "a restored detector goes on as the old one": _restored_goes_on,
    "a state is plain arrays and scalars and a copy": _states_are_plain_copies,
    "what is forgotten is no evidence any more": _forgets,
    "nothing is drawn at random": _draws_nothing,
}
