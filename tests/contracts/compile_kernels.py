"""Compile slow kernels before the tests, a family of them in each process.

Processes that share the tests meet the same kernels at about the same time, and each would compile
them all. `make test` calls this beside the type checker instead. No test depends on it: a kernel
that is left out here is compiled by the first test that needs it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import policy_cases

from causalarms.graphs.registry import make_learner
from causalarms.policies.registry import make_policy
from causalarms.search import Constraints, best_intervention
from causalarms.testing.parts import learner_case

N_ROUNDS = 60


def fit(learner: str, **settings: Any) -> None:
    learner_case(partial(make_learner, learner, **settings)).fit()


def search() -> None:
    n = 12  # more interventions than are compared one by one
    weights = np.triu(np.random.default_rng(0).normal(size=(2, n, n)), 1)
    best_intervention(weights, np.ones(n), np.arange(n), n - 1)
    Constraints([2, 2], forbidden=[{0: 1, 1: 1}]).interventions()


def learners() -> None:
    policy_cases.history("csl-ucb")
    policy_cases.history("robust-linsem")
    fit("golem", steps=20)
    fit("dagma", steps=20)


def posterior() -> None:
    fit("posterior")
    policy_cases.history("posterior-cd")
    incomplete = make_policy("posterior", n_nodes=policy_cases.N_NODES, gaps="learn")
    for a, x in policy_cases.history("random"):
        incomplete.tell(a, np.where(np.arange(len(x)) == incomplete.n_told % 9, np.nan, x))
    incomplete.ask(np.random.default_rng(0))


def sampled() -> None:
    fit("posterior", method="sampled", n_sweeps=50)
    policy_cases.history("posterior sampled")


def lookahead() -> None:
    policy_cases.history("posterior looking ahead")


FAMILIES: dict[str, Callable[[], None]] = {
    family.__name__: family for family in (search, learners, posterior, sampled, lookahead)
}

if __name__ == "__main__":
    gc.disable()  # the compiler makes many objects and few cycles
    policy_cases.N_ROUNDS = N_ROUNDS
    for name in sys.argv[1:]:
        FAMILIES[name]()
