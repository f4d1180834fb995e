"""Missing values by data augmentation (Tanner and Wong, 1987).

Two steps take turns. A system is drawn from the posterior given completed rounds. The missing
values of all rounds are drawn from their distribution given this system and what was measured, a
Gaussian. The completed rounds then have full weight, for all mechanisms: what is drawn carries its
own doubt.
The turns are a Markov chain whose distribution is the posterior of values and systems given what
was measured. So that posterior is the average of those given the completed rounds of a chain, or of
several chains that do not depend on each other (`PosteriorMixture`).

With e = S^-1 ((I - B^T) x - b), which is standard normal, and J its slopes by the missing values,
their precision is J^T J, and their mean follows from the e of the measured ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray
from causalarms.kernels import kernel
from causalarms.posterior.base import Draws, OrderedGraph, Posterior
from causalarms.state import nested, unnested
from causalarms.statistics.normal_equations import cholesky, solve_lower, solve_transposed

LOST_TO_ROUNDING = 1e-12  # of a precision: what is left of it below that is rounding


def complete_rounds(
    values: FloatArray,  # (rounds, N), nan if missing
    regimes: npt.NDArray[np.uint8],  # (rounds, N)
    taught: BoolArray,  # (rounds, N) whether the mechanism of the draw made the value
    draws: Draws,  # one
    rng: np.random.Generator,
    bounds: FloatArray,  # (2, N), which no drawn value passes
) -> FloatArray:
    """The rounds with missing values drawn given the system and what was measured."""
    found: FloatArray = _complete_rounds(
        values,
        np.ascontiguousarray(draws.seen(0, regimes)),
        taught,
        draws.weights[0],
        draws.intercept[0],
        draws.noise_std[0],
        rng.standard_normal(values.shape),
        bounds,
    )
    return found


@kernel
def _complete_rounds(
    values: FloatArray,
    seen: npt.NDArray[np.uint8],  # (rounds, N) which of its mechanisms every node follows
    taught: BoolArray,
    weights: FloatArray,  # (R, N, N)
    intercept: FloatArray,  # (R, N)
    noise_std: FloatArray,  # (R, N)
    normals: FloatArray,  # (rounds, N)
    bounds: FloatArray,
) -> FloatArray:
    n = values.shape[1]
    row, completed = np.empty(n), values.copy()
    for t in range(len(values)):
        missing = np.flatnonzero(np.isnan(values[t]))
        k = len(missing)
        row[:] = values[t]
        row[missing] = 0.0
        slopes, error = np.zeros((n, k)), np.zeros(n)
        for i in range(n):
            scale = noise_std[seen[t, i], i]
            if scale == 0.0:
                continue  # it is set: never missing, and caused by nothing
            if not taught[t, i] and not math.isnan(values[t, i]):
                continue  # what made it is no longer known, and says nothing about its causes
            error[i] = row[i] - intercept[seen[t, i], i]
            for j in range(n):
                error[i] -= weights[seen[t, i], j, i] * row[j]
            error[i] /= scale
            for m in range(k):
                slopes[i, m] -= weights[seen[t, i], missing[m], i] / scale
                if missing[m] == i:
                    slopes[i, m] += 1.0 / scale
        precision = np.zeros((k + 1, k + 1))  # the last row would be a right-hand side
        drawn = np.zeros(k)
        for a in range(k):
            for i in range(n):
                drawn[a] -= slopes[i, a] * error[i]
                for c in range(a + 1):
                    precision[a, c] += slopes[i, a] * slopes[i, c]
        cholesky(precision, k, 0.0, 0.0, LOST_TO_ROUNDING)
        solve_lower(precision, drawn)
        drawn += normals[t, :k]
        solve_transposed(precision, drawn)
        for a in range(k):
            low, high = bounds[0, missing[a]], bounds[1, missing[a]]
            # draws may be so wild that nothing follows from them
            value = drawn[a] if math.isfinite(drawn[a]) else 0.5 * (low + high)
            completed[t, missing[a]] = min(max(value, low), high)
    return completed


@kernel
def add_rounds(
    gram: FloatArray,  # (R, N, N+1, N+1), added to
    values: FloatArray,  # (rounds, N), complete
    regimes: npt.NDArray[np.uint8],  # (rounds, N)
    taught: BoolArray,  # (rounds, N) whose mechanism learns from the round
) -> None:
    n = values.shape[1]
    z = np.ones(n + 1)
    for t in range(len(values)):
        z[:n] = values[t]
        for node in range(n):
            if taught[t, node]:
                matrix = gram[regimes[t, node], node]
                for i in range(n + 1):
                    for j in range(n + 1):
                        matrix[i, j] += z[i] * z[j]


class PosteriorMixture:
    """The average of the posteriors given rounds that were completed in different ways.

    While all rounds are complete there is one of them, `parts[0]`. `turn` is the part that decides
    this time if only one can.
    """

    def __init__(self, make: Callable[[], Posterior]) -> None:
        self._make = make  # a posterior that knows nothing yet
        self.parts: list[Posterior] = [make()]
        self.turn = 0

    def split(self, n: int) -> None:
        """Have n parts that know what the first knows; nothing if there are as many."""
        if len(self.parts) == n:
            return
        known = self.parts[0].state()
        self.parts = [self.parts[0], *(self._make() for _ in range(1, n))]
        for part in self.parts[1:]:
            part.restore(known)

    @property
    def deciding(self) -> Posterior:
        """The part whose turn it is."""
        return self.parts[self.turn % len(self.parts)]

    @property
    def edge_probability(self) -> FloatArray:
        """Posterior probability of every edge, (R, N, N)."""
        if len(self.parts) == 1:
            return self.parts[0].edge_probability
        return np.asarray(np.mean([part.edge_probability for part in self.parts], axis=0))

    def most_probable(self) -> OrderedGraph:
        """The most probable order and graphs, jointly, of the part whose turn it is."""
        return self.deciding.most_probable()

    def retire(self, regime: int, node: int) -> None:
        """The mechanism was replaced: another one produces what comes next."""
        for part in self.parts:
            part.retire(regime, node)

    def draw(self, rng: np.random.Generator, n: int = 1) -> Draws:
        """Draws of the whole system, from the parts in turn, beginning with any of them."""
        m = len(self.parts)
        if m == 1:
            return self.parts[0].draw(rng, n)
        first = int(rng.integers(m))
        place = (first + np.arange(n)) % m
        counts = np.bincount(place, minlength=m).tolist()
        drawn = [part.draw(rng, k) for part, k in zip(self.parts, counts, strict=True) if k]
        at = np.empty(n, dtype=np.int64)  # the number of each draw among those of all parts
        at[np.argsort(place, kind="stable")] = np.arange(n)
        return _joined(drawn, at)

    def state(self) -> dict[str, Any]:
        """The states of all parts."""
        found: dict[str, Any] = {"parts": len(self.parts), "turn": self.turn}
        for number, part in enumerate(self.parts):
            found |= nested(str(number), part.state())
        return found

    def restore(self, state: dict[str, Any]) -> None:
        """Into a mixture of one part that knows nothing yet."""
        self.split(int(state["parts"]))
        self.turn = int(state["turn"])
        for number, part in enumerate(self.parts):
            part.restore(unnested(str(number), state))


def _joined(drawn: list[Draws], at: npt.NDArray[np.int64]) -> Draws:
    """All draws, in this order."""
    if any(draws.by is not None for draws in drawn):
        own = np.arange(drawn[0].order.shape[1])
        drawn = [
            draws._replace(by=np.tile(own, (len(draws.order), 1))) if draws.by is None else draws
            for draws in drawn
        ]
    fields = zip(*drawn, strict=True)
    # in C order: kernels are compiled again for every other layout
    return Draws(*(None if f[0] is None else np.concatenate(f)[at] for f in fields))  # type: ignore[arg-type]
