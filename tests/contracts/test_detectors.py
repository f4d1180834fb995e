"""What holds for every detector that has a name, and what policies make of any detector."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from causalarms.changes import Alarm, Detector, MechanismGLR, View, detector_names, make_detector
from causalarms.changes.detector import ANY, CommittedView, DatasetView
from causalarms.errors import ModelError, SettingError
from causalarms.graphs.registry import make_learner
from causalarms.policies.base import Policy
from causalarms.policies.explore_then_commit import ExploreThenCommit
from causalarms.policies.registry import make_policy
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.statistics.dataset import Dataset
from causalarms.statistics.units import Units
from causalarms.testing.parts import (
    DETECTOR_PROMISES,
    DetectorCase,
    detector_case,
    known_weights,
)
from causalarms.testing.policies import check_policy

CASES: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in detector_names()} | {
    "paper, narrow": ("paper", {"max_window": 12, "start_after": 0, "zeta": 1e-6}),
}


@cache
def case(label: str, n_regimes: int) -> DetectorCase:
    name, settings = CASES[label]
    return detector_case(partial(make_detector, name, n_nodes=3, n_regimes=n_regimes, **settings))


@pytest.mark.parametrize("promise", DETECTOR_PROMISES)
@pytest.mark.parametrize("n_regimes", [1, 2, 3])
@pytest.mark.parametrize("label", CASES)
def test_every_promise_is_kept(label: str, n_regimes: int, promise: str) -> None:
    DETECTOR_PROMISES[promise](case(label, n_regimes))


class Timetable(Detector):
    """Alarms at given rounds about given mechanisms, whatever it sees; needs no policy's help."""

    def __init__(
        self, n_nodes: int, alarms: dict[int, list[tuple[int, int]]], *, n_regimes: int = 2
    ) -> None:
        super().__init__(n_nodes, n_regimes=n_regimes)
        self.alarms = alarms
        self.seen: list[int] = []
        self.forgotten: list[tuple[int, int]] = []

    def watch(
        self, round_: int, intervention: np.ndarray, values: np.ndarray, view: View
    ) -> list[Alarm]:
        self.seen.append(round_)
        named = self.alarms.get(round_, [])
        return [Alarm(round_, regime, node, round_ - 3, 9.0, 4.0) for regime, node in named]

    def forget(self, regime: int, node: int) -> None:
        self.forgotten.append((regime, node))

    def state(self) -> dict[str, Any]:
        return {"seen": np.array(self.seen, dtype=np.int64)}

    def restore(self, state: dict[str, Any]) -> None:
        self.seen = np.asarray(state["seen"]).tolist()


EVERY = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
POLICIES: dict[str, dict[str, Any]] = {
    "csl-ucb": {"horizon": 400},
    "csl-ucb-cd": {"horizon": 400},
    "posterior": {"noise_mean": 1.0, "noise_scale": 1.0},
}


def policy_with(name: str, detector: Any, **settings: Any) -> Policy:
    return make_policy(name, n_nodes=3, detector=detector, **(POLICIES[name] | settings))


def played(policy: Policy, n_rounds: int) -> Policy:
    sem, rng = random_sem(3, seed=1), np.random.default_rng(0)
    for _ in range(n_rounds):
        a = policy.ask(rng)
        policy.tell(a, sem.sample(a[None], rng)[0])
    return policy


@pytest.mark.parametrize("name", POLICIES)
def test_a_detector_of_somebody_else_is_asked_every_round_and_heeded(name: str) -> None:
    detector = Timetable(3, {30: [(1, 2)], 90: [(ANY, ANY)]})
    policy = played(policy_with(name, detector), 100)
    assert detector.seen == list(range(1, 101))
    assert [(alarm.round, alarm.regime, alarm.node) for alarm in policy.alarms] == [
        (30, 1, 2),
        (90, ANY, ANY),
    ]
    assert detector.forgotten == [(1, 2), *EVERY]
    assert policy.watches


@pytest.mark.parametrize("name", POLICIES)
def test_policies_keep_their_promises_with_it(name: str) -> None:
    alarms = {30: [(1, 2)], 61: [(0, 0), (1, 1)], 90: [(ANY, ANY)]}
    check_policy(lambda: policy_with(name, Timetable(3, alarms)), n_rounds=120)


@pytest.mark.parametrize(
    ("name", "detector"), [("csl-ucb", "whole-graph"), ("csl-ucb", "none"), ("posterior", "none")]
)
def test_policies_keep_their_promises_with_detectors_by_name(name: str, detector: str) -> None:
    check_policy(lambda: policy_with(name, detector), n_rounds=90)


def test_the_whole_graph_is_forgotten_by_csl_ucb() -> None:
    policy = played(policy_with("csl-ucb", Timetable(3, {90: [(ANY, ANY)]})), 90)
    assert (policy.state()["moments.counts"] == 0).all()
    assert (policy.state()["data.starts"] == 90).all()


def test_an_alarm_about_all_is_heeded_though_one_mechanism_is_not_fitted_yet() -> None:
    policy = played(policy_with("csl-ucb", Timetable(3, {90: [(1, 2)], 93: [(ANY, ANY)]})), 95)
    assert [alarm.round for alarm in policy.alarms] == [90, 93]
    assert (policy.state()["data.starts"] == 93).all()


def commits(detector: Any) -> ExploreThenCommit:
    return ExploreThenCommit(
        3, horizon=400, n_explore=20, learner=make_learner("csl"), noise_mean=1.0, detector=detector
    )


def test_whoever_learns_all_at_once_starts_over_after_any_alarm() -> None:
    detector = Timetable(3, {60: [(1, 2), (0, 0)]})
    policy = played(commits(detector), 110)
    assert detector.seen == list(range(1, 111))
    assert [(alarm.regime, alarm.node) for alarm in policy.alarms] == [(1, 2), (0, 0)]
    assert detector.forgotten == EVERY
    assert policy.state()["fitted_round"] == 100  # 40 rounds of exploration after the alarm


@pytest.mark.parametrize("kind", ["timetable", "per mechanism", "whole-graph"])
def test_it_keeps_its_promises_with_every_detector_of_a_model(kind: str) -> None:
    def make() -> Policy:
        if kind == "timetable":
            return commits(Timetable(3, {60: [(1, 2)]}))
        return commits(MechanismGLR(3, threshold=30.0) if kind == "per mechanism" else kind)

    check_policy(make, n_rounds=120)


def test_it_finds_a_changed_mechanism_by_name() -> None:
    before, rng = random_sem(3, seed=1), np.random.default_rng(0)
    after = LinearSEM(weights=before.weights, noise_mean=[1.0, 9.0, 1.0])
    policy = commits(MechanismGLR(3, threshold=30.0))
    while not policy.alarms and policy.n_told < 100:
        a = policy.ask(rng)
        policy.tell(a, (before if policy.n_told < 70 else after).sample(a[None], rng)[0])
    assert [alarm.node for alarm in policy.alarms] == [1]
    assert policy.n_told > 70


def test_a_view_of_all_rounds() -> None:
    sem = random_sem(2, seed=1)
    data = Dataset(2)
    data.append([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], [[0, 1], [0, 1], [0, 0], [0, 1]])
    units = Units(np.array([1.0, 0.0]), np.array([2.0, 1.0]))
    view = DatasetView(known_weights(sem), units, data)
    one = np.array([0, 1], dtype=np.uint8)
    assert view.rounds_under(one, 9).tolist() == [[0.0, 2.0], [1.0, 4.0], [3.0, 8.0]]
    assert view.rounds_under(one, 2).tolist() == [[1.0, 4.0], [3.0, 8.0]]
    numbers, values = view.rounds_of(0, 0, 2)
    assert (numbers.tolist(), values.tolist()) == ([3, 4], [[2.0, 6.0], [3.0, 8.0]])
    data.forget(1, 1, start=1)
    assert view.rounds_under(one, 9).tolist() == [[1.0, 4.0], [3.0, 8.0]]
    assert DatasetView(None, units, data).offers == ()
    with pytest.raises(ModelError, match="must say so in `needs`"):
        DatasetView(None, units, data).model()


def test_a_view_of_one_intervention() -> None:
    sem, recent = random_sem(2, seed=1), np.ones((3, 2))
    committed, other = np.array([0, 1], dtype=np.uint8), np.array([1, 1], dtype=np.uint8)
    view = CommittedView(sem.regimes, known_weights(sem), np.ones(2), committed, recent)
    assert view.rounds_under(committed, 3).shape == (3, 2)
    assert view.rounds_under(other, 3).shape == (0, 2)
    assert view.scaled(np.array([1.0, 3.0])).tolist() == [0.0, 2.0]


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(SettingError, match="window must be an integer"):
        make_detector("whole-graph", n_nodes=3, window=0)
    assert make_detector("whole-graph", n_nodes=15).window == 30


def test_the_posterior_keeps_rounds_after_the_change_only() -> None:
    policy = played(policy_with("posterior", Timetable(3, {90: [(ANY, ANY)]})), 90)
    assert (
        policy.state()["system.rounds.moments.counts"].sum() == 3 * 3
    )  # three rounds of three nodes
    belief = policy.belief()
    assert belief is not None
    assert (belief.starts == 87).all()


@pytest.mark.parametrize("name", POLICIES)
def test_none_is_no_change(name: str) -> None:
    if name != "csl-ucb-cd":
        assert type(policy_with(name, None).detector).__name__ == "NoChange"
        assert not policy_with(name, None).watches


@pytest.mark.parametrize(
    ("name", "detector", "message"),
    [
        ("posterior", "authors", "MechanismGLR looks at the model; this policy offers prediction"),
        ("csl-ucb", "evidence", "ChangeEvidence looks at the prediction; this policy offers model"),
        ("csl-ucb", "zzz", "unknown detector 'zzz'; there are none, authors, paper"),
        ("csl-ucb-cd", "autors", "unknown detector 'autors'; did you mean 'authors'"),
        (
            "csl-ucb",
            MechanismGLR.authors(4),
            "for 4 nodes, but there are 3: make it",
        ),
        ("csl-ucb", MechanismGLR.authors(2), "for 2 nodes, but there are 3"),
        ("posterior", MechanismGLR, "detector must be a Detector or the name of one"),
        ("posterior", 3, "detector must be a Detector or the name of one, not 3"),
    ],
)
def test_what_does_not_fit_is_refused_when_the_policy_is_made(
    name: str, detector: Any, message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        policy_with(name, detector)


def test_too_few_regimes_are_refused_and_as_many_are_fine() -> None:
    with pytest.raises(SettingError, match="up to 3: make it with n_regimes=3"):
        policy_with("csl-ucb", MechanismGLR.authors(3), regimes=3)
    assert policy_with("csl-ucb", "authors", regimes=3).detector.n_regimes == 3
    assert policy_with("csl-ucb", MechanismGLR.authors(3, n_regimes=4), regimes=3).watches


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ([(2, 0)], "Timetable alarms in round 5 about regime 2 of node 0, which does not exist"),
        ([(0, 3)], "regime 0 of node 3, which does not exist"),
        ([(-1, 0)], "regime -1 of node 0, which does not exist"),
        ([(0, 1), (0, 1)], "regime 0 of node 1 twice"),
    ],
)
def test_alarms_that_cannot_be_are_refused(named: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        played(policy_with("csl-ucb", Timetable(3, {5: named})), 5)
