"""An order with little weight on edges against it, for more nodes than all orders can be tried of.

Nodes without weight from others come first and those without weight to others last, as long as
there are any, else the one that gives most more than it gets (Eades, Lin and Smyth, 1993): edges
without a cycle all follow the order. Then nodes move, one at a time, wherever that saves most.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@kernel
def greedy_order(weight: FloatArray) -> IntArray:
    """From weights (N, N) as [parent, child]."""
    n = len(weight)
    order = np.empty(n, dtype=np.int64)
    left = np.ones(n, dtype=np.bool_)
    first, last = 0, n - 1
    while first <= last:
        chosen, most, to_front = -1, -np.inf, True
        for i in range(n):
            if not left[i]:
                continue
            gives, gets = 0.0, 0.0
            for j in range(n):
                if left[j] and j != i:
                    gives += weight[i, j]
                    gets += weight[j, i]
            if gets == 0.0 or gives == 0.0:
                chosen, to_front = i, gets == 0.0
                break
            if gives - gets > most:
                chosen, most = i, gives - gets
        left[chosen] = False
        if to_front:
            order[first] = chosen
            first += 1
        else:
            order[last] = chosen
            last -= 1
    return order


@kernel
def improve_order(weight: FloatArray, order: IntArray) -> None:
    """Move single nodes while that lowers the weight of edges against the order."""
    n = len(order)
    least = 1e-12 * weight.sum()  # no move for the sake of rounding
    moved = True
    while moved:
        moved = False
        for node in range(n):
            home = 0
            while order[home] != node:
                home += 1
            best, saved = home, least
            for step in (-1, 1):
                gain, position = 0.0, home
                while 0 <= position + step < n:
                    position += step
                    other = order[position]
                    gain += step * (weight[other, node] - weight[node, other])
                    if gain > saved:
                        best, saved = position, gain
            while home != best:
                step = 1 if best > home else -1
                order[home] = order[home + step]
                home += step
                moved = True
            order[home] = node


def feedback_order(first: FloatArray, weight: FloatArray) -> IntArray:
    """No edge of `first` against the order where `first` has no cycle; little of `weight`."""
    order = greedy_order(first)
    improve_order(weight, order)
    return order
