"""What breaks when an assumption does: learned graphs, regret and false alarms, world by world.

`OMP_NUM_THREADS=1 python benchmarks/what_breaks.py [graphs|policies|alarms ...] [--systems N]`;
all parts without a name, together under ten minutes on one core. The worlds are those of
this script; every world breaks one assumption of the same systems.

graphs     N = 10, 400 rounds of random interventions, noise mean told. Errors are of B, as in the
           paper; GOLEM and DAGMA get 400 rounds without interventions instead. Then the posterior's
           own probabilities, of both graphs: which fraction of its likely and unlikely edges exists
policies   N = 8, 600 rounds. Regret in per cent of random play's, and the fraction of the last 100
           rounds within 1 % of that regret per round from the best intervention
alarms     N = 8, 1500 rounds, nothing ever changes: alarms per 1000 rounds, and regret as above
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from causalarms import CSL, DAGMA, GOLEM, GraphPosterior, LinearSEM, make_policy, random_sem
from causalarms.graphs.graph import GraphErrors, graph_errors
from causalarms.policies.base import Policy
from causalarms.rng import stream
from causalarms.simulation import World
from told_units import TOLD, TOLD_CD


def straight(n: int, seed: int, noise: str = "gaussian") -> World:
    return World(random_sem(n, seed=seed), noise=noise)


def bent(n: int, seed: int, bend: str) -> World:
    return World(random_sem(n, seed=seed), bend=bend)


def confounded(n: int, seed: int, n_children: int) -> World:
    sem, rng = random_sem(n, seed=seed), stream(seed, "hidden cause")
    children = rng.permutation(n)[:n_children]
    weights = np.zeros((2, n + 1, n + 1))
    weights[:, :n, :n] = sem.weights
    size = (2, n_children)
    weights[:, n, children] = rng.choice([-1.0, 1.0], size) * rng.uniform(0.5, 2.0, size)
    mean = np.append(sem.noise_mean, 0.0)
    regimes = np.append(sem.regimes, 1)
    whole = LinearSEM(weights=weights, noise_mean=mean, reward=sem.reward, regimes=regimes)
    return World(whole, hidden=1)


def children(world: World) -> npt.NDArray[Any]:
    """Of the hidden node; none where there is none."""
    hidden = world.systems[0].adjacency[:, world.n_nodes :, : world.n_nodes]
    return np.flatnonzero(hidden.any(axis=(0, 1)))


def weak(n: int, seed: int) -> World:
    return World(random_sem(n, seed=seed, weights="uniform"))


def rescaled(n: int, seed: int, factor: float) -> World:
    """One node, not the reward, in other units; its noise mean is told in them."""
    sem, unit = random_sem(n, seed=seed), np.ones(n)
    unit[stream(seed, "rescaled").integers(n - 1)] = factor
    weights = sem.weights * unit[None, None, :] / unit[None, :, None]
    changed = sem.replace(
        weights=weights, noise_mean=sem.noise_mean * unit, noise_std=sem.noise_std * unit
    )
    return World(changed)


WORLDS: dict[str, Callable[[int, int], World]] = {
    "nothing broken": straight,
    "noise uniform": lambda n, seed: straight(n, seed, "uniform"),
    "noise Laplace": lambda n, seed: straight(n, seed, "laplace"),
    "noise Student t, 3 degrees": lambda n, seed: straight(n, seed, "student-t"),
    "noise exponential": lambda n, seed: straight(n, seed, "exponential"),
    "effects saturate mildly": lambda n, seed: bent(n, seed, "saturates-mildly"),
    "effects saturate strongly": lambda n, seed: bent(n, seed, "saturates-strongly"),
    "effects of positive values only": lambda n, seed: bent(n, seed, "one-sided"),
    "effects U-shaped": lambda n, seed: bent(n, seed, "u-shaped"),
    "hidden cause of 2 nodes": lambda n, seed: confounded(n, seed, 2),
    "hidden cause of 4 nodes": lambda n, seed: confounded(n, seed, 4),
    "weights U(-2, 2)": weak,
    "one node times 100": lambda n, seed: rescaled(n, seed, 100.0),
    "one node divided by 100": lambda n, seed: rescaled(n, seed, 0.01),
}


Array = npt.NDArray[Any]

LIKELY, UNLIKELY = 0.95, 0.05
CLOSE = 0.01  # of random play's mean gap: as good as the best intervention
ALARM_WORLDS = [
    "nothing broken",
    "noise uniform",
    "noise Laplace",
    "noise Student t, 3 degrees",
    "noise exponential",
    "effects saturate strongly",
    "effects of positive values only",
    "effects U-shaped",
    "hidden cause of 4 nodes",
]
METRICS = {
    "false_negative": "graph-FN rate: systems with a missing edge",
    "precision": "precision",
    "recall": "recall",
}


class Part(NamedTuple):
    systems: int
    measure: Any


def table(title: str, *headings: str) -> Table:
    made = Table(title=title)
    made.add_column("world", no_wrap=True)
    for heading in headings:
        made.add_column(heading, justify="right")
    return made


def learned(world: World, seed: int) -> Iterator[tuple[str, Any]]:
    """Fitted learners; the last two see rounds without interventions."""
    rng, n, mean = stream(seed, "rounds"), world.n_nodes, world.noise_mean
    A = rng.integers(0, 2, (400, n), dtype=np.uint8)
    X, natural = world.sample(A, rng), np.zeros_like(A)
    yield "CSL, joint", CSL(joint=True).fit(X, interventions=A, noise_mean=mean)
    yield (
        "posterior",
        GraphPosterior(noise_scale=1.0, miss_probability_per_edge=0.05).fit(
            X, interventions=A, noise_mean=mean
        ),
    )
    estimate = GraphPosterior(miss_probability_per_edge=0.05)
    yield "posterior, estimate", estimate.fit(X, interventions=A, noise_mean=mean)
    X = world.sample(natural, rng)
    yield "GOLEM", GOLEM().fit(X, interventions=natural)
    yield "DAGMA", DAGMA().fit(X, interventions=natural)


def without_edge(world: World, between: Array) -> Array:
    """(2, N, N): pairs, once each, among `between` that no true edge joins in the regime."""
    chosen = np.isin(np.arange(world.n_nodes), between)
    pairs = np.triu(chosen[:, None] & chosen[None, :], k=1)
    joined = world.adjacency() | world.adjacency().transpose(0, 2, 1)
    return pairs & ~joined


def graphs(n_systems: int) -> Iterator[Table]:
    n = 10
    tables: list[Table] = []
    for name, make in WORLDS.items():
        errors: dict[str, list[GraphErrors]] = {}
        said: dict[str, list[Array]] = {}
        true: list[Array] = []
        false: dict[str, list[Array]] = {}
        for seed in range(n_systems):
            world = make(n, seed)
            off_diagonal = np.broadcast_to(~np.eye(n, dtype=bool), (2, n, n))
            true.append(world.adjacency()[off_diagonal])
            siblings = without_edge(world, children(world))
            others = without_edge(world, np.arange(n)) & ~siblings
            for method, model in learned(world, seed):
                errors.setdefault(method, []).append(
                    graph_errors(world.adjacency()[0], model.adjacency_[0])
                )
                if method.startswith("posterior"):
                    said.setdefault(method, []).append(model.edge_probability_[off_diagonal])
                if method in ("CSL, joint", "posterior"):
                    found = model.adjacency_ | model.adjacency_.transpose(0, 2, 1)
                    false.setdefault(f"{method} siblings", []).append(found[siblings])
                    false.setdefault(f"{method} others", []).append(found[others])
        if not tables:
            tables = [
                *(
                    table(f"{title}, of B, N = {n}, T = 400, {n_systems} systems", *errors)
                    for title in METRICS.values()
                ),
                table(
                    f"the posterior's probabilities: fraction of edges said > {LIKELY} that exist, "
                    f"and of those said < {UNLIKELY}",
                    *(f"{m}, {bound}" for m in said for bound in (f"> {LIKELY}", f"< {UNLIKELY}")),
                ),
                table(
                    "pairs without an edge that got one: children of the hidden cause, others",
                    *false,
                ),
            ]
        for metric, filled in zip(METRICS, tables, strict=False):
            means = (np.mean([getattr(e, metric) for e in each]) for each in errors.values())
            filled.add_row(name, *(f"{mean:.2f}" for mean in means))
        exists = np.concatenate(true)
        fractions = []
        for each in said.values():
            p = np.concatenate(each)
            fractions += [exists[p > LIKELY].mean(), exists[p < UNLIKELY].mean()]
        tables[-2].add_row(name, *(f"{fraction:.3f}" for fraction in fractions))
        if name.startswith("hidden"):
            rates = [np.concatenate(each).mean() for each in false.values()]
            tables[-1].add_row(name, *(f"{rate:.2f}" for rate in rates))
    yield from tables


def play(policy: Policy, world: World, horizon: int, seed: int) -> Array:
    """The interventions a policy plays, as numbers of rows of `all_arms`."""
    noise, n = stream(seed, "noise"), world.n_nodes
    value = 1 << np.arange(n)[::-1]
    played = np.empty(horizon, dtype=int)
    for t in range(horizon):
        arm = policy.suggest(stream(seed, "policy", t)).intervention
        policy.tell(arm, world.sample(arm[None], noise)[0])
        played[t] = arm @ value
    return played


def all_arms(n: int) -> Array:
    return np.array(list(itertools.product((0, 1), repeat=n)), dtype=np.uint8)


def gaps(world: World) -> Array:
    """What every intervention loses to the best one; 1 is what random play loses on average."""
    rewards = world.expected_reward(all_arms(world.n_nodes))
    return (rewards.max() - rewards) / (rewards.max() - rewards.mean())


def policies(n_systems: int) -> Iterator[Table]:
    n, horizon, names = 8, 600, ("posterior", "csl-ucb-joint", "ucb")
    found = table(
        "regret, % of random play's: mean ± standard error, median / optimal in the last 100 "
        f"rounds, %; N = {n}, T = {horizon}, {n_systems} systems",
        *names,
    )
    for world_name, make in WORLDS.items():
        results: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for seed in range(n_systems):
            world = make(n, seed)
            gap = gaps(world)
            for name in names:
                policy = made(name, world, horizon)
                lost = gap[play(policy, world, horizon, seed)]
                results[name].append((lost.mean(), (lost[-100:] <= CLOSE).mean()))
        cells = []
        for each in results.values():
            regret, optimal = np.array(each).T * 100
            error = regret.std(ddof=1) / np.sqrt(len(regret))
            cells.append(
                f"{regret.mean():.1f} ± {error:.1f}, {np.median(regret):.1f} / {optimal.mean():.0f}"
            )
        found.add_row(world_name, *cells)
    yield found


def alarms(n_systems: int) -> Iterator[Table]:
    n, horizon, names = 8, 1500, ("posterior-cd", "posterior-cd, any noise", "csl-ucb-joint-cd")
    found = table(
        f"false alarms per 1000 rounds (systems with one) / regret, % of random play's; N = {n}, "
        f"T = {horizon}, {n_systems} systems",
        *names,
    )
    for world_name in ALARM_WORLDS:
        counts: dict[str, list[int]] = {name: [] for name in names}
        losses: dict[str, list[float]] = {name: [] for name in names}
        for seed in range(n_systems):
            world = WORLDS[world_name](n, seed)
            gap = gaps(world)
            for name in names:
                policy = made(name, world, horizon)
                losses[name].append(gap[play(policy, world, horizon, seed)].mean())
                counts[name].append(len(policy.alarms))
        found.add_row(
            world_name,
            *(
                f"{1000 * np.mean(counts[name]) / horizon:.2f} "
                f"({np.count_nonzero(counts[name])}) / {100 * np.mean(losses[name]):.1f}"
                for name in names
            ),
        )
    yield found


def made(name: str, world: World, horizon: int) -> Policy:
    name, _, option = name.partition(", ")
    told: dict[str, Any] = {"posterior": TOLD, "posterior-cd": TOLD_CD}.get(name, {})
    more = told | ({"noise": "any"} if option else {})
    return make_policy(
        name, n_nodes=world.n_nodes, horizon=horizon, noise_mean=world.noise_mean, **more
    )


PARTS = {"graphs": Part(50, graphs), "policies": Part(24, policies), "alarms": Part(16, alarms)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--systems", type=int, help="instead of 50, 24 and 16")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # the learners' remarks on single systems
    console = Console(width=150)
    for name in arguments.parts or PARTS:
        start, part = process_time(), PARTS[name]
        for found in part.measure(arguments.systems or part.systems):
            console.print(found)
        console.print(f"{name}: {process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
