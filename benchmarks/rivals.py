"""Methods of other papers next to ours, on the same systems with the same noise.

`python benchmarks/rivals.py [stationary|changing|deviating|hard|choose ...] [--runs 100] [--jobs 1]
[--results DIRECTORY]`, all but `choose` without a name. Runs are kept in a file per world and gone
on with; a table is of the systems that all its policies have played. `choose` is the grid on which
the constants that nobody published were chosen; its systems are others.

stationary  random systems, six nodes, 1000 rounds
changing    the same; three mechanisms of the best intervention are drawn again after round 500
deviating   the same; in every other of the first 2 C rounds all weights have the other sign
hard        eight nodes: five are set to one of three values, two and the reward answer causes
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from causalarms.policies.base import Policy
from causalarms.policies.registry import accepted_settings, make_policy, policy_factory
from causalarms.rng import stream
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.simulation.monte_carlo import Engine, run_units
from causalarms.simulation.results import ResultStore
from causalarms.simulation.simulate import simulate
from causalarms.simulation.summary import mean, ratio_of_means
from causalarms.simulation.world import World, deviating_world, switching_world
from causalarms.study.learner import chosen_policy
from shared import table
from told_units import TOLD, TOLD_CD

FIRST_SEED, FIRST_CHOICE = 60_000, 50_000  # constants were chosen on seeds from 50_000
N_NODES, ROUNDS, CHANGE = 6, 1000, 500
N_SET, N_ANSWERING, LEVELS = 5, 2, 3
SCATTER = 0.1  # of a node around the value it is set to
LAST = 100  # rounds at the end, whose fraction of optimal ones is shown
REFERENCE, DEVIATES, STUDY = "linsem-ts", "deviating", "as a study decides"
Played = dict[str, Any]


@dataclass(frozen=True)
class Contestant:
    policy: str
    settings: dict[str, Any] = field(default_factory=dict)

    def told(self, world: World) -> Policy:
        """With what the table of docs/baselines.md says that it is told, and no more."""
        sem = world.systems[0]
        accepted = accepted_settings(policy_factory(self.policy))
        told: dict[str, Any] = {"noise_mean": sem.noise_mean, "horizon": ROUNDS}
        told["regimes"] = sem.regimes
        if "graph" in accepted:
            told["graph"] = sem.adjacency
        settings = dict(self.settings)
        if self.policy == "additive":
            told["noise_std"] = reward_std(sem)
        if self.policy == "robust-linsem" and (deviant := n_deviant(world)):
            told["deviations"] = deviant
        return make_policy(self.policy, n_nodes=sem.n_nodes, reward=sem.reward, **(told | settings))


CONTESTANTS: dict[str, Contestant] = {
    "linsem-ts": Contestant("linsem-ts"),
    "linsem-quantile": Contestant("linsem-quantile"),
    "linsem-ucb": Contestant("linsem-ucb"),
    "linsem-ucb, beta of the theorem": Contestant("linsem-ucb", {"beta": "theory"}),
    "robust-linsem": Contestant("robust-linsem"),
    "posterior": Contestant("posterior", TOLD),
    "posterior-cd": Contestant("posterior-cd", TOLD_CD),
    "csl-ucb-joint": Contestant("csl-ucb-joint"),
    "csl-ucb-joint-cd": Contestant("csl-ucb-joint-cd"),
    "additive": Contestant("additive"),
    "additive, epsilon = 8": Contestant("additive", {"epsilon": 8.0}),
    "ucb": Contestant("ucb"),
    "ucb, last 10 plays": Contestant("ucb", {"window": 10}),
    "robust-linsem, C = 1": Contestant("robust-linsem", {"deviations": 1}),
    "posterior, units estimated": Contestant("posterior", TOLD | {"noise_scale": "estimate"}),
    STUDY: Contestant(*chosen_policy(None, {"noise_mean": None}, changes=True)),
}
STATIONARY = [
    "linsem-ts", "linsem-quantile", "linsem-ucb", "linsem-ucb, beta of the theorem",
    "robust-linsem", "robust-linsem, C = 1", "posterior", "csl-ucb-joint", "additive",
    "additive, epsilon = 8", "ucb", STUDY,
]  # fmt: skip
CHANGING = [
    "linsem-ts", "linsem-quantile", "linsem-ucb", "robust-linsem", "posterior", "posterior-cd",
    "csl-ucb-joint", "csl-ucb-joint-cd", "additive", "ucb", "ucb, last 10 plays", STUDY,
]  # fmt: skip
DEVIATING = ["linsem-ts", "linsem-quantile", "linsem-ucb", "robust-linsem", "posterior", STUDY]
HARD = [
    "linsem-ts", "linsem-quantile", "linsem-ucb", "robust-linsem", "posterior, units estimated",
    "csl-ucb-joint", "additive", "additive, epsilon = 8", "ucb", STUDY,
]  # fmt: skip


def n_deviant(world: World) -> int:
    """In how many rounds weights have the other sign."""
    usual = world.systems[0].weights
    return sum((system.weights == -usual).all().item() for system in world.systems)


def stationary(seed: int) -> World:
    return World(random_sem(N_NODES, seed=seed))


def changing(seed: int) -> World:
    sem = random_sem(N_NODES, seed=seed)
    return switching_world(sem, [CHANGE], stream(seed, "change"))


def deviating(n_deviations: int) -> Callable[[int], World]:
    """Every other one of the first rounds, from the second on."""

    def world(seed: int) -> World:
        return deviating_world(random_sem(N_NODES, seed=seed), range(2, 2 * n_deviations + 1, 2))

    return world


def hard(seed: int) -> World:
    """Levels set their nodes: nothing else causes them, and the reward is a sum over nodes."""
    rng = stream(seed, "hard")
    n_nodes = N_SET + N_ANSWERING + 1
    is_set = np.zeros(n_nodes, dtype=bool)
    is_set[rng.choice(n_nodes - 1, N_SET, replace=False)] = True
    regimes = np.where(is_set, LEVELS, 1)
    sem = random_sem(n_nodes, seed=rng, regimes=regimes)
    weights = np.where(is_set, 0.0, sem.weights)
    values = rng.uniform(-2, 2, (LEVELS, n_nodes))
    return World(
        LinearSEM(
            weights=weights,
            noise_mean=np.where(is_set, values, 1.0),
            noise_std=np.where(is_set, SCATTER, 1.0),
            order=sem.order,
            regimes=regimes,
        )
    )


def reward_std(sem: LinearSEM) -> float:
    """Of the reward around its mean, under the first levels."""
    flow = sem.flow(np.zeros(sem.n_nodes, dtype=np.uint8))[:, sem.reward]
    return float(np.sqrt(flow**2 @ sem.mechanism_std[0] ** 2))


class Setting(NamedTuple):
    world: Callable[[int], World]
    names: list[str]


SETTINGS = {
    "stationary": Setting(stationary, STATIONARY),
    "changing": Setting(changing, CHANGING),
    "deviating, C = 30": Setting(deviating(30), DEVIATING),
    "deviating, C = 100": Setting(deviating(100), DEVIATING),
    "hard": Setting(hard, HARD),
}
BETAS: list[float | str] = [0.5, 1.0, 2.0, 3.0, "theory"]
CHOICES: dict[str, dict[str, Contestant]] = {
    "stationary": {f"linsem-ucb {b}": Contestant("linsem-ucb", {"beta": b}) for b in BETAS}
    | {f"robust-linsem {b}": Contestant("robust-linsem", {"beta": b}) for b in BETAS},
    "deviating, C = 30": {
        f"robust-linsem {b}": Contestant("robust-linsem", {"beta": b}) for b in BETAS
    },
    "hard": {f"additive {e}": Contestant("additive", {"epsilon": e}) for e in (0.5, 2.0, 4.0, 8.0)},
}


def play(setting: str, name: str, seed: int) -> Played:
    """One run; `plain` is the regret of rounds that do not deviate."""
    contestant = CONTESTANTS.get(name) or CHOICES[setting][name]
    world = SETTINGS[setting].world(seed)
    policy = contestant.told(world)
    start = process_time()
    trace = simulate(policy, world, horizon=ROUNDS, seed=seed)
    seconds = process_time() - start
    counts = np.ones(ROUNDS, dtype=bool)
    if n_deviant(world):
        usual = world.systems[0]
        counts[:] = [world.systems[world.number_at(t + 1)] is usual for t in range(ROUNDS)]
    return {
        "policy": name,
        "repetition": seed,
        "regret": float(trace.regret[-1]),
        "plain": float(trace.gap[counts].sum()),
        "half": float(trace.regret[ROUNDS // 2 - 1]),
        "optimal": float(trace.optimal[-LAST:].mean()),
        "explored": int(trace.explored.sum()),
        "seconds": seconds,
    }


def results(
    setting: str, names: list[str], seeds: range, jobs: int, where: Path | None
) -> dict[str, list[Played]]:
    """By policy, of the systems that all of them have played."""
    path = None if where is None else where / f"{setting.replace(', C = ', '-')}.jsonl"
    store = ResultStore(path, {"setting": setting, "rounds": ROUNDS})
    units = [((name, seed), (setting, name, seed)) for seed in seeds for name in names]
    run_units(play, units, store=store, engine=Engine("local", jobs))
    return {name: [store.records[name, seed] for seed in seeds] for name in names}


def column(records: list[Played], key: str) -> npt.NDArray[np.float64]:
    return np.array([float(record[key]) for record in records])


def summary(setting: str, found: dict[str, list[Played]]) -> Table:
    """The least regret first."""
    n_systems = len(next(iter(found.values())))
    made = table(
        f"{setting}, {n_systems} systems, {ROUNDS} rounds", "policy", "mean regret (95 %)",
        "median", f"times {REFERENCE} (95 %)", "optimal at the end", "lost", "explored", "seconds",
    )  # fmt: skip
    key = "plain" if setting.startswith(DEVIATES) else "regret"
    reference = found.get(REFERENCE)
    for name in sorted(found, key=lambda name: column(found[name], key).mean()):
        regret = column(found[name], key)
        value, low, high = mean(regret)
        times = ""
        if reference is not None:
            ratio = ratio_of_means(regret, column(reference, key))
            times = f"{ratio.value:.2f} ({ratio.low:.2f} - {ratio.high:.2f})"
        optimal = column(found[name], "optimal")
        made.add_row(
            name,
            f"{value:.0f} ({low:.0f} - {high:.0f})",
            f"{np.median(regret):.0f}",
            times,
            f"{100 * optimal.mean():.0f} %",
            str(np.sum(optimal < 0.5)),
            f"{column(found[name], 'explored').mean():.0f}",
            f"{column(found[name], 'seconds').mean():.1f}",
        )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--only", nargs="*", help="play these policies, and show no table")
    given = parser.parse_args()
    console = Console(width=170)
    wanted = given.names or ["stationary", "changing", "deviating", "hard"]
    if "choose" in wanted:
        for setting, contestants in CHOICES.items():
            seeds = range(FIRST_CHOICE, FIRST_CHOICE + given.runs)
            found = results(setting, list(contestants), seeds, given.jobs, given.results)
            console.print(summary(setting, found))
    for setting, (_, names) in SETTINGS.items():
        if setting.split(",")[0] in wanted:
            seeds = range(FIRST_SEED, FIRST_SEED + given.runs)
            if given.only:
                names = [name for name in names if name in given.only]
            found = results(setting, names, seeds, given.jobs, given.results)
            if not given.only:
                console.print(summary(setting, found))


if __name__ == "__main__":
    main()
