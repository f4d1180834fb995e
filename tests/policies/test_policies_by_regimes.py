"""Policies for nodes with one, two or several regimes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms import LinearSEM, make_policy, random_sem
from causalarms.changes import MechanismGLR
from causalarms.changes.evidence import ChangeEvidence
from causalarms.errors import DataError, ModelError, SettingError
from causalarms.policies.base import Policy
from causalarms.policies.registry import accepted_settings, policy_factory
from causalarms.policies.simple import random_intervention
from causalarms.sem.regimes import existing
from causalarms.sem.rewards import all_interventions, within
from causalarms.simulation.simulate import simulate
from causalarms.simulation.world import switching_world
from causalarms.study.cache import pack, unpack

MIXED = [1, 3, 2, 2]
SEM = random_sem(4, seed=8, regimes=MIXED)
ABLE: dict[str, dict[str, Any]] = {
    "posterior": {},
    "posterior sampled": {"method": "sampled"},
    "posterior, units of its own": {"noise_scale": "estimate", "noise_mean": None},
    "posterior-cd": {},
    "csl-ucb": {},
    "csl-ucb, means unknown": {"noise_mean": None},
    "csl-ucb-joint": {},
    "csl-ucb-cd": {"detector": "paper", "zeta": 1e-3},
    "ucb": {},
    "linsem-ts": {},
    "linsem-quantile": {},
    "linsem-ucb": {},
    "robust-linsem": {},
    "additive": {},
    "random": {},
    "oracle": {},
}
WITH_A_BELIEF: dict[str, dict[str, Any]] = {
    "posterior": {},
    "posterior sampled": {},
    "posterior, units of its own": {},
    "csl-ucb-joint": {"noise_mean": 1.0},
    "csl-ucb-joint-cd": {"noise_mean": None},
    "linsem-ts": {"noise_mean": 1.0},
    "linsem-quantile": {"noise_mean": 1.0},
    "linsem-ucb": {"noise_mean": 1.0},
    "robust-linsem": {"noise_mean": 1.0, "deviations": 1},
}
UNABLE = ("ga-lcb", "golem-mab", "golem-mab-cd", "dagma-mab", "explore-then-commit")


def build(label: str, sem: LinearSEM = SEM, **changes: Any) -> Policy:
    name = label.split(",")[0].split(" ")[0]
    settings: dict[str, Any] = {"horizon": 400, "noise_mean": sem.mechanism_mean}
    accepted = accepted_settings(policy_factory(name))
    if "graph" in accepted:
        settings["graph"] = sem.adjacency
    if "systems" in accepted:
        settings["systems"] = [sem]
    settings |= {"regimes": sem.regimes} | ABLE.get(label, {}) | changes
    return make_policy(name, n_nodes=sem.n_nodes, **settings)


@pytest.mark.parametrize("label", ABLE)
def test_play_and_continue(label: str) -> None:
    rounds = 160 if "csl" in label else 60
    world = switching_world(SEM, [rounds // 2], np.random.default_rng(0), n_mechanisms=2)
    policy = build(label)
    trace = simulate(policy, world, horizon=rounds, seed=3, graph_every=rounds)
    assert (trace.interventions < np.array(MIXED)).all()
    if label == "oracle":
        return
    state = unpack(pack(policy.state()))
    other = build(label)
    other.restore(state)
    rng = np.random.default_rng
    assert np.array_equal(policy.ask(rng(5)), other.ask(rng(5)))
    a = policy.ask(rng(5))
    x = SEM.sample(a[None], rng(6))[0]
    for one in (policy, other):
        one.tell(a, x)
    assert np.array_equal(policy.ask(rng(7)), other.ask(rng(7)))
    with pytest.raises(DataError, match=r"node 'x0'.*1 regime"):
        policy.tell([1, 0, 0, 0], x)


@pytest.mark.parametrize("label", [*WITH_A_BELIEF])
def test_beliefs_are_of_mechanisms_that_exist(label: str) -> None:
    policy, rng = build(label, **WITH_A_BELIEF[label]), np.random.default_rng(0)
    for _ in range(200):
        a = random_intervention(rng, within(SEM.regimes))
        policy.tell(a, SEM.sample(a[None], rng)[0])
    belief = policy.belief(draws=30)
    assert belief is not None
    missing = ~existing(SEM.regimes)
    _, adjacency, weights, intercept, noise_std, _ = belief.draws
    assert weights.shape == adjacency.shape == (30, *SEM.weights.shape)
    assert not intercept[:, missing].any()
    assert not noise_std[:, missing].any()
    assert noise_std[:, ~missing].all()
    for edges in (weights, adjacency, belief.edge_probability[None]):
        assert not edges.swapaxes(2, 3)[:, missing].any()
    assert belief.counts.shape == belief.starts.shape == missing.shape
    assert not belief.counts[missing].any()
    rows = all_interventions(4, SEM.regimes)
    rewards = belief.rewards(rows, SEM.reward)
    error = np.abs(rewards.mean(axis=0) - SEM.expected_reward(rows))
    assert (error < 4 * rewards.std(axis=0)).all()
    assert error.max() < 0.8


def test_known_edges_are_said_by_regime() -> None:
    for name in ("posterior", "csl-ucb"):
        policy = build(name, allowed=SEM.adjacency, required=SEM.adjacency)
        simulate(policy, SEM, horizon=160, seed=3)
        assert policy.adjacency is not None
        assert np.array_equal(policy.adjacency, SEM.adjacency)
        with pytest.raises(SettingError, match=r"allowed must.*\(4, 4\) or \(3, 4, 4\)"):
            build(name, allowed=np.ones((2, 4, 4), dtype=bool))


@pytest.mark.parametrize(
    "label", ["posterior", "linsem-ts", "linsem-quantile", "linsem-ucb", "csl-ucb-joint"]
)
def test_they_find_the_best_of_all_interventions(label: str) -> None:
    sem = random_sem(4, seed=11, regimes=[2, 3, 1, 2])
    trace = simulate(build(label, sem), sem, horizon=300, seed=1)
    assert trace.optimal[-50:].mean() > 0.8
    assert trace.regret[-1] < simulate(build("random", sem), sem, horizon=300, seed=1).regret[-1]


@pytest.mark.parametrize("name", UNABLE)
def test_those_that_need_pairs_say_so(name: str) -> None:
    with pytest.raises(SettingError, match=r"needs two of every node.*'x0' has 1"):
        make_policy(name, n_nodes=4, horizon=2000, noise_mean=1.0, regimes=MIXED)
    make_policy(name, n_nodes=4, horizon=2000, noise_mean=1.0, regimes=[2] * 4)


@pytest.mark.parametrize("label", [*ABLE, *UNABLE])
def test_two_regimes_told_are_the_default(label: str) -> None:
    sem = random_sem(4, seed=5)
    told = build(label, sem, **({"horizon": 3000} if label in UNABLE else {}))
    default = build(label, sem, regimes=None, **({"horizon": 3000} if label in UNABLE else {}))
    one = simulate(told, sem, horizon=30, seed=2)
    other = simulate(default, sem, horizon=30, seed=2)
    assert np.array_equal(one.interventions, other.interventions)


def test_probes_play_every_mechanism() -> None:
    policy = build("posterior-cd", probes=9)
    policy._probes_left = 9  # type: ignore[attr-defined]
    rng = np.random.default_rng(0)
    played = []
    for _ in range(9):
        played.append(policy.ask(rng))
        policy.tell(played[-1], SEM.sample(played[-1][None], rng)[0])
    for group in np.array(played).reshape(3, 3, 4):
        for node, count in enumerate(MIXED):
            assert set(group[:, node]) == set(range(count))


def test_random_regimes_are_equally_likely() -> None:
    rng = np.random.default_rng(0)
    counts = np.array([1, 2, 4])
    drawn = np.array([random_intervention(rng, within(counts)) for _ in range(4000)])
    for node, count in enumerate(counts):
        shares = np.bincount(drawn[:, node], minlength=count) / 4000
        assert len(shares) == count
        assert np.abs(shares - 1 / count).max() < 5 * 0.5 / np.sqrt(4000)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ModelError, match="tell the policy"):
        simulate(make_policy("random", n_nodes=4), SEM, horizon=5)
    with pytest.raises(SettingError, match="n_regimes=3"):
        build("posterior", detector=ChangeEvidence(4))
    with pytest.raises(SettingError, match="n_regimes=3"):
        build("csl-ucb", detector=MechanismGLR.authors(4))
    with pytest.raises(ModelError, match="graph: node 0 has 1 regimes, but parents in regime 1"):
        build("linsem-ts", graph=np.ones((3, 4, 4)) - np.eye(4))
    with pytest.raises(SettingError, match="one number per node"):
        build("random", regimes=[2, 2])
    with pytest.raises(SettingError, match="not those of the systems"):
        build("oracle", regimes=2)
    with pytest.raises(ModelError, match="horizon of 60"):
        build("csl-ucb", horizon=60)


def test_many_nodes_are_searched() -> None:
    sem = random_sem(18, seed=1, expected_degree=3, regimes=[3, 1] * 9)
    policy = build("posterior", sem, draws=3)
    trace = simulate(policy, sem, horizon=3, seed=0)
    assert (trace.interventions < sem.regimes).all()
