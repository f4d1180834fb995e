"""`ga-lcb`: graph-agnostic linear causal bandit (Yan and Tajer, NeurIPS 2024), the nearest rival.

1. `cycles` of the null and every single-node intervention: j descends from i if its mean moves
   by more than half the smallest effect `eta`.
2. Null rounds up to `n_observe`; a Lasso of each node on its candidate ancestors gives its parents,
   the same for both regimes.
3. Phases s = 1, 2, ...: ridge estimates per mechanism, widths along the order; arms whose upper
   bound falls m 2^(1-s) below the best are dropped once all widths are below m 2^-s, else one of
   the wider arms is played; once widths are below m / sqrt(T), the best upper bound is played.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from causalarms.arrays import BoolArray, FloatArray, IntArray, Intervention, Interventions
from causalarms.checks import integer, number
from causalarms.errors import DataError, SettingError
from causalarms.graphs.inputs import as_noise_mean
from causalarms.kernels import kernel
from causalarms.limits import MAX_HORIZON
from causalarms.models.belief import Belief, belief_given_graph
from causalarms.policies.base import (
    EXPLOIT,
    EXPLORE,
    Pending,
    Policy,
    Reason,
    Suggestion,
)
from causalarms.sem.regimes import ancestors, topological_order
from causalarms.sem.rewards import all_interventions, check_enumerable
from causalarms.state import Declared
from causalarms.statistics.dataset import Moments
from causalarms.statistics.units import NOISE_FRACTION, Units

MAX_PLANNED_ROUNDS = 1_000_000  # rounds that are kept


class GALCB(Policy):
    """Is told the horizon, the noise means, the smallest effect and a bound on node values.

    The defaults of alpha, eta and penalty are those of the published runs; those of cycles,
    n_observe and bound are not published and are chosen by a small grid (docs/baselines.md).

    horizon      rounds that will be played
    noise_mean   (N,) or (2, N)
    alpha        weight of the widths
    eta          smallest effect of an intervention on the mean of a descendant
    penalty      of the Lasso that finds the parents
    cycles       rounds of the null and of every single-node intervention
    n_observe    further null rounds
    bound        of the values of nodes, m
    """

    keeps_constraints: ClassVar[bool] = False  # single switches first
    learned: ClassVar[Declared] = {
        "_moments": Moments,
        **dict.fromkeys(("_null", "_single", "_n_single", "_alive"), np.ndarray),
        "_parents": np.ndarray | None,
        "_n_null": int,
        "_phase": int,
    }

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        horizon: int,
        noise_mean: npt.ArrayLike,
        alpha: float = 0.1,
        eta: float = 0.5,
        penalty: float = 0.1,
        cycles: int = 5,
        n_observe: int = 50,
        bound: float = 1.0,
        regimes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(n_nodes, reward, regimes=regimes)
        self._needs_pairs("ga-lcb", "which it explores one intervention at a time")
        n_nodes = self.n_nodes
        check_enumerable(n_nodes)
        horizon = integer("horizon", horizon, minimum=1, maximum=MAX_HORIZON)
        cycles = integer("cycles", cycles, minimum=1, maximum=MAX_PLANNED_ROUNDS)
        n_observe = integer("n_observe", n_observe, minimum=0, maximum=MAX_PLANNED_ROUNDS)
        mean = as_noise_mean(noise_mean, self._nodes)
        if mean is None:
            raise SettingError("ga-lcb must be told the noise means (noise_mean)")
        first_stages = cycles * (n_nodes + 1) + n_observe
        if horizon <= first_stages:
            raise SettingError(
                f"a horizon of {horizon} rounds is too short for {first_stages} rounds of "
                "exploration; lower cycles or n_observe"
            )
        self.horizon = horizon
        self.noise_mean = mean
        self.alpha = number("alpha", alpha, minimum=0.0)
        self.eta = number("eta", eta, minimum=0.0)
        self.penalty = number("penalty", penalty, above=0.0)
        self.cycles = cycles
        self.n_observe = n_observe
        self.bound = number("bound", bound, above=0.0)
        self._moments = Moments(n_nodes)
        self._null = np.zeros((cycles + n_observe, n_nodes))
        self._n_null = 0
        self._single = np.zeros((n_nodes, n_nodes))  # sums over single-node interventions
        self._n_single = np.zeros(n_nodes, dtype=np.int64)
        self._parents: BoolArray | None = None
        self._alive = np.ones(2**n_nodes, dtype=bool)
        self._phase = 1
        self._scored: tuple[FloatArray, FloatArray] | None = None

    @property
    def adjacency(self) -> BoolArray | None:
        return None if self._parents is None else np.stack([self._parents] * 2)

    def suggest(self, rng: Generator, *, pending: Pending = ()) -> Suggestion:
        if self._parents is None:
            return Suggestion(self._planned(), EXPLORE, why=Reason("single switches"))
        arms = all_interventions(self.n_nodes)
        try:
            mean, width = self._scores()
        except DataError:  # telling said so; nothing is known in favour of any arm
            return Suggestion(arms[0], EXPLORE)
        upper = np.where(self._alive, mean + width, -np.inf)
        widths = np.where(self._alive, width, 0.0)
        # Stage 3: the widest arm is played while it is wider than the phase allows, m 2^-s.
        target = self.bound * 2.0**-self._phase
        if widths.max() > max(target, self.bound / np.sqrt(self.horizon)):
            arm, reason = int(np.argmax(widths)), EXPLORE
        else:
            arm, reason = int(np.argmax(upper)), EXPLOIT
        why = Reason("least known" if reason == EXPLORE else "upper bound")
        return Suggestion(arms[arm], reason, float(mean[arm]), float(width[arm]), why)

    def make_belief(self, rng: Generator, draws: int) -> Belief | None:
        adjacency = self.adjacency
        if adjacency is None:
            return None
        size = self.n_nodes
        total = self._moments.gram[:, 0].sum(axis=0)  # of all rounds
        mean = total[:size, size] / total[size, size]
        spread = np.sqrt(np.maximum(np.diag(total)[:size] / total[size, size] - mean**2, 0.0))
        scale = np.where(spread > 0, NOISE_FRACTION * spread, 1.0)
        units = Units(shift=np.zeros(size), scale=scale)
        return belief_given_graph(
            adjacency,
            self._moments.in_units(units).gram,
            units,
            np.zeros((self.n_regimes, size), dtype=np.int64),
            rng,
            draws,
            noise_mean=self.noise_mean,
        )

    def _planned(self) -> Intervention:
        """The next of the null and single-node interventions, then null ones."""
        a = np.zeros(self.n_nodes, dtype=np.uint8)
        done = int(self._n_single.min())
        if self._n_null > done and done < self.cycles:
            a[int(np.argmin(self._n_single))] = 1
        return a

    def learn(self, a: Intervention, x: FloatArray) -> None:
        self._moments.add(x, a)
        self._scored = None
        if self._parents is None:
            if not a.any() and self._n_null < len(self._null):
                self._null[self._n_null] = x
                self._n_null += 1
            elif a.sum() == 1:
                self._single[np.argmax(a)] += x
                self._n_single[np.argmax(a)] += 1
            if self._explored():
                self._parents = self._find_parents()
        else:
            self._drop_arms()

    def _explored(self) -> bool:
        return self._n_null == len(self._null) and bool(self._n_single.min() >= self.cycles)

    def _find_parents(self) -> BoolArray:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import Lasso

        effects = np.abs(self._single / self._n_single[:, None] - self._null.mean(axis=0))
        np.fill_diagonal(effects, 0.0)  # how a node answers its own intervention
        descends = np.zeros((self.n_nodes, self.n_nodes), dtype=bool)
        reaches = np.zeros_like(descends)
        # clear effects first, and never one that would close a cycle
        for i, j in np.column_stack(np.unravel_index(np.argsort(-effects, None), effects.shape)):
            if effects[i, j] > self.eta / 2 and not reaches[j, i]:
                descends[i, j] = True
                reaches = ancestors(descends)
        parents = np.zeros_like(descends)
        for node in range(self.n_nodes):
            candidates = np.flatnonzero(reaches[:, node])
            if len(candidates):
                # cyclic descent draws nothing, but None would advance the global random state
                lasso = Lasso(
                    alpha=self.penalty, fit_intercept=False, random_state=0, max_iter=100_000
                )
                target = self._null[:, node] - self.noise_mean[0, node]
                # not converged after so many steps is close enough for which coefficients are 0
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    lasso.fit(self._null[:, candidates], target)
                parents[candidates, node] = lasso.coef_ != 0
        return parents

    def _scores(self) -> tuple[FloatArray, FloatArray]:
        """Mean and width of all arms, computed once per told round."""
        if self._scored is None:
            self._scored = self._score_all(all_interventions(self.n_nodes))
        return self._scored

    def _score_all(self, arms: Interventions) -> tuple[FloatArray, FloatArray]:
        assert self._parents is not None
        order = topological_order(self._parents)
        assert order is not None
        n = self.n_nodes
        inverse, weights = np.zeros((2, n, n, n)), np.zeros((2, n, n))
        smallest = np.full((2, n), np.inf)  # sqrt of lambda_min(V); no parents: no error
        for regime, node in np.ndindex(2, n):
            p = np.flatnonzero(self._parents[:, node])
            if not len(p):
                continue
            gram = self._moments.gram[regime, node]
            v = gram[np.ix_(p, p)] + self.bound**2 * np.eye(len(p))
            try:
                v_inverse = np.linalg.inv(v)
            except np.linalg.LinAlgError as error:
                raise DataError(self._lost(node)) from error
            inverse[regime, node][np.ix_(p, p)] = v_inverse
            cross = gram[p, node] - self.noise_mean[regime, node] * gram[p, n]
            weights[regime, p, node] = v_inverse @ cross
            smallest[regime, node] = np.sqrt(max(np.linalg.eigvalsh(v)[0], 0.0))
            if not smallest[regime, node] > 0:
                raise DataError(self._lost(node))
        known = Estimates(weights, inverse, smallest, self.noise_mean, self._parents, order)
        mean, width = _widths(known, arms, self.reward, self.alpha, self.bound)
        if not np.isfinite(mean + width).all():
            raise DataError(self._lost(self.reward))
        return mean, width

    def _lost(self, node: int) -> str:
        return (
            f"the values of the parents of node {self._nodes[node]!r} are too large next to their "
            "spread to compute with: use other units, or values relative to a middle"
        )

    def _drop_arms(self) -> None:
        mean, width = self._scores()
        while self.bound * 2.0**-self._phase > self.bound / np.sqrt(self.horizon):
            if width[self._alive].max() > self.bound * 2.0**-self._phase:
                return
            upper = mean + width
            best = upper[self._alive].max()
            self._alive &= upper >= best - self.bound * 2.0 ** (1 - self._phase)
            self._phase += 1

    def restore_own(self, state: dict[str, Any]) -> None:
        super().restore_own(state)
        self._scored = None


class Estimates(NamedTuple):
    """Ridge estimates of all mechanisms, whose parents are the same in all regimes."""

    weights: FloatArray  # (R, N, N)
    inverse: FloatArray  # (R, N, N, N), V^-1
    smallest: FloatArray  # (R, N), sqrt(lambda_min(V))
    noise_mean: FloatArray  # (R, N)
    parents: BoolArray  # (N, N)
    order: IntArray


@kernel
def _widths(
    known: Estimates, arms: Interventions, reward: int, alpha: float, bound: float
) -> tuple[FloatArray, FloatArray]:
    """Mean and width of the reward under every arm.

    w_i = sum of the parents' w + alpha |mu_pa|_{V^-1} + m_pa alpha / sqrt(lambda_min(V)),
    with m_pa = m sqrt(number of parents).
    """
    weights, inverse, smallest, noise_mean, parents, order = known
    n_arms, n = arms.shape
    means, widths = np.empty(n_arms), np.empty(n_arms)
    mu, w = np.zeros(n), np.zeros(n)
    for arm in range(n_arms):
        for position in range(n):
            node = order[position]
            regime = arms[arm, node]
            mu[node] = noise_mean[regime, node]
            w[node] = 0.0
            square, n_parents = 0.0, 0
            for j in range(n):
                if parents[j, node]:
                    n_parents += 1
                    mu[node] += weights[regime, j, node] * mu[j]
                    w[node] += w[j]
                    inner = 0.5 * inverse[regime, node, j, j] * mu[j]
                    for k in range(j):  # the matrix is symmetric, and 0 off the parents
                        inner += inverse[regime, node, j, k] * mu[k]
                    square += 2.0 * mu[j] * inner
            if n_parents:
                w[node] += alpha * np.sqrt(max(square, 0.0))
                w[node] += bound * np.sqrt(n_parents) * alpha / smallest[regime, node]
        means[arm], widths[arm] = mu[reward], w[reward]
    return means, widths
