"""What every detector and every learner promises."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from causalarms.arrays import FloatArray, IntArray, Intervention
from causalarms.changes.detector import (
    KINDS,
    MODEL,
    PREDICTION,
    Alarm,
    DatasetView,
    Detector,
    MechanismRounds,
    Model,
    Prediction,
    checked_alarms,
)
from causalarms.errors import CausalArmsError, CausalArmsWarning
from causalarms.models.linear import MechanismWeights
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.regimes import existing, topological_order
from causalarms.statistics.dataset import Dataset
from causalarms.statistics.units import Units
from causalarms.testing.promises import (
    Round,
    assert_plain_copy,
    assert_same_state,
    keep,
    stored,
    under_two_random_states,
)

N_ROUNDS = 400  # that a detector watches
CHANGE = 300  # after it every mechanism is another
SHIFT = 50.0  # standard deviations of the noise
SAME = 50  # rounds of one intervention, then another: some detectors compare rounds under one
REFIT = 20  # rounds between two calls of `model_changed`
TRIED_REGIMES = 3
MOMENTS = (CHANGE // 2, CHANGE + 1, CHANGE + 10)  # with little evidence, and with more

LEARNER_NODES, LEARNER_ROUNDS = 4, 160
FITTED = ("adjacency_", "weights_", "intercept_", "noise_std_")


# -- detectors -------------------------------------------------------------------------------------


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
        # Rounds are part of the model: a detector that did not ask for it must not see them.
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
        return Prediction(errors / std, std, predictors)


def known_weights(sem: LinearSEM) -> MechanismWeights:
    """Those of `sem`, without any uncertainty."""
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
        """What the detector is shown, before the first round."""
        return SystemView(self.sem, self.make().needs)


def check_detector(factory: Callable[[], Detector]) -> None:
    """AssertionError if a detector breaks a promise that every detector gives.

    It watches 300 rounds of a random linear system, and 100 after every mechanism has changed.

    factory   makes a fresh detector, always with the same settings
    """
    detector = factory()
    assert isinstance(detector, Detector), f"{detector!r} is not a causalarms.changes.Detector"
    keep(DETECTOR_PROMISES, detector_case(factory), type(detector).__name__)


def detector_case(factory: Callable[[], Detector]) -> DetectorCase:
    """Rounds of a random linear system of the size that detectors of `factory` are for."""
    detector = factory()
    sem = random_sem(detector.n_nodes, seed=3, regimes=min(detector.n_regimes, TRIED_REGIMES))
    return DetectorCase(factory, sem, rounds_of(sem))


def rounds_of(sem: LinearSEM) -> list[Round]:
    """Rounds of `sem`, and after the change of one whose noise has other means."""
    rng = np.random.default_rng(0)
    changed = sem.replace(noise_mean=sem.noise_mean + SHIFT * sem.noise_std)
    rounds = []
    for t in range(N_ROUNDS):
        # Held for some rounds: detectors of one intervention need several results of it.
        if t % SAME == 0:
            a = rng.integers(0, sem.regimes).astype(np.uint8)
        now = sem if t < CHANGE else changed
        rounds.append((a, now.sample(a[None], rng)[0]))
    return rounds


def watch(
    detector: Detector, view: SystemView, rounds: Sequence[Round], *, forget: bool = True
) -> list[Alarm]:
    """As a policy does: mechanisms that alarm are forgotten, the model is fitted now and then."""
    found = []
    for a, x in rounds:
        number = view.add(a, x)
        # Copies, so that a detector that writes into its arguments is caught below.
        given_a, given_x = a.copy(), x.copy()
        alarms = detector.watch(number, given_a, given_x, view)
        assert isinstance(alarms, list), f"watch returns {alarms!r:.60}, not a list"
        assert all(isinstance(alarm, Alarm) for alarm in alarms), f"{alarms!r:.60} are not alarms"
        assert np.array_equal(given_a, a), "the intervention was changed"
        assert np.array_equal(given_x, x), "the values were changed"
        found += alarms
        # As a policy: what alarmed is learned again from the rounds that follow.
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
    # Both ways: one that says it watches nothing must not alarm either.
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
    # Also before the first round: a study may be closed right after it was made.
    for n_rounds in (0, *MOMENTS):
        old, new, view = case.make(), case.make(), case.view()
        # What the new one saw before it was restored must leave no trace
        watch(new, case.view(), case.rounds[: CHANGE // 3])
        watch(old, view, case.rounds[:n_rounds])
        # A view of its own: watching adds rounds to it.
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
        later = case.rounds[n_rounds : n_rounds + 2]
        assert_plain_copy(
            detector.state, [partial(watch, detector, view, [played]) for played in later]
        )


def _forgets(case: DetectorCase) -> None:
    detector, view = case.make(), case.view()
    watch(detector, view, case.rounds[: CHANGE + SAME // 2], forget=False)
    for regime, node in np.argwhere(existing(case.sem.regimes)).tolist():
        detector.forget(regime, node)
    view.forget()
    found = watch(detector, view, case.rounds[:1])
    assert not found, f"{found[:1]} after `forget`, in a round as predicted"


def _draws_nothing(case: DetectorCase) -> None:
    one, other = under_two_random_states(lambda: watch(case.make(), case.view(), case.rounds))
    assert one == other, "alarms depend on the global random state"


DETECTOR_PROMISES: dict[str, Callable[[DetectorCase], None]] = {
    "`needs`, `watches`, `window` and its size say what it is": _says_what_it_is,
    "alarms name this round and a mechanism that exists, each once": _alarms_name_what_exists,
    "a change that nobody can overlook is found, if it watches": _finds_a_large_change,
    "the same rounds give the same alarms": _same_rounds_same_alarms,
    "a restored detector goes on as the old one": _restored_goes_on,
    "a state is plain arrays and scalars and a copy": _states_are_plain_copies,
    "what is forgotten is no longer evidence": _forgets,
    "nothing is drawn at random": _draws_nothing,
}


# -- learners --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnerCase:
    """A learner, and rounds to learn from: half of them with all nodes natural, half with none."""

    make: Callable[[], Any]
    values: FloatArray  # (n, N)
    regimes: IntArray  # (n, N)

    def fit(self, values: Any = None, regimes: Any = None, **known: Any) -> Any:
        """A fresh learner that has learned; what is not given is the case's."""
        return self.again(self.make(), values, regimes, **known)

    def again(self, learner: Any, values: Any = None, regimes: Any = None, **known: Any) -> Any:
        """The learner after another fit; what is not given is the case's."""
        with warnings.catch_warnings():
            # They are about the rounds, which are of our making, and break no promise.
            warnings.simplefilter("ignore", CausalArmsWarning)
            return learner.fit(
                self.values.copy() if values is None else values,
                interventions=self.regimes.copy() if regimes is None else regimes,
                **known,
            )


def check_learner(factory: Callable[[], Any]) -> None:
    """AssertionError if a learner breaks a promise that every learner gives.

    factory   makes a fresh learner, always with the same settings
    """
    keep(LEARNER_PROMISES, learner_case(factory), type(factory()).__name__)


def learner_case(factory: Callable[[], Any]) -> LearnerCase:
    """Rounds of a random linear system, for learners that `factory` makes."""
    sem, rng = random_sem(LEARNER_NODES, seed=2), np.random.default_rng(0)
    regimes = np.repeat(np.arange(LEARNER_ROUNDS) % 2, LEARNER_NODES).reshape(
        LEARNER_ROUNDS, LEARNER_NODES
    )
    return LearnerCase(factory, sem.sample(regimes, rng), regimes)


def same_fit(one: Any, other: Any) -> None:
    """All that was learned is equal; nan is equal to itself."""
    for name in FITTED:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def _fits(case: LearnerCase) -> None:
    learner = case.make()
    assert case.again(learner) is learner, "fit does not return the learner"
    shape = (2, LEARNER_NODES, LEARNER_NODES)
    edges, weights = learner.adjacency_, learner.weights_
    assert edges.shape == shape, f"adjacency_ has shape {edges.shape}, not {shape}"
    assert edges.dtype == bool, f"adjacency_ holds {edges.dtype}, not bool"
    assert not edges.diagonal(axis1=1, axis2=2).any(), "adjacency_ has a node that causes itself"
    assert weights.shape == shape, f"weights_ has shape {weights.shape}, not {shape}"
    assert np.isfinite(weights).all(), "weights_ of mechanisms with samples are not finite"
    assert (weights[~edges] == 0).all(), "weights_ has a weight without an edge in adjacency_"
    for name in ("intercept_", "noise_std_"):
        found = getattr(learner, name)
        assert found.shape == shape[:2], f"{name} has shape {found.shape}, not {shape[:2]}"
        assert np.isfinite(found).all(), f"{name} of mechanisms with samples is not finite"
    assert (learner.noise_std_ >= 0).all(), "noise_std_ is below 0"
    assert learner.n_features_in_ == LEARNER_NODES, f"n_features_in_ is {learner.n_features_in_}"


def _each_regime_is_acyclic(case: LearnerCase) -> None:
    for regime, edges in enumerate(case.fit().adjacency_):
        order = topological_order(np.asarray(edges).astype(bool))
        assert order is not None, f"regime {regime} has a cycle"


def _graph_has_the_edges(case: LearnerCase) -> None:
    from networkx import DiGraph

    learner = case.fit()
    graph = learner.graph_
    assert isinstance(graph, DiGraph), f"graph_ is a {type(graph).__name__}, not a DiGraph"
    names = list(graph)
    found = {(names.index(a), names.index(b)) for a, b in graph.edges()}
    wanted = {(int(a), int(b)) for a, b in np.argwhere(learner.adjacency_.any(axis=0))}
    assert found == wanted, f"graph_ has {sorted(found)}, adjacency_ {sorted(wanted)}"


def _deterministic(case: LearnerCase) -> None:
    same_fit(*under_two_random_states(case.fit))


def _second_fit_forgets_the_first(case: LearnerCase) -> None:
    learner = case.fit()
    half = case.values[: LEARNER_ROUNDS // 2] * 2.0, case.regimes[: LEARNER_ROUNDS // 2]
    case.again(learner, *half)
    same_fit(learner, case.fit(*half))


def _input_is_not_changed(case: LearnerCase) -> None:
    values, regimes = case.values.copy(), case.regimes.copy()
    case.fit(values, regimes)
    np.testing.assert_array_equal(values, case.values, err_msg="fit changed the samples")
    np.testing.assert_array_equal(regimes, case.regimes, err_msg="fit changed the interventions")


def _noise_mean_is_kept(case: LearnerCase) -> None:
    known = np.linspace(0.5, 1.5, LEARNER_NODES)
    intercept = case.fit(noise_mean=known).intercept_
    np.testing.assert_allclose(
        intercept, np.stack([known, known]), err_msg="intercept_ is not the noise_mean given"
    )


def _settings_are_kept_and_cloned(case: LearnerCase) -> None:
    learner = case.make()
    before = dict(learner.get_params())
    case.again(learner)
    assert _same(learner.get_params(), before), "fit changed the settings"
    copy = clone(learner)
    assert _same(copy.get_params(), before), "a clone has other settings"
    assert not hasattr(copy, "weights_"), "a clone carries results"
    same_fit(case.again(copy), learner)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(np.asarray(one[name], dtype=object), np.asarray(other[name], dtype=object))
        for name in one
    )


def bad_samples(values: FloatArray, regimes: IntArray) -> dict[str, tuple[Any, Any]]:
    """What nobody can learn from, by the words for it."""

    def put(array: npt.NDArray[Any], value: object) -> npt.NDArray[Any]:
        changed = array.astype(object if isinstance(value, str) else float)
        changed[7, 1] = value
        return changed

    constant = values.copy()
    constant[:, 1] = 2.5
    return {
        "NaN": (put(values, np.nan), regimes),
        "an infinite value": (put(values, np.inf), regimes),
        "text": (put(values, "high"), regimes),
        "a constant node": (constant, regimes),
        "one column": (values[:, :1], regimes[:, :1]),
        "one dimension": (values[:, 0], regimes),
        "no rows": (values[:0], regimes[:0]),
        "fewer interventions than samples": (values, regimes[:-1]),
        "interventions of fewer nodes": (values, regimes[:, :-1]),
        "a regime below 0": (values, put(regimes, -1)),
        "half a regime": (values, put(regimes, 0.5)),
        "no regime": (values, put(regimes, np.nan)),
    }


def _bad_input_is_refused(case: LearnerCase) -> None:
    for what, (values, regimes) in bad_samples(case.values, case.regimes).items():
        learner = case.make()
        try:
            case.again(learner, values, regimes)
        except CausalArmsError:
            assert not hasattr(learner, "weights_"), f"{what} is refused, but leaves weights_"
        except Exception as error:
            raise AssertionError(
                f"{what} is refused by {type(error).__name__}, not by a CausalArmsError"
            ) from error
        else:
            raise AssertionError(f"{what} is not refused")


LEARNER_PROMISES: dict[str, Callable[[LearnerCase], None]] = {
    "fit gives adjacency_, weights_, intercept_ and noise_std_ per regime": _fits,
    "the graph of every regime is acyclic": _each_regime_is_acyclic,
    "graph_ is a networkx graph of the same edges": _graph_has_the_edges,
    "the same rounds give the same graph, whatever the global random state": _deterministic,
    "samples and interventions stay what they are": _input_is_not_changed,
    "a second fit forgets the first": _second_fit_forgets_the_first,
    "a known noise mean is kept": _noise_mean_is_kept,
    "settings are stored as given, and cloned": _settings_are_kept_and_cloned,
    "what cannot be learned from is refused and leaves no result": _bad_input_is_refused,
}
