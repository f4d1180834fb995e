"""Change detection: rates of false alarms, under noise of many distributions, and slow changes.

`python benchmarks/change_detection.py scores|evidence|noise|drift|factors [options]`; each has
--help.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

from causalarms import Study
from causalarms.changes.detector import PREDICTION, Alarm, Detector, Prediction, View
from causalarms.changes.evidence import ChangeEvidence
from causalarms.changes.predictive import predictive_scores
from causalarms.errors import CausalArmsWarning
from causalarms.policies.posterior import PosteriorPolicy
from causalarms.policies.registry import make_policy
from causalarms.rng import stream
from causalarms.sem import random_shifted_sem
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.simulation import NOISE_DISTRIBUTIONS
from causalarms.simulation.experiment import Contestant, Experiment, run_unit
from causalarms.simulation.monte_carlo import monte_carlo
from causalarms.simulation.noise import Noise, noise_distribution
from causalarms.simulation.simulate import simulate
from causalarms.simulation.summary import detection, summarise
from causalarms.simulation.world import World, switching_world
from causalarms.statistics.dataset import Moments, gram_matrix
from causalarms.study.learner import chosen_policy
from shared import run_part, table
from told_units import TOLD_CD

N_NODES = 10


def stationary(runs: int, jobs: int, seed: int) -> Table:
    """False alarms where nothing changes."""
    asked = (0.1, 1.0)
    experiment = Experiment(
        seed=seed,
        contestants=tuple(
            Contestant("posterior-cd", f"{rate}", TOLD_CD | {"false_alarms_per_1000_rounds": rate})
            for rate in asked
        ),
    )
    records = monte_carlo(experiment, runs=runs, n_jobs=jobs)
    table = Table(title=f"{runs} stationary runs of {experiment.horizon} rounds")
    for heading in ("asked per 1000 rounds", "measured", "95 % interval", "linear runs"):
        table.add_column(heading, justify="right")
    for rate in asked:
        mine = [record for record in records if record["policy"] == f"{rate}"]
        per_run = np.array([len(record["alarms"]) for record in mine])
        scale = 1000.0 / experiment.horizon
        mean, error = per_run.mean() * scale, per_run.std(ddof=1) / len(mine) ** 0.5 * scale
        table.add_row(
            f"{rate}",
            f"{mean:.3f}",
            f"{mean - 1.96 * error:.3f} - {mean + 1.96 * error:.3f}",
            str(sum(record["linear_regret"] for record in mine)),
        )
    return table


def changing(runs: int, jobs: int, seed: int) -> Table:
    """The paper's changes of three mechanisms after rounds 1000 and 2000."""
    experiment = Experiment(
        horizon=3000,
        changes=(1000, 2000),
        seed=seed,
        contestants=(
            Contestant("posterior-cd", settings=TOLD_CD),
            Contestant("linsem-ts", "linsem-ts restarted", {"restarts": "true"}),
            Contestant("csl-ucb-joint-cd"),
        ),
    )
    records = monte_carlo(experiment, runs=runs, n_jobs=jobs)
    table = Table(title=f"{runs} runs of 3000 rounds, changes after 1000 and 2000")
    for heading in (
        "policy", "detected", "mean delay", "median", "false per 1000", "optimal", "regret",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for row in summarise(experiment, records):
        mine = [record for record in records if record["policy"] == row.policy]
        delays = [d for r in mine for d in detection(r, experiment.horizon).delays]
        table.add_row(
            row.policy,
            f"{100 * row.detected:.1f} %",
            f"{row.delay:.1f}",
            f"{np.median(delays):.0f}" if delays else "",
            f"{row.false_alarms / 3:.3f}",
            f"{100 * row.optimal_share.value:.1f} %",
            f"{row.regret.value:.0f}",
        )
    return table


def main_evidence() -> None:
    """Change detection at a stated rate of false alarms in whole runs.

    `python benchmarks/change_detection.py evidence [stationary|changing ...] [--runs 200]
    [--jobs 2]`, all topics without a name. `stationary` and `changing` play the policy
    `posterior-cd` in the paper's ensemble with 10 nodes; false alarms are asked for at 0.1 per 1000
    rounds of the whole system.
    """
    parser = argparse.ArgumentParser(
        description=main_evidence.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("topics", nargs="*", default=[])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    topics = given.topics or ["stationary", "changing"]
    console = Console(width=110)
    if "stationary" in topics:
        console.print(stationary(given.runs, given.jobs, given.seed))
    if "changing" in topics:
        console.print(changing(min(given.runs, 100), given.jobs, given.seed))


MIXED = "one distribution per node"
DISTRIBUTIONS: dict[str, str | list[str]] = {name: name for name in NOISE_DISTRIBUTIONS} | {
    MIXED: list(NOISE_DISTRIBUTIONS)
}
STATIONARY, CHANGING = "stationary", "changing"
FloatArray = npt.NDArray[np.float64]


class SideBySide(Detector):
    """Counts the alarms of several detectors and passes none on."""

    needs = (PREDICTION,)

    def __init__(self, detectors: dict[str, ChangeEvidence]) -> None:
        super().__init__(next(iter(detectors.values())).n_nodes)
        self.detectors = detectors
        self.alarms = dict.fromkeys(detectors, 0)

    def watch(
        self, round_: int, intervention: npt.NDArray[np.uint8], values: FloatArray, view: View
    ) -> list[Alarm]:
        for name, detector in self.detectors.items():
            for alarm in detector.watch(round_, intervention, values, view):
                self.alarms[name] += 1
                detector.forget(alarm.regime, alarm.node)
        return []

    def forget(self, regime: int, node: int) -> None:
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        raise NotImplementedError


def false_alarms(distribution: str, n_nodes: int, run: int, kinds: list[str]) -> dict[str, int]:
    """Of every detector in 1000 rounds."""
    nobody = (Contestant("posterior"),)
    world = Experiment(
        n_nodes=n_nodes, noise=DISTRIBUTIONS[distribution], contestants=nobody
    ).world(run)
    watching = SideBySide(
        {
            f"{kind}, {rate}": ChangeEvidence(
                n_nodes, noise=kind, false_alarms_per_1000_rounds=rate
            )
            for kind in kinds
            for rate in (0.1, 1.0)
        }
    )
    policy = PosteriorPolicy(n_nodes, noise_scale="estimate", detector=watching)
    simulate(policy, world, horizon=1000, seed=run)
    return watching.alarms


def stationary_noise(distribution: str, given: argparse.Namespace) -> Iterable[list[str]]:
    found = Parallel(n_jobs=given.jobs)(
        delayed(false_alarms)(distribution, given.nodes, run, given.kinds)
        for run in range(given.first, given.first + given.runs)
    )
    for name in found[0]:
        counts = np.array([alarms[name] for alarms in found])
        error = counts.std(ddof=1) / len(counts) ** 0.5
        yield [distribution, name, f"{counts.mean():.3f} +- {error:.3f}"]


def changing_noise(distribution: str, given: argparse.Namespace) -> Iterable[list[str]]:
    experiment = Experiment(
        n_nodes=given.nodes,
        horizon=3 * given.every,
        changes=(given.every, 2 * given.every),
        knows_noise_mean=False,
        noise=DISTRIBUTIONS[distribution],
        contestants=tuple(
            Contestant(
                "posterior-cd",
                f"{kind}, 0.1",
                {"noise": kind, "noise_scale": "estimate", "typing_errors": given.typing_errors},
            )
            for kind in given.kinds
        ),
    )
    for contestant in experiment.contestants:
        records: list[dict[str, Any]] = Parallel(n_jobs=given.jobs)(
            delayed(run_unit)(experiment, contestant, run)
            for run in range(given.first, given.first + given.runs)
        )
        yield [distribution, contestant.name, *measured(experiment, records)]


def measured(experiment: Experiment, records: list[dict[str, Any]]) -> list[str]:
    found = [detection(record, experiment.horizon) for record in records]
    per_run = np.array([f.false_alarms for f in found]) * 1000.0 / experiment.horizon
    error = per_run.std(ddof=1) / len(per_run) ** 0.5
    row = [f"{per_run.mean():.3f} +- {error:.3f}"]
    delays = [d for f in found for d in f.delays]
    played = sum(f.played for f in found)
    row += [
        f"{100 * len(delays) / played:.1f} % of {played}",
        f"{np.mean(delays):.1f}",
        f"{np.median(delays):.0f}",
    ]
    regret = np.array([record["regret"] for record in records])
    return [*row, f"{regret.mean():.0f} +- {regret.std(ddof=1) / len(regret) ** 0.5:.0f}"]


def main_noise() -> None:
    """Does `posterior-cd` keep its rate of false alarms whatever the noise, and see changes?

    `python benchmarks/change_detection.py noise [stationary|changing ...] [--nodes 10] [--runs 60]
    [--jobs 2]`, all topics without a name. Policies have the settings of a new study: noise means
    and units unknown. Distributions keep mean and variance; "one distribution per node" takes them
    in turn. Where nothing changes, detectors watch the same rounds side by side: each forgets what
    it alarms of, the policy is not told.
    """
    parser = argparse.ArgumentParser(
        description=main_noise.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("topics", nargs="*", default=[])
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1000, help="rounds between changes")
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--distributions", nargs="+", default=list(DISTRIBUTIONS))
    parser.add_argument("--kinds", nargs="+", default=["gaussian", "any"])
    parser.add_argument("--typing-errors", default="left out")
    given = parser.parse_args()
    console = Console(width=130)
    for topic in given.topics or (STATIONARY, CHANGING):
        headings = ["distribution", "noise=, asked", "false per 1000"]
        if topic == CHANGING:
            headings += ["detected", "mean delay", "median", "regret"]
        table = Table(title=f"{topic}, {given.nodes} nodes, {given.runs} runs")
        for heading in headings:
            table.add_column(heading, justify="right")
        for distribution in given.distributions:
            for row in (stationary_noise if topic == STATIONARY else changing_noise)(
                distribution, given
            ):
                print(*row, sep=" | ", flush=True)
                table.add_row(*row)
        console.print(table)


def cauchy(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.standard_cauchy(shape)


def contaminated(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return np.where(rng.random(shape) < 0.05, 10.0, 1.0) * rng.standard_normal(shape)


N_SCORED = 6
SCORE_DISTRIBUTIONS: dict[str, Noise] = {
    **{name: name for name in NOISE_DISTRIBUTIONS},
    "cauchy": cauchy,
    "contaminated": contaminated,
    "5 gaussian, 1 cauchy": ["gaussian"] * 5 + [cauchy],
    "5 uniform, 1 student-t": ["uniform"] * 5 + ["student-t"],
    "3 gaussian, 3 exponential": ["gaussian", "exponential"] * 3,
}
RATES = (0.1, 1.0)
SCORED_CHANGES = (("shift", 2.0), ("shift", 4.0), ("spread", 3.0), ("spread", 8.0))


def rounds_with_alarms(
    detector: ChangeEvidence, scores: FloatArray, rng: np.random.Generator
) -> Iterable[tuple[int, Alarm]]:
    """Of scores (rounds, N) that nothing was estimated for, and unrelated predictors."""
    n = scores.shape[1]
    regimes, predictors = np.zeros(n, dtype=np.uint8), np.tri(n, k=-1, dtype=bool)
    for t, row in enumerate(scores, start=1):
        prediction = Prediction(row, np.ones(n), predictors)
        for alarm in detector.observe(t, regimes, prediction, np.asarray(rng.standard_normal(n))):
            detector.forget(alarm.regime, alarm.node)
            yield t, alarm


def scores_without_change(given: argparse.Namespace) -> Table:
    made = table(
        f"{given.runs} runs of {given.rounds} exchangeable scores of {N_SCORED} mechanisms",
        "distribution", "asked per 1000 rounds", *(f"noise={kind}" for kind in given.kinds),
    )  # fmt: skip
    for distribution in given.distributions or SCORE_DISTRIBUTIONS:
        noise = noise_distribution(SCORE_DISTRIBUTIONS[distribution])
        for rate in RATES:
            cells = []
            for kind in given.kinds:
                counts = []
                for run in range(given.first, given.first + given.runs):
                    rng = stream(run, "scores")
                    detector = ChangeEvidence(
                        N_SCORED, noise=kind, false_alarms_per_1000_rounds=rate
                    )
                    scores = noise(rng, (given.rounds, N_SCORED))
                    counts.append(len(list(rounds_with_alarms(detector, scores, rng))))
                cells.append(mean_and_error(np.array(counts) * 1000.0 / given.rounds, 3))
            made.add_row(distribution, f"{rate}", *cells)
            print(distribution, rate, *cells, sep=" | ", flush=True)
    return made


def scores_with_change(given: argparse.Namespace) -> Table:
    made = table(
        f"rounds to an alarm within 300, asked for 0.1 per 1000, {given.runs} runs (missed)",
        "distribution", "rounds before", "change", *(f"noise={kind}" for kind in given.kinds),
    )  # fmt: skip
    node = N_SCORED // 2
    for distribution in given.distributions or ["gaussian"]:
        noise = noise_distribution(SCORE_DISTRIBUTIONS[distribution])
        for before in (40, 150, 400):
            for change, size in SCORED_CHANGES:
                cells = []
                for kind in given.kinds:
                    delays = []
                    for run in range(given.first, given.first + given.runs):
                        rng = stream(run, "scores")
                        scores = noise(rng, (before + 300, N_SCORED))
                        if change == "shift":
                            scores[before:, node] += size
                        else:
                            scores[before:, node] *= size
                        alarms = rounds_with_alarms(
                            ChangeEvidence(N_SCORED, noise=kind), scores, rng
                        )
                        own = (t - before for t, a in alarms if a.node == node and t > before)
                        delays.append(next(own, 0))
                    found = np.array([delay for delay in delays if delay])
                    cells.append(f"{mean_and_error(found, 1)} ({given.runs - len(found)})")
                made.add_row(distribution, str(before), f"{change} {size:g}", *cells)
                print(distribution, before, change, size, *cells, sep=" | ", flush=True)
    return made


def mean_and_error(found: npt.NDArray[Any], digits: int) -> str:
    error = found.std(ddof=1) / len(found) ** 0.5
    return f"{found.mean():.{digits}f} +- {error:.{digits}f}"


def known_order(experiment: Experiment, kind: str, run: int) -> dict[str, Any]:
    """A record of a run whose policy knows order and best intervention, and learns the weights.

    200 random rounds, then the best intervention, or a random one in every tenth round. After an
    alarm come four random interventions and their opposites, then the best one as of then.
    """
    world = experiment.world(run)
    n, rng = world.n_nodes, stream(run, "known order")
    policy_rng = stream(run, "known order, policy")
    place = np.argsort(world.systems[0].order)
    predictors = place[None, :] < place[:, None]
    moments, unknown = Moments(n), np.full((2, n), np.nan)
    detector = ChangeEvidence(n, noise=kind)
    played, told, alarms = [], [], []
    probes: list[npt.NDArray[np.uint8]] = []
    best = world.best_intervention(0)
    for t in range(1, experiment.horizon + 1):
        a = policy_rng.integers(0, 2, n).astype(np.uint8)
        if probes:
            a = probes.pop()
        elif t > 200 and t % 10:
            a = best
        x = world.play(t, a, rng)
        parts = predictive_scores(
            moments.gram, predictors, np.ones(n, dtype=bool), a, x, unknown, unknown
        )
        found = detector.observe(t, a, Prediction(*parts, predictors), x)
        moments.add(x, a)
        played.append(a)
        told.append(x)
        for alarm in found:
            alarms.append((t, alarm.regime, alarm.node))
            m = alarm.regime, alarm.node
            detector.forget(*m)
            kept = np.array(played[alarm.change_point :])[:, alarm.node] == alarm.regime
            rows = np.array(told[alarm.change_point :])[kept]
            moments.gram[m] = gram_matrix(np.ascontiguousarray(rows.T))
            half = policy_rng.integers(0, 2, (4, n)).astype(np.uint8)
            probes = [*half, *(1 - half)]
            best = world.best_intervention(world.number_at(t))
    ends = [*world.change_points, experiment.horizon][1:]
    after = [
        [sum(int(a[i]) == r for a in played[change.after : end]) for r, i in change.mechanisms]
        for change, end in zip(world.changes, ends, strict=True)
    ]
    changes = [
        {"after": change.after, "mechanisms": [list(m) for m in change.mechanisms]}
        for change in world.changes
    ]
    return {"changes": changes, "alarms": alarms, "played_after": after, "regret": 0.0}


def systems_of_known_order(given: argparse.Namespace) -> Table:
    made = table(
        f"order known, {given.runs} systems of {N_NODES} nodes, 3000 rounds, asked for 0.1",
        "noise", "changes", "noise=", "false per 1000", "detected", "mean delay", "median",
    )  # fmt: skip
    for distribution in given.distributions or DISTRIBUTIONS:
        for changes in ((1000, 2000), ()):
            experiment = Experiment(
                n_nodes=N_NODES,
                horizon=3000,
                changes=changes,
                noise=(DISTRIBUTIONS | SCORE_DISTRIBUTIONS)[distribution],
                contestants=(Contestant("posterior"),),
            )
            for kind in given.kinds:
                records = Parallel(n_jobs=given.jobs)(
                    delayed(known_order)(experiment, kind, run)
                    for run in range(given.first, given.first + given.runs)
                )
                row = [distribution, "yes" if changes else "no", kind]
                if changes:
                    row += measured(experiment, records)[:-1]
                else:
                    counts = np.array([len(record["alarms"]) for record in records])
                    row += [mean_and_error(counts * 1000.0 / experiment.horizon, 3)]
                print(*row, sep=" | ", flush=True)
                made.add_row(*row)
    return made


def main_scores() -> None:
    """The guarantee, and what it costs, without a policy.

    `python benchmarks/change_detection.py scores [alarms|delays|systems ...] [--runs 40]`, all
    topics without a name. `alarms` counts false alarms of exchangeable scores of many
    distributions, `delays` the rounds to the alarm of one mechanism that changes after so many
    rounds. `systems` is the paper's ensemble with its changes and without, where only the order of
    the nodes is known: weights are estimated.
    """
    parser = argparse.ArgumentParser(
        description=main_scores.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("topics", nargs="*", default=[])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--distributions", nargs="+", default=None)
    parser.add_argument("--kinds", nargs="+", default=["any"])
    given = parser.parse_args()
    topics = {
        "alarms": scores_without_change,
        "delays": scores_with_change,
        "systems": systems_of_known_order,
    }
    for topic in given.topics or topics:
        Console(width=120).print(topics[topic](given))


START, AFTER, LAST = 300, 300, 50
FIRST_SEED = 40_000


def drifting_world(sem: LinearSEM, over: int, rng: np.random.Generator) -> World:
    """In steps after rounds START, START + 1, ...; the same ends for every length."""
    last = switching_world(sem, [START], rng).systems[-1]
    systems = [sem]
    for step in range(1, over):
        part = step / over
        weights = sem.weights + part * (last.weights - sem.weights)
        systems.append(
            LinearSEM(
                weights=weights,
                noise_mean=sem.noise_mean,
                noise_std=sem.noise_std,
                nodes=sem.nodes,
                reward=sem.reward,
            )
        )
    return World([*systems, last], list(range(START, START + over)))


def played(changes: bool, over: int, n_nodes: int, seed: int) -> dict[str, Any]:
    sem = random_sem(n_nodes, seed=seed)
    world = drifting_world(sem, over, stream(seed, "drift"))
    name, settings = chosen_policy(None, None, changes=changes)
    policy = make_policy(name, n_nodes=n_nodes, **settings)
    end = START + over + AFTER
    trace = simulate(policy, world, horizon=end, seed=seed)
    changed = set(World([sem, world.systems[-1]], [START]).changes[0].mechanisms)
    since = trace.interventions[START:]
    counted = {(r, i) for r, i in changed if (since[:, i] == r).any()}
    found: dict[tuple[int, int], int] = {}
    false = 0
    for alarm in policy.alarms:
        named = set(alarm.mechanisms(policy.regimes))
        if alarm.round > START and named & changed:
            for mechanism in named & counted:
                found.setdefault(mechanism, alarm.round - START)
        else:
            false += 1
    last = world.systems[-1]
    best = float(last.expected_reward(last.best_intervention()[None])[0])
    regret = trace.regret[-1] - trace.regret[START + over - 1]
    return {
        "counted": len(counted),
        "delays": list(found.values()),
        "false": false,
        "regret": float(regret / (best - last.average_reward())),
        "right": bool(trace.optimal[-LAST:].mean() > 0.5),
    }


def main_drift() -> None:
    """Is a mechanism that changes slowly noticed, and what does it cost?

    `python benchmarks/change_detection.py drift [--nodes 6] [--runs 40] [--over 1 30 100 300]
    [--jobs 1]`. After round 300 the weights of three mechanisms move in equal steps, over so many
    rounds, to those of `switching_world`; the system then stays. `posterior-cd` has the settings of
    a new study with changes=True, `posterior` those of one without. An alarm of a changed mechanism
    from the first step to 300 rounds after the last one counts. Mechanisms that no round of that
    time played are not counted. Regret is of the 300 rounds after the last step, in units of best
    minus average reward there; the last column is the fraction of runs that play a best
    intervention in most of the last 50 rounds.
    """
    parser = argparse.ArgumentParser(
        description=main_drift.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=6)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--over", type=int, nargs="+", default=[1, 30, 100, 300])
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    made = table(
        f"N = {given.nodes}, {given.runs} systems", "over", "changes=", "noticed", "median delay",
        "other alarms per run", "regret after it", "median", "right at the end",
    )  # fmt: skip
    for over in given.over:
        for changes in (True, False):
            runs = Parallel(n_jobs=given.jobs)(
                delayed(played)(changes, over, given.nodes, FIRST_SEED + k)
                for k in range(given.runs)
            )
            delays = [delay for run in runs for delay in run["delays"]]
            regret = np.array([run["regret"] for run in runs])
            error = regret.std(ddof=1) / len(regret) ** 0.5
            made.add_row(
                str(over),
                str(changes),
                f"{100 * len(delays) / sum(run['counted'] for run in runs):.0f} %",
                f"{np.median(delays):.0f}" if delays else "",
                f"{np.mean([run['false'] for run in runs]):.2f}",
                f"{regret.mean():.1f} +- {error:.1f}",
                f"{np.median(regret):.1f}",
                f"{100 * np.mean([run['right'] for run in runs]):.0f} %",
            )
    Console(width=130).print(made)


# -- factors that shift nodes ----------------------------------------------------------------------


def shifted_study(told: bool, jump: float, given: argparse.Namespace, seed: int) -> dict[str, Any]:
    """A study of factors; after some rounds a cause of the reward moves by `jump` deviations."""
    rng = stream(seed, "factors")
    levels = {"catalyst": ["A", "B", "C"], "load": [1, 2, 3], "pump": ["normal", "high"]}
    sem, named = random_shifted_sem(
        given.nodes, {f: {"levels": v} for f, v in levels.items()}, seed=rng
    )
    n, nodes = given.nodes, sem.nodes[: given.nodes]
    acts = np.abs(sem.weights[0][n:, :n]) > 0
    factors: dict[str, Any] = {}
    for name, values in levels.items():
        own = [
            c for c, column in enumerate(named.columns) if column.factors == (named.factor(name),)
        ]
        targets = [nodes[i] for i in np.flatnonzero(acts[own].any(axis=0))]
        factors[name] = {"levels": values} | ({"acts_on": targets} if told else {})
    moved = int(rng.choice(sorted({*np.flatnonzero(sem.weights[0][:n, sem.reward]), sem.reward})))
    later = sem.noise_mean.copy()
    later[..., moved] += jump * sem.mechanism_std[0, moved]
    after = LinearSEM(
        weights=sem.weights, noise_mean=later, noise_std=sem.noise_std, nodes=sem.nodes,
        reward=sem.reward, order=sem.order, regimes=sem.regimes,
    )  # fmt: skip
    study = Study.create(
        None, nodes=nodes, reward=nodes[sem.reward], factors=factors, changes=True, seed=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CausalArmsWarning)  # of the change
        for round_ in range(given.before + given.after):
            trial = study.ask()
            row = np.array([trial.intervention[node] for node in sem.nodes], dtype=np.uint8)
            system = sem if round_ < given.before else after
            study.tell(
                trial, system.sample(row[None], stream(seed, "noise", round_))[0, :n].tolist()
            )
        best = study.best()
        alarms = study.alarms()
    row = np.array([best.intervention[node] for node in sem.nodes], dtype=np.uint8)
    truth = float(after.expected_reward(row[None])[0])
    first = [a["trial"] for a in alarms if a["trial"] >= given.before and a["node"] == nodes[moved]]
    return {
        "false": sum(a["trial"] < given.before for a in alarms),
        "found": any(a["trial"] >= given.before for a in alarms),
        "delay": first[0] - given.before + 1 if first else np.nan,
        "covered": best.low <= truth <= best.high,
    }


def main_factors() -> None:
    """Are changes found next to factors that shift nodes, told and not told what they act on?

    `python benchmarks/change_detection.py factors [--nodes 4] [--runs 40] [--before 100]
    [--after 60] [--jumps 0 4 10] [--first 6000] [--jobs 1]`. Studies with changes=True and three
    factors; after so many rounds the reward, or a cause of it, moves by so many standard deviations
    of its noise. "Found": any alarm afterwards; "by name": an alarm of the node that moved, and its
    mean delay in rounds. "False": alarms before it per 1000 rounds; with a jump of 0 all of them.
    "Covered": by the interval of `best` in the end.
    """
    parser = argparse.ArgumentParser(
        description=main_factors.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("nodes", 4), ("runs", 40), ("before", 100), ("after", 60)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--jumps", type=float, nargs="+", default=[0, 4, 10])
    parser.add_argument("--first", type=int, default=6000, help="the first system's seed")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    made = table(
        f"{given.nodes} nodes, {given.runs} systems, {given.before} + {given.after} rounds",
        "told", "jump", "found", "by name", "delay", "false per 1000", "covered",
    )  # fmt: skip
    for told in (False, True):
        for jump in given.jumps:
            runs = Parallel(n_jobs=given.jobs)(
                delayed(shifted_study)(told, jump, given, given.first + k)
                for k in range(given.runs)
            )
            delays = np.array([run["delay"] for run in runs])
            rate = 1000 * np.mean([run["false"] for run in runs]) / given.before
            made.add_row(
                "targets" if told else "nothing",
                f"{jump:g}",
                f"{100 * np.mean([run['found'] for run in runs]):.0f} %",
                f"{100 * np.isfinite(delays).mean():.0f} %",
                f"{np.nanmean(delays):.1f}" if np.isfinite(delays).any() else "",
                f"{rate:.2f}",
                f"{100 * np.mean([run['covered'] for run in runs]):.0f} %",
            )
    Console(width=100).print(made)


def main() -> None:
    run_part(
        __doc__,
        {
            "scores": main_scores,
            "evidence": main_evidence,
            "noise": main_noise,
            "drift": main_drift,
            "factors": main_factors,
        },
    )


if __name__ == "__main__":
    main()
