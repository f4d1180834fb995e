"""Odd input for every policy and every learner: an answer or an error of this package, always.

`python benchmarks/fuzz.py scales|settings [options]`; each has --help.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing as mp
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from causalarms import CSL, DAGMA, GOLEM, GraphPosterior, LinearSEM, Study, make_policy, random_sem
from causalarms.errors import CausalArmsError
from causalarms.policies.registry import accepted_settings, policy_factory, policy_names
from shared import run_part

Case = TypeVar("Case")

ANSWER, CRASH, HANG = "answer", "crash", "hang"
FIRST_SECONDS = 300.0


class _Worker:
    def __init__(self, work: Callable[[Any], None]) -> None:
        context = mp.get_context("fork")
        self.here, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(work, there), daemon=True)
        self.process.start()
        there.close()

    def end(self) -> None:
        self.process.kill()
        self.process.join()


def _serve(work: Callable[[Any], None], pipe: Connection) -> None:
    warnings.simplefilter("ignore")
    while True:
        case = pipe.recv()
        try:
            work(case)
        except CausalArmsError as error:
            pipe.send((f"refused: {type(error).__name__}", str(error)))
        except Exception as error:
            pipe.send((f"{CRASH}: {type(error).__name__}", str(error)))
        else:
            pipe.send((ANSWER, ""))


def outcomes(
    work: Callable[[Case], None], cases: Iterable[Case], *, seconds: float
) -> Iterator[tuple[Case, str, str]]:
    """Case, what became of it, and the message; a case that takes longer than `seconds` hangs.

    The first case of a process may have to compile and has more time.
    """
    worker, limit = _Worker(work), FIRST_SECONDS
    for case in cases:
        worker.here.send(case)
        outcome, message = HANG, f"no answer within {limit:g} s"
        try:
            if worker.here.poll(limit):
                outcome, message = worker.here.recv()
        except EOFError:
            worker.process.join()
            outcome, message = CRASH, f"exit code {worker.process.exitcode}"
        if outcome in (CRASH, HANG):
            worker.end()
            worker, limit = _Worker(work), FIRST_SECONDS
        else:
            limit = seconds
        yield case, outcome, message
    worker.end()


Array = npt.NDArray[np.float64]

N_NODES, N_ROUNDS, HORIZON = 4, 90, 200
SECONDS = 15.0  # compiling included
EXPONENTS = (
    -320, -300, -250, -200, -170, -160, -155, -150, -140, -120, -100, -80, -60, -40, -20, -10, -5,
    0, 3, 5, 9, 10, 16, 20, 40, 60, 72, 80, 99, 100, 120, 140, 149, 151, 155, 160, 200, 300, 307,
)  # fmt: skip
FAST: dict[str, Any] = {"steps": 2000}
SETTINGS: dict[str, dict[str, Any]] = {
    "golem-mab": {"n_explore": 30, **FAST},
    "golem-mab-cd": {"n_explore": 30, "threshold": 3.0, **FAST},
    "dagma-mab": {"n_explore": 30, "last_steps": 2000, **FAST},
    "ga-lcb": {"n_observe": 20, "cycles": 5},
}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "csl-ucb valid, not held": ("csl-ucb", {"hold": False, "bound": "valid"}),
    "csl-ucb-cd paper": ("csl-ucb-cd", {"detector": "paper"}),
    "posterior estimate": ("posterior", {"noise_scale": "estimate"}),
    "posterior-cd estimate": ("posterior-cd", {"noise_scale": "estimate"}),
    "posterior sampled": ("posterior", {"method": "sampled"}),
    "ucb windowed": ("ucb", {"window": 3}),
}
LEARNERS: dict[str, Callable[[], Any]] = {
    "CSL": CSL,
    "CSL squares": lambda: CSL(mutual_information="squares"),
    "CSL stability": lambda: CSL(n_bootstrap=3, random_state=0, on_few_samples="unknown"),
    "GOLEM": lambda: GOLEM(**FAST),
    "GOLEM-NV": lambda: GOLEM(equal_variances=False, **FAST),
    "DAGMA": lambda: DAGMA(last_steps=2000, **FAST),
    "DAGMA least squares": lambda: DAGMA(loss="least-squares", last_steps=2000, **FAST),
    "GraphPosterior": GraphPosterior,
    "GraphPosterior estimate": lambda: GraphPosterior(noise_scale="estimate"),
    "GraphPosterior sampled": lambda: GraphPosterior(method="sampled", n_sweeps=20),
}


def scaled(which: str) -> Callable[[Array, float], Array]:
    """Values (n, N) of which some are multiplied by, replaced by or shifted by a number."""

    def change(values: Array, size: float) -> Array:
        values = values.copy()
        if which == "all nodes":
            return values * size
        if which == "one node":
            values[:, 1] *= size
        elif which == "the reward":
            values[:, -1] *= size
        elif which == "one value":
            values[40, 1] = size
        elif which == "the first value":
            values[0, 1] = size
        elif which == "each node its own":
            return values * size ** np.linspace(-1, 1, values.shape[1])
        elif which == "offset of all":
            return values + size
        elif which == "offset of one":
            values[:, 1] += size
        elif which == "constant":
            values[:] = size
        elif which == "one constant":
            values[:, 1] = size
        elif which == "two equal":
            values[:, 1] = values[:, 0]
            values *= size
        elif which == "few rows":
            return values[np.arange(len(values)) % 3] * size
        elif which == "integers":
            return np.round(values) * size
        elif which == "signs":
            return np.sign(values) * size
        elif which == "two sizes":
            values[::2] *= size
        return values

    return change


SHAPES = (
    "all nodes", "one node", "the reward", "one value", "the first value", "each node its own",
    "offset of all", "offset of one", "constant", "one constant", "two equal", "few rows",
    "integers", "signs", "two sizes", "no noise",
)  # fmt: skip


class ScaleCase(NamedTuple):
    subject: str
    knows_mean: bool
    shape: str
    exponent: int


def system(shape: str) -> LinearSEM:
    sem = random_sem(N_NODES, seed=5)
    if shape != "no noise":
        return sem
    return LinearSEM(weights=sem.weights, reward=sem.reward, noise_mean=sem.noise_mean, noise_std=0)


def rounds(case: ScaleCase) -> tuple[npt.NDArray[np.int64], Array]:
    rng = np.random.default_rng(1)
    if "-mab" in case.subject or case.subject in LEARNERS:
        regimes = np.repeat(np.arange(N_ROUNDS) % 2, N_NODES).reshape(-1, N_NODES)
    else:
        regimes = rng.integers(0, 2, (N_ROUNDS, N_NODES))
    if case.subject.startswith("ga-lcb"):
        regimes[:25] = np.vstack([np.zeros((1, N_NODES)), np.eye(N_NODES)])[np.arange(25) % 5]
        regimes[25:50] = 0
    if case.subject.startswith(("CSL", "GraphPosterior")):
        regimes = rng.integers(0, 2, (N_ROUNDS, N_NODES))
    values = system(case.shape).sample(regimes, rng)
    with np.errstate(all="ignore"):
        shape = "all nodes" if case.shape == "no noise" else case.shape
        values = scaled(shape)(values, float(f"1e{case.exponent}"))
    return regimes, values


def policy_of(case: ScaleCase) -> Any:
    name, settings = VARIANTS.get(case.subject, (case.subject, SETTINGS.get(case.subject, {})))
    sem = random_sem(N_NODES, seed=5)
    told: dict[str, Any] = {"horizon": HORIZON, "noise_mean": sem.noise_mean}
    accepted = accepted_settings(policy_factory(name))
    if not case.knows_mean:
        told["noise_mean"] = None
    if "graph" in accepted:
        told["graph"] = sem.adjacency
    if "systems" in accepted:
        told["systems"] = [sem]
    return make_policy(name, n_nodes=N_NODES, reward=sem.reward, **(told | settings))


def play(case: ScaleCase) -> None:
    regimes, values = rounds(case)
    if case.subject in LEARNERS:
        mean = random_sem(N_NODES, seed=5).noise_mean if case.knows_mean else None
        LEARNERS[case.subject]().fit(values, interventions=regimes, noise_mean=mean)
        return
    policy, refusal = policy_of(case), None
    for t, (a, x) in enumerate(zip(regimes, values, strict=True)):
        if t % 10 == 0:
            asked = policy.ask(np.random.default_rng(t))  # works whatever was refused before
            assert asked.shape == (N_NODES,)
            assert set(asked.tolist()) <= {0, 1}
        try:
            policy.tell(a, x)
        except CausalArmsError as error:
            refusal = error
    policy.ask(np.random.default_rng(0))
    policy.state()
    if refusal is not None:
        raise refusal


def subjects() -> list[str]:
    return [*policy_names(), *VARIANTS, *LEARNERS]


def cases(words: list[str]) -> list[ScaleCase]:
    found = []
    for subject in subjects():
        if words and not any(word in subject for word in words):
            continue
        name = VARIANTS.get(subject, (subject, {}))[0]
        blind = name in ("ucb", "additive", "random", "oracle")
        told = name == "ga-lcb" or "linsem" in name  # always
        for knows in (True,) if blind or told else (True, False):
            found += [ScaleCase(subject, knows, shape, e) for shape in SHAPES for e in EXPONENTS]
    return found


def main_scales() -> None:
    """Values of any size, told to every policy and fitted by every learner.

    The property: an answer or an error of this package, within seconds. Each case runs in a process
    that may die or hang without harm. Prints a table: cases, answers, refusals by name, crashes,
    hangs.

        python benchmarks/fuzz.py scales [WORD ...]     # only subjects whose name contains a word
    """
    parser = argparse.ArgumentParser(
        description=main_scales.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only subjects whose name contains a word")
    words = parser.parse_args().words
    table: dict[str, Counter[str]] = {}
    bad: dict[tuple[str, ...], list[int]] = {}
    for case, outcome, message in outcomes(play, cases(words), seconds=SECONDS):
        row = table.setdefault(case.subject, Counter())
        row[outcome] += 1
        if outcome.startswith((CRASH, HANG)):
            mean = "known mean" if case.knows_mean else "unknown mean"
            group = (case.subject, mean, case.shape, outcome, message[:120])
            print(*group, file=sys.stderr, flush=True)
            bad.setdefault(group, []).append(case.exponent)
    refusals = sorted({o for row in table.values() for o in row if o.startswith("refused")})
    columns = [ANSWER, *refusals, CRASH, HANG]
    print(f"{'subject':26s} {'cases':>6s} " + " ".join(f"{c:>22s}" for c in columns))
    for subject, row in table.items():
        crashes = sum(count for outcome, count in row.items() if outcome.startswith(CRASH))
        counts = [crashes if c == CRASH else row[c] for c in columns]
        print(f"{subject:26s} {row.total():6d} " + " ".join(f"{c:22d}" for c in counts))
    for what, exponents in bad.items():
        print(*what, "at 10 to the", exponents, sep=" | ")
    n_bad = sum(len(exponents) for exponents in bad.values())
    print(f"{sum(r.total() for r in table.values())} cases, {n_bad} crashes or hangs")
    sys.exit(bool(bad))


N_NODES_SETTINGS, N_ROUNDS_SETTINGS = 3, 100
ODD: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 3, 7, 19, 20, 1000, 10**6, 10**9, 10**18, 10**400,
    -1.0, 0.0, -0.0, 1e-320, 1e-300, 1e-100, 1e-9, 0.5, 1.0, 1.5, 2.5, 1e9, 1e100, 1e300,
    math.nan, math.inf, -math.inf, "", "x", "1", "estimate", "exact", "sampled", "adaptive",
    "paper", "authors", "valid", "parents", "true", [], [1], [1.0, 2.0, 3.0],
    [[1, 2, 3], [1, 2, 3]], [[1, 2], [3]], [0, 0, 0], [-1.0, 1.0, 1.0], [None, 1, 1],
    [math.nan, 1, 1], ["a", "b", "c"], {}, {"a": 1}, (1, 2), [[5, [[[0, 0, 0]] * 3] * 2]],
)  # fmt: skip
BASE: dict[str, dict[str, Any]] = {
    "golem-mab": {"n_explore": 30, "steps": 2000},
    "golem-mab-cd": {"n_explore": 30, "steps": 2000},
    "dagma-mab": {"n_explore": 30, "steps": 2000, "last_steps": 2000},
    "ga-lcb": {"n_observe": 20},
}
NOT_IN_A_STUDY = ("noise_mean", "horizon", "systems", "change_points")


class SettingCase(NamedTuple):
    policy: str
    setting: str
    value: Any


class LateError(Exception):
    """A refusal that comes after the policy was made."""


def settings_of(case: SettingCase) -> dict[str, Any]:
    sem = random_sem(N_NODES_SETTINGS, seed=1)
    accepted = accepted_settings(policy_factory(case.policy))
    told: dict[str, Any] = {"horizon": 150, "noise_mean": sem.noise_mean}
    if "graph" in accepted:
        told["graph"] = sem.adjacency.astype(int).tolist()
    if "systems" in accepted:
        told["systems"] = [sem]
    return told | BASE.get(case.policy, {}) | {case.setting: case.value}


def rounds_settings(case: SettingCase, counts: Any) -> Any:
    """Rounds of a policy whose nodes have so many regimes each, of which it sees two at most."""
    rng = np.random.default_rng(0)
    regimes = rng.integers(0, 2, (N_ROUNDS_SETTINGS, N_NODES_SETTINGS))
    if "-mab" in case.policy:
        regimes = np.repeat(np.arange(N_ROUNDS_SETTINGS) % 2, N_NODES_SETTINGS).reshape(
            -1, N_NODES_SETTINGS
        )
    regimes = np.minimum(regimes, np.asarray(counts) - 1)
    return regimes, random_sem(N_NODES_SETTINGS, seed=1).sample(regimes, rng)


def play_settings(case: SettingCase) -> None:
    settings = settings_of(case)
    policy = make_policy(
        case.policy, n_nodes=N_NODES_SETTINGS, reward=N_NODES_SETTINGS - 1, **settings
    )
    try:
        for t, (a, x) in enumerate(zip(*rounds_settings(case, policy.regimes), strict=True)):
            policy.ask(np.random.default_rng(t))
            policy.tell(a, x)
        for t in range(3):
            policy.ask(np.random.default_rng(t))
    except CausalArmsError as error:
        raise LateError(str(error)) from error
    if case.setting in NOT_IN_A_STUDY or case.policy == "oracle":
        return
    kept = {k: v for k, v in settings.items() if k not in NOT_IN_A_STUDY}
    nodes = [f"x{i}" for i in range(N_NODES_SETTINGS)]
    known = {"noise_mean": settings["noise_mean"].tolist(), "horizon": 150}
    study = Study.create(
        None, nodes, "x2", policy=case.policy, policy_settings=kept, seed=1, intervenable=nodes,
        **known,
    )  # fmt: skip
    regimes, values = rounds_settings(case, policy.regimes)
    table: dict[str, Any] = {node: values[:, i] for i, node in enumerate(nodes)}
    study.import_rounds(table | {f"do:{n}": regimes[:, i] for i, n in enumerate(nodes)})
    study.ask()
    if study.problem:
        raise LateError(study.problem)


def cases_settings(words: list[str]) -> list[SettingCase]:
    return [
        SettingCase(policy, setting, value)
        for policy in policy_names()
        if not words or any(word in policy for word in words)
        for setting in accepted_settings(policy_factory(policy))
        for value in ODD
    ]


def main_settings() -> None:
    """Odd values for every setting of every policy: python benchmarks/fuzz.py settings.

    The property: refused by name when the policy is made, or a policy that works for 100 rounds,
    alone and as a study in memory. Each case runs in a process that may die or hang without harm.

        python benchmarks/fuzz.py settings [WORD ...]     # only policies whose name contains a word
    """
    parser = argparse.ArgumentParser(
        description=main_settings.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only policies whose name contains a word")
    words = parser.parse_args().words
    table: dict[str, Counter[str]] = {}
    bad: dict[tuple[str, ...], list[str]] = {}
    for case, outcome, message in outcomes(play_settings, cases_settings(words), seconds=SECONDS):
        row = table.setdefault(case.policy, Counter())
        row[outcome] += 1
        named = case.setting in message or not outcome.startswith("refused")
        if outcome.startswith((CRASH, HANG)) or not named:
            group = (case.policy, case.setting, outcome if named else "not named", message[:120])
            print(*group, file=sys.stderr, flush=True)
            bad.setdefault(group, []).append(repr(case.value)[:40])
    refusals = sorted({o for row in table.values() for o in row if o.startswith("refused")})
    columns = [ANSWER, *refusals, CRASH, HANG]
    print(f"{'policy':14s} {'cases':>6s} " + " ".join(f"{c:>22s}" for c in columns))
    for policy, row in table.items():
        crashes = sum(count for outcome, count in row.items() if outcome.startswith(CRASH))
        counts = [crashes if c == CRASH else row[c] for c in columns]
        print(f"{policy:14s} {row.total():6d} " + " ".join(f"{c:22d}" for c in counts))
    for what, values in bad.items():
        print(*what, "for", ", ".join(values), sep=" | ")
    n_bad = sum(len(values) for values in bad.values())
    print(f"{sum(r.total() for r in table.values())} cases, {n_bad} of them wrong")
    sys.exit(bool(bad))


def main() -> None:
    run_part(__doc__, {"scales": main_scales, "settings": main_settings})


if __name__ == "__main__":
    main()
