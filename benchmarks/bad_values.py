"""Values that are wrong or missing: outliers, typing errors, gaps; trials that fail.

`python benchmarks/bad_values.py outliers|far|missing|failing [options]`; each has --help.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from rich.console import Console

from causalarms import LinearSEM, Study, make_policy, random_sem
from causalarms.errors import TooEarlyError
from causalarms.models.belief import summary
from causalarms.policies.base import Policy
from causalarms.policies.posterior import PosteriorPolicy
from causalarms.rng import stream
from causalarms.search.worth import Worth
from causalarms.sem.regimes import existing
from causalarms.sem.rewards import all_interventions
from causalarms.study import far_values
from causalarms.study.far_values import WINDOW, far_from
from shared import ratio_interval, run_part, table

KEPT, LEFT_OUT = "kept", "left out"
FloatArray = npt.NDArray[np.float64]


class Error(NamedTuple):
    where: str  # "node" or "reward"
    round: int
    value: float


class Run(NamedTuple):
    regret: float
    claimed: float  # probability that the recommended intervention is the best
    true: bool
    left_out: int
    found: bool  # the error is among them


def play(n: int, seed: int, rounds: int, typing_errors: str, error: Error | None) -> Run:
    sem = random_sem(n, seed=stream(seed, "system"))
    settings: dict[str, Any] = {"noise_scale": "estimate", "typing_errors": typing_errors}
    policy = make_policy("posterior", n_nodes=n, reward=sem.reward, **settings)
    noise, regret = stream(seed, "noise"), 0.0
    best = float(sem.expected_reward(sem.best_intervention()[None])[0])
    others = [node for node in range(n) if node != sem.reward]
    node = int(stream(seed, "error").choice(others))
    for t in range(1, rounds + 1):
        a = policy.ask(stream(seed, "policy", t))
        regret += best - float(sem.expected_reward(a[None])[0])
        x = sem.sample(a[None], noise)[0]
        if error is not None and t == error.round:
            x[node if error.where == "node" else sem.reward] = error.value
        policy.tell(a, x)
    advice = policy.recommend(stream(seed, "advice"))  # type: ignore[attr-defined]
    loss = best - float(sem.expected_reward(advice.intervention[None])[0])
    out = [round_ for round_, *_ in policy.left_out]
    found = error is not None and error.round in out
    return Run(regret, advice.probability, loss < 1e-9, len(out), found)


def row(name: str, runs: list[Run], plain: list[Run]) -> str:
    mine, other = (np.array([run.regret for run in each]) for each in (runs, plain))
    picks = np.random.default_rng(0).integers(len(mine), size=(4000, len(mine)))
    low, high = np.quantile(mine[picks].mean(axis=1) / other[picks].mean(axis=1), [0.025, 0.975])
    return (
        f"{name:34s} ratio {mine.mean() / other.mean():5.2f} ({low:.2f} - {high:.2f})"
        f"  median of ratios {np.median(mine / other):5.2f}"
        f"  claimed {np.mean([run.claimed for run in runs]):.2f}"
        f"  true {np.mean([run.true for run in runs]):.2f}"
        f"  left out {np.mean([run.left_out for run in runs]):.2f}"
        f"  found {np.mean([run.found for run in runs]):.2f}"
    )


def main_outliers() -> None:
    """What one typing error costs: regret and claims of studies with and without it, paired.

    `python benchmarks/bad_values.py outliers [--nodes 6] [--systems 30] [--rounds 400] [--first
    0]`. Policies have the settings of a new study. One value is replaced, in a node before the
    reward or in the reward, in round 5, 20 or 150. Regret is next to the same run without the
    error.
    """
    parser = argparse.ArgumentParser(
        description=main_outliers.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=6)
    parser.add_argument("--systems", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--values", type=float, nargs="+", default=[1e3, 1e15])
    parser.add_argument("--where", nargs="+", default=["node", "reward"])
    parser.add_argument("--kinds", nargs="+", default=[KEPT, LEFT_OUT])
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.systems)

    def all_runs(kind: str, error: Error | None) -> list[Run]:
        return [play(given.nodes, seed, given.rounds, kind, error) for seed in seeds]

    print(f"{given.nodes} nodes, {given.systems} systems, {given.rounds} rounds")
    plain = all_runs(KEPT, None)
    print(row("no error, kept", plain, plain), flush=True)
    print(row("no error, left out", all_runs(LEFT_OUT, None), plain), flush=True)
    for value in given.values:
        for where in given.where:
            for round_ in (5, 20, 150):
                for kind in given.kinds:
                    runs = all_runs(kind, Error(where, round_, value))
                    print(row(f"{value:g} in {where}, {round_}, {kind}", runs, plain), flush=True)


ROUNDS = 400


def doubled(text: str) -> str:
    """The first digit twice."""
    place = next(i for i, sign in enumerate(text) if sign.isdigit())
    return text[: place + 1] + text[place:]


ERRORS: dict[str, Callable[[float], float]] = {
    "x 10": lambda value: value * 10,
    "x 100": lambda value: value * 100,
    "/ 10": lambda value: value / 10,
    "/ 100": lambda value: value / 100,
    "digit doubled": lambda value: float(doubled(f"{value:.3f}")),
    "sign lost": lambda value: -value,
}


def values_of(kind: str, n_nodes: int, seed: int) -> FloatArray:
    """(ROUNDS, N) of one system."""
    sem = random_sem(n_nodes, seed=seed)
    if kind == "csl-ucb plays":
        return played(sem, seed)
    rng = stream(seed, "far values")
    arms = rng.integers(0, 2, (ROUNDS, n_nodes), dtype=np.uint8)
    noise = rng.standard_normal((ROUNDS, n_nodes))
    if kind == "Student t, 3 degrees":
        noise = rng.standard_t(3, (ROUNDS, n_nodes))
    mean = np.broadcast_to(sem.noise_mean, (ROUNDS, n_nodes)).copy()
    if kind == "mean changes":
        mean[ROUNDS // 2 :] += 10.0
    values = np.zeros((ROUNDS, n_nodes))
    for t in range(ROUNDS):
        chosen = np.where(arms[t] == 1, sem.weights[1], sem.weights[0])
        values[t] = (mean[t] + noise[t]) @ np.linalg.inv(np.eye(n_nodes) - chosen)
    return values


def played(sem: LinearSEM, seed: int) -> FloatArray:
    policy = make_policy(
        "csl-ucb", n_nodes=sem.n_nodes, reward=sem.reward, horizon=ROUNDS, noise_mean=sem.noise_mean
    )
    rows = []
    for t in range(ROUNDS):
        a = policy.ask(stream(seed, "policy", t))
        rows.append(sem.sample(a[None], stream(seed, "noise", t))[0])
        policy.tell(a, rows[-1])
    return np.array(rows)


def earlier(values: FloatArray) -> FloatArray:
    """What a study looks at when a value is told."""
    last = max(len(values) - WINDOW, 0)
    return np.concatenate([values[: min(WINDOW, last)], values[last:]])


def warned(values: FloatArray) -> int:
    """Honest values called far."""
    return sum(
        far_from(values[t, i], earlier(values[:t, i])) is not None
        for i in range(values.shape[1])
        for t in range(far_values.MIN_OTHERS, len(values))
    )


def found(values: FloatArray, error: Callable[[float], float]) -> tuple[int, int]:
    """Typing errors called far, and how many were made: one in ten of the values."""
    hits = tries = 0
    for i in range(values.shape[1]):
        for t in range(20 + i % 10, len(values), 10):
            wrong = error(float(values[t, i]))
            tries += 1
            hits += far_from(wrong, earlier(values[:t, i])) is not None
    return hits, tries


def main_far() -> None:
    """How often a value is called far: of honest ones, and of typing errors.

    python benchmarks/bad_values.py far
    """
    parser = argparse.ArgumentParser(
        description=main_far.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=10)
    parser.add_argument("--factor", type=float, default=far_values.FAR_SPREADS)
    options = parser.parse_args()
    far_values.FAR_SPREADS = options.factor
    print(f"factor {options.factor:g}: warnings per 1000 values, % of errors found", *ERRORS)
    for kind in ("Gaussian", "Student t, 3 degrees", "mean changes", "csl-ucb plays"):
        for n_nodes in (5, 10):
            systems = [values_of(kind, n_nodes, seed) for seed in range(options.systems)]
            false = 1000 * sum(map(warned, systems)) / sum(s.size for s in systems)
            fractions = []
            for error in ERRORS.values():
                pairs = [found(s, error) for s in systems]
                fractions.append(100 * sum(h for h, _ in pairs) / sum(n for _, n in pairs))
            print(
                f"{kind:22s} N={n_nodes:2d} {false:6.2f}  ",
                "  ".join(f"{fraction:5.1f}" for fraction in fractions),
                flush=True,
            )


N_NODES, N_SWITCHES, DEGREE = 8, 5, 2.5
FRACTIONS = (0.0, 0.05, 0.2, 0.5)
LEARN, DROP = "learn", "drop"
LOOKS = (30, 100)
PREDICTIONS = 30
LONG_RUN = 30  # times eight completions of two turns each
MOST_ROUNDS = 10**6
LEAST_PROBABILITY = 1e-6  # of an edge or of none, in its log score
Rows = npt.NDArray[np.uint8]


def system(seed: int) -> tuple[LinearSEM, Rows, float]:
    """A system in which settings matter, all its settings, and the best minus the average."""
    for attempt in range(100):
        rng = stream(seed, "missing values", attempt)
        regimes = np.ones(N_NODES, dtype=np.int64)
        regimes[rng.choice(N_NODES, N_SWITCHES, replace=False)] = 2
        sem = random_sem(N_NODES, seed=rng, regimes=regimes, expected_degree=DEGREE)
        rows = all_interventions(N_NODES, regimes)
        rewards = sem.expected_reward(rows)
        if np.ptp(rewards) > 0.1:
            return sem, rows, float(rewards.max() - rewards.mean())
    raise RuntimeError(f"no system of seed {seed} can be improved")


def covered(policy: Policy, sem: LinearSEM, rows: Rows, seed: int) -> dict[str, list[bool]]:
    """Whether the truth lies in what `predict` and `best` would show."""
    belief = policy.belief()
    if belief is None:
        return {"predict": [], "best": []}
    some = stream(seed, "predicted").choice(len(rows), PREDICTIONS, replace=False)
    shown = summary(belief.rewards(rows[some], policy.reward))
    truth = sem.expected_reward(rows[some])
    best = belief.best(rows, policy.reward, Worth(np.zeros(len(rows))))
    reward = float(sem.expected_reward(rows[best.row][None])[0])
    return {
        "predict": ((shown.low <= truth) & (truth <= shown.high)).tolist(),
        "best": [bool(best.reward.low <= reward <= best.reward.high)],
    }


def edge_log_score(edge: FloatArray, sem: LinearSEM) -> float:
    """Average of minus the log probability of what is so, edge or no edge; a coin has 0.69."""
    right = np.where(sem.adjacency, edge, 1.0 - edge)
    pairs = existing(sem.regimes)[:, None, :] & ~np.eye(sem.n_nodes, dtype=bool)
    return float(-np.log(np.maximum(right[pairs], LEAST_PROBABILITY)).mean())


def after_long_run(policy: PosteriorPolicy) -> FloatArray:
    """Edge probabilities if the same rounds are completed many times more: nearly exact."""
    other, found = copy.deepcopy(policy), []
    for number in range(LONG_RUN):
        # another number of rounds told means other random numbers
        other._system._complete_rounds((number + 2) * MOST_ROUNDS)
        found.append(other.edge_probability)
    return np.asarray(np.mean(found, axis=0))


def run(
    seed: int, fraction: float, gaps: str, rounds: int, settings: dict[str, Any]
) -> dict[str, Any]:
    sem, rows, scale = system(seed)
    policy = make_policy(
        "posterior", n_nodes=N_NODES, reward=sem.reward, regimes=sem.regimes,
        **{"noise_scale": "estimate", "decide": "auto", "gaps": gaps, **settings},
    )  # fmt: skip
    assert isinstance(policy, PosteriorPolicy)
    noise, holes = stream(seed, "noise"), stream(seed, "holes")
    top = float(sem.expected_reward(rows).max())
    lost = np.zeros(rounds)
    found: dict[str, list[bool]] = {"predict": [], "best": []}
    scores: list[float] = []
    exact: list[float] = []
    began = perf_counter()
    for t in range(rounds):
        a = policy.suggest(stream(seed, "policy", t)).intervention
        x = sem.sample(a[None], noise)[0]
        x[holes.random(N_NODES) < fraction] = np.nan
        lost[t] = (top - sem.expected_reward(a[None])[0]) / scale
        if gaps == LEARN or not np.isnan(x).any():
            policy.tell(a, x)
        if t + 1 in (*LOOKS, rounds):
            scores.append(edge_log_score(policy.edge_probability, sem))
            incomplete = fraction > 0 and gaps == LEARN
            exact.append(edge_log_score(after_long_run(policy), sem) if incomplete else scores[-1])
            for name, hits in covered(policy, sem, rows, seed).items():
                found[name] += hits
    return {
        "seed": seed, "fraction": fraction, "gaps": gaps, "regret": float(lost.sum()),
        "early": float(lost[: LOOKS[-1]].sum()), "seconds": perf_counter() - began,
        "edges": scores, "exact": exact,
        **{f"{name}_hits": int(sum(hits)) for name, hits in found.items()},
        **{f"{name}_tries": len(hits) for name, hits in found.items()},
    }  # fmt: skip


def main_missing() -> None:
    """What missing values cost: regret and coverage, with a fraction of all cells missing.

    `python benchmarks/bad_values.py missing [--runs 40] [--rounds 300] [--first 40000] [--jobs 1]`.
    Random systems of eight nodes with 2.5 neighbours each, five nodes with a switch, in the
    settings of a new study: nothing known, units estimated. "learn": rounds with gaps are learned
    from; "drop": they are left out, as all other policies do. Paired: the same systems, noise and
    missing cells. Regret is in units of the best minus the average reward of a round. Intervals are
    those that `predict` (of random settings) and `best` show, after 30, 100 and all rounds; 95 % of
    them should hold the truth. The log score of edges stands there next to that of a long chain of
    completions of the same rounds.
    """
    parser = argparse.ArgumentParser(
        description=main_missing.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--first", type=int, default=40_000, help="seed of the first system")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--settings", type=json.loads, default={}, help="of the policy, as JSON")
    parser.add_argument("--only", choices=(LEARN, DROP))
    parser.add_argument("--keep", type=Path, help="a file for one line of JSON per run")
    arguments = parser.parse_args()
    cases = [(fraction, gaps) for fraction in FRACTIONS for gaps in (LEARN, DROP)]
    cases = [c for c in cases if arguments.only in (None, c[1]) and (c[0] > 0 or c[1] == LEARN)]
    made = Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")(
        delayed(run)(arguments.first + k, *case, arguments.rounds, arguments.settings)
        for k in range(arguments.runs)
        for case in cases
    )
    results = []
    for result in made:
        results.append(result)
        if arguments.keep is not None:
            with arguments.keep.open("a") as file:
                file.write(json.dumps(result) + "\n")
    Console(width=140).print(shown(results))


def shown(results: list[dict[str, Any]]) -> Any:
    """The table, relative to complete data."""
    by_case: dict[tuple[float, str], dict[int, dict[str, Any]]] = {}
    for r in results:
        by_case.setdefault((r["fraction"], r["gaps"]), {})[r["seed"]] = r
    whole = by_case[0.0, LEARN]
    made = table(
        f"regret and coverage of the default of a study, {len(whole)} systems",
        "missing", "gaps", "regret", "to complete", "95 %", "predict covers", "best covers",
        "log score of edges", "if exact", "seconds",
    )  # fmt: skip
    for (fraction, gaps), runs in sorted(by_case.items()):
        seeds = sorted(set(runs) & set(whole))
        mine = np.array([runs[s]["regret"] for s in seeds])
        other = np.array([whole[s]["regret"] for s in seeds])
        low, high = ratio_interval(mine, other)
        cover = [
            sum(r[f"{name}_hits"] for r in runs.values())
            / max(sum(r[f"{name}_tries"] for r in runs.values()), 1)
            for name in ("predict", "best")
        ]
        made.add_row(
            f"{fraction:.0%}", gaps, f"{mine.mean():.1f}", f"{mine.mean() / other.mean():.2f}",
            f"{low:.2f}-{high:.2f}", f"{cover[0]:.1%}", f"{cover[1]:.1%}",
            *(
                " / ".join(f"{x:.2f}" for x in np.mean([r[what] for r in runs.values()], axis=0))
                for what in ("edges", "exact")
            ),
            f"{np.mean([r['seconds'] for r in runs.values()]):.1f}",
        )  # fmt: skip
    return made


# -- trials that fail ------------------------------------------------------------------------------

NONE, RANDOM, ABANDONED, LEVEL, OFTEN, PAIR = KINDS = (
    "none", "random", "abandoned", "level", "often", "pair"
)  # fmt: skip
FAILING_FRACTION = 0.1  # of trials, at random
OFTEN_FRACTION = 0.9  # of trials with the first switch on
LEAST_GAIN = 0.5  # of the best setting over the average one, in standard deviations of the noise


class Failing(NamedTuple):
    """One study; regrets are in units of the best minus the average reward of what works."""

    kind: str
    policy: str
    seed: int
    failed: int  # trials
    late: int  # of them in the second half
    regret: float  # of all settings that were asked
    best_fails: bool  # whether best() recommends what mostly fails
    best_loss: float


def play_failing(seed: int, kind: str, policy: str, nodes: int, trials: int) -> Failing:
    """A study at default settings, of a system whose reward has no switch."""
    rng, unit = stream(seed, "system"), 0.0
    while unit < LEAST_GAIN:  # else there would be nothing to find
        sem = random_sem(nodes, seed=rng)
        switches = [node for i, node in enumerate(sem.nodes) if i != sem.reward]
        rows = all_interventions(nodes)
        rows = rows[rows[:, sem.reward] == 0]
        with_first, with_second = (rows[:, sem.nodes.index(s)] == 1 for s in switches[:2])
        rewards = sem.expected_reward(rows)
        # the same systems for all kinds
        unit = float(rewards[~with_first].max() - rewards[~with_first].mean())
    names = dict(zip(switches, "abcdefghijkl", strict=False))
    failing = {LEVEL: with_first, OFTEN: with_first, PAIR: with_first & with_second}.get(kind)
    best_working = float(rewards.max() if failing is None else rewards[~failing].max())

    def mostly_fails(levels: Mapping[str, object]) -> bool:
        on = levels["a"] == "on" and (kind != PAIR or levels["b"] == "on")
        return on and kind in (LEVEL, OFTEN, PAIR)

    settings: dict[str, Any] = {} if policy == "default" else {"policy": policy}
    study = Study.create(
        None, nodes=sem.nodes, reward=sem.nodes[sem.reward], seed=seed,
        factors={name: {"acts_on": [node], "effect": "free"} for node, name in names.items()},
        **settings,
    )  # fmt: skip
    ends, regret, drawn = [], 0.0, stream(seed, "failures").random(trials)
    for number in range(trials):
        trial = study.ask()
        a = np.array([list(trial.intervention.values())], dtype=np.uint8)
        regret += float(best_working - sem.expected_reward(a)[0]) / unit
        rate = FAILING_FRACTION if kind in (RANDOM, ABANDONED) else 0.0
        if mostly_fails(trial.levels):
            rate = OFTEN_FRACTION if kind == OFTEN else 1.0
        fails = bool(drawn[number] < rate)
        ends.append(fails)
        if fails and kind == ABANDONED:
            study.abandon(trial)
        elif fails:
            study.fail(trial)
        else:
            study.tell(trial, sem.sample(a, stream(seed, "noise", number))[0])
    try:
        best = study.best()
    except TooEarlyError:
        return Failing(kind, policy, seed, sum(ends), sum(ends[trials // 2 :]), regret, False, 0.0)
    a = np.array([list(best.intervention.values())], dtype=np.uint8)
    loss = float(best_working - sem.expected_reward(a)[0]) / unit
    late = sum(ends[trials // 2 :])
    return Failing(kind, policy, seed, sum(ends), late, regret, mostly_fails(best.levels), loss)


def main_failing() -> None:
    """Trials that fail: how many, what is recommended, and what random failures cost.

    `python benchmarks/bad_values.py failing [--runs 40] [--trials 80] [--first 70000]`.
    Random systems, every node but the reward with a switch, in a study with default settings.
    "level": every trial with the first switch on fails; "often": nine in ten of them; "pair": every
    trial with the first two switches on. "random": one trial in ten fails, whatever was set;
    "abandoned": the same trials are abandoned, which costs their results and says nothing about
    their settings; "none": nothing fails. Paired: the same systems, noise and failures.
    """
    parser = argparse.ArgumentParser(
        description=main_failing.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--trials", type=int, default=80)
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--first", type=int, default=70_000, help="seed of the first system")
    parser.add_argument("--policy", default="default")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--keep", type=Path, help="a file for one line of JSON per run")
    given = parser.parse_args()
    found: dict[str, list[Failing]] = {kind: [] for kind in given.kinds.split(",")}
    for seed in range(given.first, given.first + given.runs):
        for kind, runs in found.items():
            runs.append(play_failing(seed, kind, given.policy, given.nodes, given.trials))
            if given.keep is not None:
                with given.keep.open("a") as file:
                    file.write(json.dumps(runs[-1]._asdict()) + "\n")
    made = table(
        f"{given.policy}, {given.runs} systems of {given.nodes} nodes, {given.trials} trials",
        "failures", "failed", "in the second half", "best() fails", "loss of best()", "regret",
        "to none", "95 %",
    )  # fmt: skip
    for kind, runs in found.items():
        mine = np.array([run.regret for run in runs])
        other = np.array([run.regret for run in found.get(NONE, runs)])
        low, high = ratio_interval(mine, other)
        comparable = kind in (RANDOM, ABANDONED)  # else the best setting is another
        made.add_row(
            kind, str(sum(run.failed for run in runs)), str(sum(run.late for run in runs)),
            str(sum(run.best_fails for run in runs)),
            f"{np.mean([run.best_loss for run in runs]):.3f}", f"{mine.mean():.1f}",
            f"{mine.mean() / other.mean():.2f}" if comparable else "",
            f"{low:.2f}-{high:.2f}" if comparable else "",
        )  # fmt: skip
    Console(width=140).print(made)


def main() -> None:
    run_part(
        __doc__,
        {
            "outliers": main_outliers,
            "far": main_far,
            "missing": main_missing,
            "failing": main_failing,
        },
    )


if __name__ == "__main__":
    main()
