"""Own systems, noise, bends and hidden nodes; and results files that tell them apart."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from causalarms import LinearSEM, random_sem
from causalarms.errors import CausalArmsError, DataError, ModelError
from causalarms.policies.simple import UCB
from causalarms.policies.stopping import StopRule
from causalarms.rng import stream
from causalarms.sem.rewards import all_interventions
from causalarms.simulation import (
    BENDS,
    NOISE_DISTRIBUTIONS,
    Contestant,
    Experiment,
    World,
    monte_carlo,
    summarise,
)
from causalarms.simulation.noise import noise_distribution
from causalarms.simulation.world import MONTE_CARLO
from causalarms.simulation.worlds import fingerprint

STORED = Path(__file__).parent / "data" / "results-1.jsonl"
RANDOM = (Contestant("random"),)


def sparse(rng: np.random.Generator) -> LinearSEM:
    return random_sem(4, seed=rng, expected_degree=1.5)


def dense(rng: np.random.Generator) -> LinearSEM:
    return random_sem(4, seed=rng)


def heavy(rng: np.random.Generator, size: int) -> npt.NDArray[np.float64]:
    return rng.standard_t(5, size)


def experiment(**settings: Any) -> Experiment:
    given: dict[str, Any] = {"n_nodes": 4, "horizon": 100, "contestants": RANDOM}
    return Experiment(**(given | settings))


@pytest.mark.parametrize("name", NOISE_DISTRIBUTIONS)
def test_distributions_have_mean_zero_and_variance_one(name: str) -> None:
    values = noise_distribution(name)(stream(0, "test"), (20_000, 3))
    error = 5 / np.sqrt(values.size)  # standard errors of the mean
    assert abs(values.mean()) < error
    spread = 0.1 if name == "student-t" else 5 * error  # whose fourth moment is infinite
    assert values.var() == pytest.approx(1.0, abs=spread)


def test_nodes_take_distributions_in_turn() -> None:
    values = noise_distribution(["uniform", "exponential"])(stream(0, "test"), (2000, 3))
    assert abs(values[:, [0, 2]]).max() <= np.sqrt(3)
    assert values[:, 1].min() >= -1.0
    assert values[:, 1].max() > 3.0


def test_an_experiment_plays_the_systems_it_was_given() -> None:
    made = experiment(systems=sparse, noise="laplace", seed=5)
    for repetition in range(3):
        expected = sparse(stream(5, "system", repetition))
        assert made.world(repetition).systems == [expected]
        assert made.world(repetition).noise == "laplace"
    listed = experiment(systems=[dense(stream(0, "a")), random_sem(5, seed=1)])
    assert [listed.world(r).n_nodes for r in range(4)] == [4, 5, 4, 5]
    changing = experiment(systems=sparse, changes=(50,), n_changed=1)
    assert changing.world(0).change_points == [50]


def test_distributions_of_weights_are_used_everywhere() -> None:
    sem = experiment(weights=heavy).world(0).systems[0]
    assert sem == random_sem(4, seed=stream(0, "system", 0), weights=heavy)
    assert sem != random_sem(4, seed=stream(0, "system", 0))


def test_gaussian_noise_and_straight_lines_are_the_system_itself() -> None:
    sem = random_sem(4, seed=1)
    A = all_interventions(4)
    plain = World(sem).sample(A, np.random.default_rng(0))
    np.testing.assert_array_equal(plain, sem.sample(A, np.random.default_rng(0)))
    np.testing.assert_array_equal(World(sem).expected_reward(A), sem.expected_reward(A))


def identity(x: npt.NDArray[np.float64], scale: float) -> npt.NDArray[np.float64]:
    return x


@pytest.mark.parametrize("regimes", [2, (3, 1, 2, 2)])
def test_a_bend_that_does_not_bend_gives_the_linear_system(regimes: Any) -> None:
    sem = random_sem(4, seed=2, regimes=regimes, noise_std=[0.5, 1.0, 2.0, 1.0])
    bent, straight = World(sem, bend=identity), World(sem)
    A = all_interventions(4, sem.regimes)
    one, other = (w.sample(A, np.random.default_rng(1)) for w in (bent, straight))
    np.testing.assert_allclose(one, other, atol=1e-12)
    spread = np.sqrt(np.array([sem.covariance(a)[3, 3] for a in A]) / MONTE_CARLO)
    assert (abs(bent.expected_reward(A) - sem.expected_reward(A)) < 5 * spread).all()
    assert bent.average_reward(0) == pytest.approx(bent.expected_reward(A).mean())


@pytest.mark.parametrize("bend", BENDS)
def test_expected_rewards_of_bent_worlds_are_means_of_what_is_played(bend: str) -> None:
    world = World(random_sem(4, seed=3), bend=bend, noise="exponential")
    a = world.best_intervention()
    rewards = world.expected_reward(all_interventions(4))
    assert world.best_reward(0) == rewards.max()
    played = world.sample(np.tile(a, (20_000, 1)), np.random.default_rng(0))[:, 3]
    error = played.std() * np.sqrt(1 / 20_000 + 1 / MONTE_CARLO)
    assert abs(played.mean() - world.best_reward(0)) < 5 * error


def test_hidden_nodes_act_and_are_not_shown() -> None:
    weights = np.zeros((2, 3, 3))
    weights[:, 2, 0], weights[:, 2, 1] = 3.0, 3.0
    sem = LinearSEM(weights=weights, noise_mean=[0, 0, 1.0], reward=1, regimes=[2, 2, 1])
    world = World(sem, hidden=1)
    X = world.sample(np.zeros((2000, 2), dtype=np.uint8), np.random.default_rng(0))
    assert X.shape == (2000, 2)
    assert np.mean(X[:, 0] * X[:, 1]) == pytest.approx(18, rel=0.1)  # 3 h for both, E h^2 = 2
    assert not world.adjacency().any()
    assert world.expected_reward(np.zeros((1, 2), dtype=np.uint8)).tolist() == [3.0]
    made = experiment(systems=[world], contestants=(Contestant("random"), Contestant("posterior")))
    assert len(monte_carlo(made, runs=1, n_jobs=1)) == 2


@dataclass(frozen=True, kw_only=True)
class Louder(Experiment):
    """Says nothing of its other world in its settings."""

    def world(self, repetition: int) -> World:
        sem = super().world(repetition).systems[0]
        return World(sem.replace(noise_std=3.0))


@dataclass(frozen=True, kw_only=True)
class Skewed(Experiment):
    def world(self, repetition: int) -> World:
        return World(super().world(repetition).systems, noise="exponential")


def skewed(rng: np.random.Generator) -> World:
    return World(sparse(rng), noise="exponential")


def shouting(rng: np.random.Generator) -> World:
    return World(sparse(rng), noise="laplace")


OTHERS: dict[str, Callable[[], Experiment]] = {
    "another class": lambda: Louder(n_nodes=4, horizon=100, contestants=RANDOM),
    "a class with other noise": lambda: Skewed(n_nodes=4, horizon=100, contestants=RANDOM),
    "a function": lambda: experiment(systems=dense),
    "another function": lambda: experiment(systems=sparse),
    "worlds": lambda: experiment(systems=skewed),
    "worlds that differ in rounds only": lambda: experiment(systems=shouting),
    "a list": lambda: experiment(systems=[random_sem(4, seed=s) for s in (1, 2, 3)]),
    "another list": lambda: experiment(systems=[random_sem(4, seed=s) for s in (1, 2, 4)]),
    "a distribution": lambda: experiment(noise="uniform"),
    "own weights": lambda: experiment(weights=heavy),
    "a bend": lambda: experiment(bend="one-sided"),
    "a batch": lambda: experiment(batch=2),
}


@pytest.mark.parametrize("what", OTHERS)
def test_no_world_is_given_the_results_of_another(what: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    monte_carlo(OTHERS[what](), runs=1, path=path, n_jobs=1)
    before = path.read_bytes()
    assert len(monte_carlo(OTHERS[what](), runs=1, path=path, n_jobs=1)) == 1
    for name, make in {"plain": experiment, **OTHERS}.items():
        if name != what:
            with pytest.raises(DataError, match="results of other settings"):
                monte_carlo(make(), runs=1, path=path, n_jobs=1)
    assert path.read_bytes() == before


def test_a_file_of_the_first_format_is_read_and_added_to(tmp_path: Path) -> None:
    path = Path(shutil.copy(STORED, tmp_path))
    contestants = (Contestant("random"), Contestant("ucb", "windowed", {"window": 5}))
    plain = Experiment(n_nodes=3, horizon=100, changes=(60,), contestants=contestants)
    calls: list[int] = []
    told = lambda done, *_: calls.append(done)  # noqa: E731
    stored = monte_carlo(plain, runs=2, path=path, n_jobs=1, on_result=told)
    assert calls == [4]
    assert path.read_bytes() == STORED.read_bytes()
    fresh = monte_carlo(plain, runs=2, n_jobs=1)
    for before, now in zip(stored, fresh, strict=True):
        # The file was written on another processor: the last digit of a sum may differ.
        regret = before.pop("random_regret")
        assert now.pop("random_regret") == pytest.approx(regret, rel=1e-14)
        assert before == now
    assert len(monte_carlo(plain, runs=3, path=path, n_jobs=1)) == 6


def test_what_cannot_be_sent_to_other_processes_is_named() -> None:
    lock = threading.Lock()

    def locked(rng: np.random.Generator) -> LinearSEM:
        with lock:
            return sparse(rng)

    made = experiment(systems=locked)
    assert len(monte_carlo(made, runs=1, n_jobs=1)) == 1
    for engine in ("local", "dask"):
        with pytest.raises(CausalArmsError, match="systems cannot be sent to other processes"):
            monte_carlo(made, runs=2, n_jobs=2, engine=engine)


def broken(rng: np.random.Generator) -> LinearSEM:
    raise ValueError("no luck")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"systems": broken}, "broken gives no system for repetition 0: ValueError: no luck"),
        ({"systems": lambda rng: 3}, "must be a LinearSEM or a World, not 3"),
        ({"systems": []}, "list of systems is empty"),
        ({"systems": 3}, "must be a function of a generator or a list"),
        ({"systems": ["x"]}, "system 0 must be a LinearSEM or a World"),
        ({"systems": sparse, "regimes": 2}, "regimes are those of the systems"),
        ({"systems": skewed, "noise": "laplace"}, "noise: the systems are worlds"),
        ({"systems": skewed, "changes": (50,)}, "changes: the systems are worlds"),
        ({"noise": "cauchy"}, "unknown noise 'cauchy'; there are gaussian, uniform"),
        ({"noise": []}, "the list of distributions is empty"),
        ({"noise": lambda rng, shape: rng.exponential(1.0, shape)}, "mean 0, not about 1"),
        ({"noise": lambda rng, shape: rng.normal(size=3)}, "the function gave"),
        ({"noise": lambda rng, shape: np.full(shape, np.nan)}, "not finite"),
        ({"bend": "wavy"}, "unknown bend 'wavy'; there are saturates-mildly"),
        ({"weights": "wavy"}, "weights must be one of .* not 'wavy'"),
        ({"batch": 0}, "batch"),
        ({"contestants": (Contestant("mine:Missing"),)}, "policy 'mine:Missing' cannot be loaded"),
        ({"contestants": (Contestant("oracle"),), "bend": "u-shaped"}, "'oracle' is told the"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        monte_carlo(experiment(**settings), runs=1, n_jobs=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": 1}, "the reward 'x3' must be among"),
        ({"hidden": -1}, "-1 hidden nodes of 4"),
        ({"bend": lambda x, scale: x[:1]}, "one finite value for every value"),
    ],
)
def test_worlds_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        World(random_sem(4, seed=0), **settings).best_reward(0)
    with pytest.raises(ModelError, match="all interventions are compared"):
        World(random_sem(15, seed=0), bend="u-shaped")
    with pytest.raises(ModelError, match="a hidden node has no switch"):
        World(random_sem(4, seed=0).replace(reward=0), hidden=1)


def test_contestants_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ModelError, match="is a policy's name, its class or a function"):
        Contestant(3)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"settings of random: .* cannot be written to"):
        Contestant("random", "", {"a": object()}).told()


def test_a_function_with_some_settings_is_a_contestant() -> None:
    made = experiment(
        contestants=(Contestant("ucb", "a", {"alpha": 2.0}), Contestant(partial(UCB, alpha=2.0)))
    )
    one, two = monte_carlo(made, runs=1, n_jobs=1)
    assert (two["policy"], two["regret"]) == ("UCB", one["regret"])
    assert two["told"]["policy"]["with"] == [[], {"alpha": 2.0}]


def test_a_run_that_stops_plays_what_it_recommends_to_the_end() -> None:
    rule = StopRule(probability=0.8)
    stops = experiment(stop=rule, batch=2, contestants=(Contestant("posterior"), *RANDOM))
    stopped, plays_on = monte_carlo(stops, runs=1, n_jobs=1)
    world, trace = stops.play(stops.contestants[0], 0)
    assert stopped["stopped"] == len(trace.gap) < 100
    assert stopped["probability_best"] >= 0.8
    assert trace.recommendation is not None
    lost = world.best_reward(0) - world.expected_reward(trace.recommendation.intervention[None])[0]
    assert stopped["regret"] == pytest.approx(trace.regret[-1] + (100 - len(trace.gap)) * lost)
    assert len(stopped["regret_curve"]) == 10
    assert plays_on["stopped"] is None
    rows = summarise(stops, [stopped, plays_on])
    assert [row.stopped for row in rows] == [1.0, 0.0]
    assert rows[0].rounds_to_stop == len(trace.gap)


class Silent(World):
    """Shows the same whatever it is."""

    def play(self, round_: int, intervention: Any, rng: np.random.Generator) -> Any:
        return np.zeros(self.n_nodes)


def test_a_fingerprint_is_of_systems_and_of_rounds() -> None:
    sem = random_sem(3, seed=1)
    other = sem.replace(weights=sem.weights * 1.01)
    assert fingerprint([Silent(sem)]) == fingerprint([Silent(sem)])
    assert fingerprint([Silent(sem)]) != fingerprint([Silent(other)])
    assert fingerprint([World(sem)]) != fingerprint([World(sem, noise="laplace")])
    assert fingerprint([World(sem)]) != fingerprint([World(sem), World(sem)])


def test_a_batch_is_played_before_any_of_its_results_is_told() -> None:
    whole, single = (experiment(batch=n).play(Contestant("ucb"), 0)[1] for n in (100, 1))
    assert single.explored.sum() == 16  # every intervention once
    assert whole.explored.all()  # none is known to have been played
