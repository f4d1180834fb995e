"""Worlds that break one assumption each: noise, straight lines, hidden causes, weights, units.

All start from the same system, `random_sem(n, seed=seed)`: N(1, 1) noise, weights ±U(0.5, 2).
Noise laws keep mean and variance. A bend replaces w x_p by w f(x_p); the scale in it is the
root mean square of the parent under random interventions. A hidden cause is one more node, N(0, 1),
that is never shown nor intervened on; its weights on its children are ±U(0.5, 2) in either regime.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms import LinearSEM, random_sem
from causalarms.rng import stream
from causalarms.sem.rewards import propagate

Array = npt.NDArray[Any]
Bend = Callable[[Array, float], Array]

NOISE: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "Gaussian": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.uniform(-(3**0.5), 3**0.5, shape),
    "Laplace": lambda rng, shape: rng.laplace(0.0, 0.5**0.5, shape),
    "Student t, 3 degrees": lambda rng, shape: rng.standard_t(3, shape) / 3**0.5,
    "exponential": lambda rng, shape: rng.exponential(1.0, shape) - 1.0,
}
BENDS: dict[str, Bend] = {
    "saturates mildly": lambda x, scale: 2 * scale * np.tanh(x / (2 * scale)),
    "saturates strongly": lambda x, scale: scale / 2 * np.tanh(2 * x / scale),
    "one side": lambda x, scale: np.maximum(x, 0.0),
    "U": lambda x, scale: np.abs(x),
}
PILOT = 4000  # rounds that measure the scales of bends
MONTE_CARLO = 10_000  # samples per expected reward of a bent world, the same noise for all


@dataclass
class BrokenWorld:
    """`sem` may end in one hidden node; `bend` replaces its straight lines."""

    sem: LinearSEM
    n_nodes: int
    noise: str = "Gaussian"
    bend: Bend | None = None
    children: Array = field(default_factory=lambda: np.zeros(0, dtype=int))  # of the hidden node
    scales: Array | None = None

    @property
    def adjacency(self) -> Array:
        return self.sem.adjacency[:, : self.n_nodes, : self.n_nodes]

    @property
    def noise_mean(self) -> Array:
        return self.sem.noise_mean[: self.n_nodes]

    def sample(self, A: Array, rng: np.random.Generator) -> Array:
        """What is seen of one sample per row of interventions."""
        rows = self._all_nodes(A)
        exogenous = NOISE[self.noise](rng, rows.shape) * self.sem.noise_std + self.sem.noise_mean
        if self.bend is None:
            values: Array = propagate(self.sem.weights, self.sem.order, rows, exogenous)
        else:
            values = self._bent(rows, exogenous)
        return values[:, : self.n_nodes]

    def expected_rewards(self, arms: Array) -> Array:
        """Exact where lines are straight: noise laws keep the mean."""
        if self.bend is None:
            return self.sem.expected_reward(self._all_nodes(arms))
        rng = stream(0, "expected rewards")
        exogenous = NOISE[self.noise](rng, (MONTE_CARLO, self.n_nodes)) + self.sem.noise_mean
        reward = self.sem.reward
        return np.array(
            [
                self._bent(arm[None].repeat(MONTE_CARLO, 0), exogenous)[:, reward].mean()
                for arm in arms
            ]
        )

    def _all_nodes(self, A: Array) -> Array:
        hidden = self.sem.n_nodes - self.n_nodes
        return np.ascontiguousarray(np.pad(A, ((0, 0), (0, hidden))))

    def _bent(self, A: Array, exogenous: Array) -> Array:
        assert self.bend is not None
        values, bent = exogenous.copy(), np.zeros_like(exogenous)
        scales = np.empty(self.n_nodes) if self.scales is None else self.scales
        for i in self.sem.order:
            by_regime = bent @ self.sem.weights[:, :, i].T  # (n, 2)
            values[:, i] += np.where(A[:, i] == 1, by_regime[:, 1], by_regime[:, 0])
            if self.scales is None:
                scales[i] = np.sqrt((values[:, i] ** 2).mean())
            bent[:, i] = self.bend(values[:, i], scales[i])
        self.scales = scales
        return values


def straight(n: int, seed: int, noise: str = "Gaussian") -> BrokenWorld:
    return BrokenWorld(random_sem(n, seed=seed), n, noise)


def bent(n: int, seed: int, bend: str) -> BrokenWorld:
    world = BrokenWorld(random_sem(n, seed=seed), n, bend=BENDS[bend])
    rng = stream(seed, "pilot")
    world.sample(rng.integers(0, 2, (PILOT, n), dtype=np.uint8), rng)  # sets the scales
    return world


def confounded(n: int, seed: int, n_children: int) -> BrokenWorld:
    sem, rng = random_sem(n, seed=seed), stream(seed, "hidden cause")
    children = rng.permutation(n)[:n_children]
    weights = np.zeros((2, n + 1, n + 1))
    weights[:, :n, :n] = sem.weights
    size = (2, n_children)
    weights[:, n, children] = rng.choice([-1.0, 1.0], size) * rng.uniform(0.5, 2.0, size)
    mean = np.append(sem.noise_mean, 0.0)
    shown = LinearSEM(weights=weights, noise_mean=mean, reward=sem.reward)
    return BrokenWorld(shown, n, children=children)


def weak(n: int, seed: int) -> BrokenWorld:
    return BrokenWorld(random_sem(n, seed=seed, weights="uniform"), n)


def rescaled(n: int, seed: int, factor: float) -> BrokenWorld:
    """One node, not the reward, in other units; its noise mean is told in them."""
    sem, unit = random_sem(n, seed=seed), np.ones(n)
    unit[stream(seed, "rescaled").integers(n - 1)] = factor
    weights = sem.weights * unit[None, None, :] / unit[None, :, None]
    changed = sem.replace(
        weights=weights, noise_mean=sem.noise_mean * unit, noise_std=sem.noise_std * unit
    )
    return BrokenWorld(changed, n)


WORLDS: dict[str, Callable[[int, int], BrokenWorld]] = {
    "nothing broken": straight,
    "noise uniform": lambda n, seed: straight(n, seed, "uniform"),
    "noise Laplace": lambda n, seed: straight(n, seed, "Laplace"),
    "noise Student t, 3 degrees": lambda n, seed: straight(n, seed, "Student t, 3 degrees"),
    "noise exponential": lambda n, seed: straight(n, seed, "exponential"),
    "effects saturate mildly": lambda n, seed: bent(n, seed, "saturates mildly"),
    "effects saturate strongly": lambda n, seed: bent(n, seed, "saturates strongly"),
    "effects of positive values only": lambda n, seed: bent(n, seed, "one side"),
    "effects U-shaped": lambda n, seed: bent(n, seed, "U"),
    "hidden cause of 2 nodes": lambda n, seed: confounded(n, seed, 2),
    "hidden cause of 4 nodes": lambda n, seed: confounded(n, seed, 4),
    "weights U(-2, 2)": weak,
    "one node times 100": lambda n, seed: rescaled(n, seed, 100.0),
    "one node divided by 100": lambda n, seed: rescaled(n, seed, 0.01),
}
