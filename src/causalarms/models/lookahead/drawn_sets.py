"""Parent sets of every mechanism in each of a few orders, drawn where they cannot all be summed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.models.lookahead.parent_sets import ParentSets
from causalarms.posterior.orders import without
from causalarms.posterior.sampled import SampledPosterior

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def drawn_sets(
    posterior: SampledPosterior, orders: IntArray, rng: np.random.Generator, n_points: int
) -> ParentSets:
    drawn = np.array(
        [[posterior.draw_parents(order, rng)[0] for _ in range(n_points)] for order in orders]
    )
    return ParentSets(*collected(drawn, posterior.settings.regimes))


@kernel
def collected(
    adjacency: BoolArray,  # (O, S, R, N, N)
    regimes: IntArray,  # (N,)
) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray, IntArray]:
    """The fields of `ParentSets`."""
    n_orders, n_points, most, n, _ = adjacency.shape
    parents = np.empty(n_orders * most * n * n_points, dtype=np.int64)
    first = np.zeros((most, n), dtype=np.int64)
    end = np.zeros((most, n), dtype=np.int64)
    which = np.zeros((n_orders, most, n, n_points), dtype=np.int64)
    share = np.zeros((n_orders, most, n, n_points))
    count = np.zeros((n_orders, most, n), dtype=np.int64)
    total = 0
    for node in range(n):
        for regime in range(regimes[node]):
            first[regime, node] = total
            for o in range(n_orders):
                for point in range(n_points):
                    mask = 0
                    for parent in range(n):
                        if adjacency[o, point, regime, parent, node]:
                            mask |= 1 << parent
                    named = without(mask, node)
                    at = first[regime, node]
                    while at < total and parents[at] != named:
                        at += 1
                    if at == total:
                        parents[at] = named
                        total += 1
                    place = 0
                    while place < count[o, regime, node] and which[o, regime, node, place] != at:
                        place += 1
                    which[o, regime, node, place] = at
                    share[o, regime, node, place] += 1.0 / n_points
                    count[o, regime, node] = max(count[o, regime, node], place + 1)
            end[regime, node] = total
    return parents[:total].copy(), first, end, which, share, count
