"""Gram moments of every mechanism: all that a regression of a node on any parents needs.

For mechanism (regime, node) the matrix sum over its samples of z z^T with z = (x_1 .. x_N, 1).
The constant serves known noise means (the target is x_i - nu_i) and unknown ones (an intercept).
A told round costs O(N^2) per mechanism it touches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, IntArray, Intervention
from causalarms.errors import DataError
from causalarms.kernels import kernel
from causalarms.sem.regimes import existing, regime_counts
from causalarms.statistics.dataset import Dataset


class Moments:
    """`gram` (R, N, N+1, N+1) and `counts` (R, N); `regimes` says how many each node has (two)."""

    def __init__(
        self, n_nodes: int, *, cap: int | None = None, regimes: npt.ArrayLike | None = None
    ) -> None:
        self.cap = cap  # only the first so many samples of a mechanism count
        self.n_regimes = regime_counts(regimes, n_nodes)  # (N,)
        shape = int(self.n_regimes.max()), n_nodes
        self.gram: FloatArray = np.zeros((*shape, n_nodes + 1, n_nodes + 1))
        self.counts: IntArray = np.zeros(shape, dtype=np.int64)
        self._nodes, self._z = np.arange(n_nodes), np.ones(n_nodes + 1)  # used by every `add`

    @classmethod
    def of(cls, data: Dataset, change: Callable[[FloatArray], FloatArray] | None = None) -> Moments:
        """The moments of the samples each mechanism of a dataset learns from, in other units."""
        moments = cls(data.n_nodes, regimes=data.n_regimes)
        for regime, node in np.argwhere(existing(data.n_regimes)).tolist():
            moments.recompute(data, regime, node, change)
        return moments

    def add(self, values: FloatArray, interventions: Intervention) -> None:
        """One round: every node's current mechanism learns from it."""
        # Not a kernel: the first, random rounds of a study then need no compiler.
        nodes, regimes = self._nodes, interventions
        if self.cap is not None:
            nodes = nodes[self.counts[regimes, nodes] < self.cap]
            regimes = regimes[nodes]
        z = self._z
        z[:-1] = values
        self.gram[regimes, nodes] += z[:, None] * z
        self.counts[regimes, nodes] += 1

    def recompute(
        self,
        data: Dataset,
        regime: int,
        node: int,
        change: Callable[[FloatArray], FloatArray] | None = None,
    ) -> None:
        """One mechanism from its samples, e.g. after it forgot some."""
        values = data.samples(regime, node)
        samples = np.ascontiguousarray((values if change is None else change(values)).T)
        self.gram[regime, node] = gram_matrix(samples)
        self.counts[regime, node] = samples.shape[1]

    def forget(self, regime: int, node: int) -> None:
        """One mechanism starts from nothing."""
        self.gram[regime, node] = 0.0
        self.counts[regime, node] = 0

    def state(self) -> dict[str, Any]:
        return {"gram": self.gram.copy(), "counts": self.counts.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self.gram[:] = state["gram"]
        self.counts[:] = state["counts"]
        if not (self.gram[:, :, -1, -1] == self.counts).all():
            raise DataError("the moments are not those of as many samples as were counted")


@kernel
def gram_matrix(samples: FloatArray) -> FloatArray:
    """Sum of z z^T with z = (x, 1) over samples given as one contiguous row per node, (N, n).

    A plain loop: for a few dozen nodes, starting the threads of a BLAS takes longer than the sum.
    """
    n_nodes, n_samples = samples.shape
    gram = np.empty((n_nodes + 1, n_nodes + 1))
    for i in range(n_nodes):
        for j in range(i + 1):
            total = 0.0
            for t in range(n_samples):
                total += samples[i, t] * samples[j, t]
            gram[i, j] = gram[j, i] = total
        gram[i, n_nodes] = gram[n_nodes, i] = samples[i].sum()
    gram[n_nodes, n_nodes] = n_samples
    return gram
