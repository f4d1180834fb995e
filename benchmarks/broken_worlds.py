"""Worlds that break one assumption each: noise, straight lines, hidden causes, weights, units.

All start from the same system, `random_sem(n, seed=seed)`: N(1, 1) noise, weights ±U(0.5, 2).
Noise laws keep mean and variance. A bend replaces w x_p by w f(x_p). A hidden cause is one more
node, N(0, 1), that is never shown nor intervened on; its weights on its children are ±U(0.5, 2) in
either regime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms import LinearSEM, random_sem
from causalarms.rng import stream
from causalarms.simulation import World


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
