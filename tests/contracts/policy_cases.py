"""Every policy of the registry, built with what it asks for, and a history for each.

The world changes after round 220, so that detectors have something to find.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from causalarms import random_sem
from causalarms.policies.base import Policy
from causalarms.policies.registry import (
    accepted_settings,
    make_policy,
    policy_factory,
    policy_names,
)
from causalarms.rng import stream
from causalarms.simulation.world import World, switching_world
from causalarms.testing.policies import PolicyCase
from causalarms.testing.promises import Round

N_NODES = 4
HORIZON = 400
N_ROUNDS = 300
SEM = random_sem(N_NODES, seed=5)
WORLD = switching_world(SEM, [220], np.random.default_rng(1))

SETTINGS: dict[str, dict[str, Any]] = {
    "golem-mab": {"n_explore": 30},
    "golem-mab-cd": {"n_explore": 30, "threshold": 3.0},
    "dagma-mab": {"n_explore": 30},
    "explore-then-commit": {"n_explore": 30},
    "ga-lcb": {"n_observe": 20, "cycles": 5},
}
# The posterior of noise of order one, as it was before its default learned the units of the data.
TOLD: dict[str, Any] = {
    "noise_scale": 1.0, "decide": "quantile", "gaps": "drop", "typing_errors": "kept",
}  # fmt: skip
TOLD_CD = TOLD | {"noise": "gaussian"}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "posterior, units told": ("posterior", TOLD),
    "posterior-cd, units told": ("posterior-cd", TOLD_CD),
    "csl-ucb, means unknown": ("csl-ucb", {"noise_mean": None, "bound": "parents"}),
    "csl-ucb-cd, detector of the paper": ("csl-ucb-cd", {"detector": "paper", "zeta": 1e-4}),
    "csl-ucb-joint, weights between graphs": (
        "csl-ucb-joint",
        {"refresh": 50, "refresh_weights": 15},
    ),
    "csl-ucb-joint not held": ("csl-ucb-joint", {"hold": False, "bound": "valid"}),
    "csl-ucb-joint, means unknown": ("csl-ucb-joint", {"noise_mean": None, "bound": "parents"}),
    "csl-ucb-joint-cd, detector of the paper": (
        "csl-ucb-joint-cd",
        {"detector": "paper", "zeta": 1e-4},
    ),
    "posterior in units of its own": ("posterior", TOLD | {"noise_scale": "estimate"}),
    "posterior, means unknown": (
        "posterior",
        TOLD | {"noise_mean": None, "noise_scale": "estimate"},
    ),
    "posterior sampled": ("posterior", TOLD | {"method": "sampled"}),
    "posterior-cd sampled": ("posterior-cd", TOLD_CD | {"method": "sampled"}),
    "posterior-cd, noise of any law": ("posterior-cd", TOLD | {"noise": "any"}),
    "posterior-cd, typing errors left out": (
        "posterior-cd",
        TOLD | {"typing_errors": "left out", "noise": "any"},
    ),
    "posterior looking ahead": (
        "posterior",
        TOLD | {"decide": "knowledge-gradient", "noise_mean": None, "noise_scale": "estimate"},
    ),
    "posterior-cd looking ahead": ("posterior-cd", TOLD_CD | {"decide": "knowledge-gradient"}),
    "linsem-ts restarted": ("linsem-ts", {"restarts": [(220, WORLD.systems[1].adjacency)]}),
    "linsem-ucb of the theorem": ("linsem-ucb", {"beta": "theory"}),
    "robust-linsem restarted": (
        "robust-linsem",
        {"deviations": 5, "restarts": [(220, WORLD.systems[1].adjacency)]},
    ),
    "additive, coarse": ("additive", {"epsilon": 8.0, "bound": 40.0}),
    "ucb windowed": ("ucb", {"window": 3}),
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    name: (name, SETTINGS.get(name, {})) for name in policy_names()
} | VARIANTS
LABELS = list(CASES)


def build(label: str, world: World = WORLD) -> Policy:
    """A fresh policy that is told what it asks for."""
    name, settings = CASES[label]
    sem = world.systems[0]
    told: dict[str, Any] = {"horizon": HORIZON, "noise_mean": sem.noise_mean}
    accepted = accepted_settings(policy_factory(name))
    if "graph" in accepted:
        told["graph"] = sem.adjacency
    if "systems" in accepted:
        told |= {"systems": world.systems, "change_points": world.change_points}
    return make_policy(name, n_nodes=sem.n_nodes, reward=sem.reward, **(told | settings))


@cache
def history(label: str) -> tuple[Round, ...]:
    """What a policy played and saw, every seventh round being somebody else's choice."""
    policy, noise, rounds = build(label), stream(1, "noise"), []
    for t in range(N_ROUNDS):
        rng = stream(1, "policy", t)
        a = rng.integers(0, 2, N_NODES).astype(np.uint8) if t % 7 == 3 else policy.ask(rng)
        x = WORLD.play(t + 1, a, noise)
        policy.tell(a, x)
        rounds.append((a, x))
    return tuple(rounds)


@cache
def case(label: str) -> PolicyCase:
    return PolicyCase(partial(build, label), history(label))


def told(label: str, n_rounds: int) -> Policy:
    """A fresh policy that was told the first rounds of its history."""
    return case(label).told(n_rounds)
