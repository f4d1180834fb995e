"""Odd values for every setting of every policy: python fuzz_settings.py.

The property: refused by name when the policy is made, or a policy that works for 100 rounds, alone
and as a study in memory. Each case runs in a process that may die or hang without harm.

    python benchmarks/fuzz_settings.py [WORD ...]     # only policies whose name contains a word
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from causalarms import Study, make_policy, random_sem
from causalarms.errors import CausalArmsError
from causalarms.policies.registry import accepted_settings, policy_factory, policy_names
from isolated import ANSWER, CRASH, HANG, outcomes

N_NODES, N_ROUNDS = 3, 100
SECONDS = 15.0  # compiling included
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


class Case(NamedTuple):
    policy: str
    setting: str
    value: Any


class LateError(Exception):
    """A refusal that comes after the policy was made."""


def settings_of(case: Case) -> dict[str, Any]:
    sem = random_sem(N_NODES, seed=1)
    accepted = accepted_settings(policy_factory(case.policy))
    told: dict[str, Any] = {"horizon": 150, "noise_mean": sem.noise_mean}
    if "graph" in accepted:
        told["graph"] = sem.adjacency.astype(int).tolist()
    if "systems" in accepted:
        told["systems"] = [sem]
    return told | BASE.get(case.policy, {}) | {case.setting: case.value}


def rounds(case: Case) -> Any:
    rng = np.random.default_rng(0)
    regimes = rng.integers(0, 2, (N_ROUNDS, N_NODES))
    if "-mab" in case.policy:
        regimes = np.repeat(np.arange(N_ROUNDS) % 2, N_NODES).reshape(-1, N_NODES)
    return regimes, random_sem(N_NODES, seed=1).sample(regimes, rng)


def play(case: Case) -> None:
    settings = settings_of(case)
    policy = make_policy(case.policy, n_nodes=N_NODES, reward=N_NODES - 1, **settings)
    try:
        for t, (a, x) in enumerate(zip(*rounds(case), strict=True)):
            policy.ask(np.random.default_rng(t))
            policy.tell(a, x)
        for t in range(3):
            policy.ask(np.random.default_rng(t))
    except CausalArmsError as error:
        raise LateError(str(error)) from error
    if case.setting in NOT_IN_A_STUDY or case.policy == "oracle":
        return
    kept = {k: v for k, v in settings.items() if k not in NOT_IN_A_STUDY}
    nodes = [f"x{i}" for i in range(N_NODES)]
    known = {"noise_mean": settings["noise_mean"].tolist(), "horizon": 150}
    study = Study.create(
        None, nodes, "x2", policy=case.policy, policy_settings=kept, seed=1, **known
    )
    regimes, values = rounds(case)
    table: dict[str, Any] = {node: values[:, i] for i, node in enumerate(nodes)}
    study.add_observations(table | {f"do:{n}": regimes[:, i] for i, n in enumerate(nodes)})
    study.ask()
    if study.problem:
        raise LateError(study.problem)


def cases(words: list[str]) -> list[Case]:
    return [
        Case(policy, setting, value)
        for policy in policy_names()
        if not words or any(word in policy for word in words)
        for setting in accepted_settings(policy_factory(policy))
        for value in ODD
    ]


def main() -> None:
    table: dict[str, Counter[str]] = {}
    bad: dict[tuple[str, ...], list[str]] = {}
    for case, outcome, message in outcomes(play, cases(sys.argv[1:]), seconds=SECONDS):
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


if __name__ == "__main__":
    main()
