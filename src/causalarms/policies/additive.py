"""`additive`: marginal elimination for additive outcomes (Malek, Aglietti, Chiappa, ICML 2023).

*Additive Causal Bandits with Unknown Graph* (arXiv 2306.07858), the algorithm MODL. The expected
reward is a sum of one term per node, which depends on the level the node is set to and on nothing
else; who causes whom is not learned. That holds if levels set their nodes in a linear system,
and not if they change how a node answers its causes.

Phases k = 0, 1, ..., P with P = ceil(log2(bound / epsilon)) and gamma = epsilon 2^(P - k - 1):
    n = 4 noise_std^2 m ln(P / delta) / gamma^2 rounds, m levels being left in total, in which every
    node goes through its levels that are left, equally often and in random combinations;
    least squares gives every level's term, and levels gamma below the best of their node go.
Phases with n < m cannot see every level and are left out, as in the published program; the last one
then takes m rounds. It finds the best setting; as a policy it plays that setting from then on.
Nodes with one level left stay there: to play others costs reward and tells nothing new.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from causalarms.arrays import FloatArray, Intervention
from causalarms.checks import fraction, number
from causalarms.errors import SettingError
from causalarms.limits import MAX_LEVELS
from causalarms.policies.base import EXPLOIT, EXPLORE, Pending, Policy, Reason, Suggestion
from causalarms.state import Declared


class Additive(Policy):
    """Is told the scatter of the reward and a bound on its spread; learns no graph.

    epsilon     loss of the setting found that does not matter
    delta       probability with which it may lose more
    bound       of the difference between the rewards of two settings
    noise_std   of the reward
    """

    keeps_constraints: ClassVar[bool] = False  # every level with every other at first
    learned: ClassVar[Declared] = {
        **dict.fromkeys(("_products", "_targets", "_alive", "_seen", "_terms"), np.ndarray),
        "_phase": int,
    }

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        epsilon: float = 0.5,
        delta: float = 0.1,
        bound: float = 100.0,
        noise_std: float = 1.0,
        regimes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(n_nodes, reward, regimes=regimes)
        self.epsilon = number("epsilon", epsilon, above=0.0, maximum=1e50)
        self.bound = number("bound", bound, above=0.0, maximum=1e50)
        self.delta = fraction("delta", delta)
        self.noise_std = number("noise_std", noise_std, above=0.0, maximum=1e50)
        if self.bound < self.epsilon:
            raise SettingError(
                f"epsilon={self.epsilon:g} is above the bound={self.bound:g} on the spread of the "
                "reward: there would be nothing to tell apart"
            )
        n_levels = int(self.regimes.sum())
        if n_levels > MAX_LEVELS:
            raise SettingError(
                f"regimes: additive learns a term for each of {n_levels} levels; at most "
                f"{MAX_LEVELS}"
            )
        self.n_phases = math.ceil(math.log2(self.bound / self.epsilon))
        exist = self._regimes.existing
        # Terms are relative to the first level of a node: next to a constant, columns of all levels
        # of a node would be linearly dependent.
        self._column = np.zeros(exist.shape, dtype=np.int64)
        extra = exist.copy()
        extra[0] = False
        self._column[extra] = 1 + np.arange(extra.sum())
        size = 1 + int(extra.sum())
        self._products = np.zeros((size, size))  # of this phase: X^T X, X = (1, levels)
        self._targets = np.zeros(size)  # X^T y
        self._alive = exist.copy()
        self._seen = np.zeros(exist.shape, dtype=np.int64)  # in this phase
        self._terms = np.zeros(size)  # of the last phase that ended
        self._phase = self._next_phase(0)

    @property
    def committed(self) -> bool:
        """Whether exploration is over."""
        return self._phase > self.n_phases or bool((self._alive.sum(axis=0) == 1).all())

    def tolerance(self, phase: int) -> float:
        """gamma: levels so far below the best of their node go."""
        return self.epsilon * 2.0 ** (self.n_phases - phase - 1)

    def n_rounds(self, phase: int) -> int:
        """How many a phase takes with the levels that are left."""
        left = int(self._alive.sum())
        least = left if phase >= self.n_phases else 0  # the last is never left out
        logarithm = math.log(max(self.n_phases, 1) / self.delta)
        wanted = 4 * self.noise_std**2 * left * logarithm / self.tolerance(phase) ** 2
        return max(math.ceil(wanted), least)

    def _next_phase(self, phase: int) -> int:
        """The first from here on that is long enough to see every level."""
        while phase <= self.n_phases and self.n_rounds(phase) < self._alive.sum():
            phase += 1
        return phase

    def suggest(self, rng: Generator, *, pending: Pending = ()) -> Suggestion:
        if self.committed:
            return self._best()
        chosen = np.zeros(self.n_nodes, dtype=np.uint8)
        for node in range(self.n_nodes):
            levels = np.flatnonzero(self._alive[:, node])
            seen = self._seen[levels, node]
            chosen[node] = rng.choice(levels[seen == seen.min()])
        return Suggestion(chosen, EXPLORE, why=Reason("levels"))

    def _best(self) -> Suggestion:
        terms = np.where(self._alive, self.terms(), -np.inf)
        best = terms.argmax(axis=0)
        mean = float(self._terms[0] + terms[best, np.arange(self.n_nodes)].sum())
        return Suggestion(best.astype(np.uint8), EXPLOIT, mean, why=Reason("all nodes best"))

    def terms(self) -> FloatArray:
        """What each level adds to the reward beyond its node's first, (R, N)."""
        return np.where(self._column > 0, self._terms[self._column], 0.0)

    def learn(self, a: Intervention, x: FloatArray) -> None:
        if self.committed:
            return
        columns = self._column[a, np.arange(self.n_nodes)]
        row = np.append(0, columns[columns > 0])
        self._products[np.ix_(row, row)] += 1.0
        self._targets[row] += x[self.reward]
        self._seen[a, np.arange(self.n_nodes)] += 1
        if self._phase_is_over():
            self._eliminate()

    def _phase_is_over(self) -> bool:
        wanted = self.n_rounds(self._phase)
        left = self._alive.sum(axis=0)
        open_ = self._alive & (left > 1)
        return self._products[0, 0] >= wanted and bool((self._seen >= wanted // left)[open_].all())

    def _eliminate(self) -> None:
        # least squares of least norm: nodes with one level left make columns dependent
        self._terms[:] = np.linalg.lstsq(self._products, self._targets, rcond=None)[0]
        terms = np.where(self._alive, self.terms(), -np.inf)
        gaps = terms.max(axis=0) - terms
        self._alive = self._alive & ((gaps < self.tolerance(self._phase)) | (gaps == 0))
        self._products[:] = self._targets[:] = 0.0
        self._seen[:] = 0
        self._phase = self._next_phase(self._phase + 1)
