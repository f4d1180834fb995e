"""What no choice of the undecided regimes can exceed.

Deciding the nodes from the last to the first keeps the reward a linear function c of the means of
the undecided ones. An undecided node k adds c_k (x + a z) - cost a, where x is its natural mean and
z what the intervention adds; both are linear in earlier means. With z between `low` and `high`, the
better of a = 0 and a = 1 lies below the chord of max(0, c_k z - cost) over that range: a mixture of
both regimes plus a constant. Putting the chord in place of the node keeps the function linear, so
one backward pass of the cost of one expected reward gives the bound. Unlike a sum over intervals of
means it keeps the cancellation between paths. (For the hidden units max(0, .) of a neural network
the same relaxation is known as CROWN, Zhang et al. 2018.)

At most k interventions: row q of the ranges holds for at most q interventions on earlier nodes, and
each intervention pays a price that comes back `left` times (a Lagrange multiplier).
"""

from __future__ import annotations

from typing import NamedTuple

from causalarms.kernels import kernel
from causalarms.sem.arm_problem import FREE, FloatArray, Problem


class Ranges(NamedTuple):
    """Of z, what intervening on a node adds to its mean; (rows, n), one row where unlimited."""

    low: FloatArray
    high: FloatArray


@kernel
def gain_range(
    problem: Problem, ranges: Ranges, k: int, c: float, left: int, cost: float
) -> tuple[float, float]:
    """Smallest and largest c z - cost of position k."""
    row = left if problem.limited else 0
    above = max(left - 1, 0) if problem.limited else 0  # this intervention is one of those left
    if c > 0.0:
        return c * ranges.low[row, k] - cost, c * ranges.high[above, k] - cost
    return c * ranges.high[row, k] - cost, c * ranges.low[above, k] - cost


@kernel
def upper(
    problem: Problem,
    ranges: Ranges,
    c: FloatArray,  # overwritten
    last: int,  # positions up to here are undecided
    constant: float,
    left: int,
    price: float,
) -> tuple[float, float]:
    """A bound on constant + c . means - costs, and how many interventions its mixture makes."""
    total, mixed = constant + price * left, 0.0
    for k in range(last, -1, -1):
        forced, ck = problem.forced[k], c[k]
        share = 0.0
        if forced == 1:
            share = 1.0
            total -= problem.cost[k]
        elif forced == FREE and (left > 0 or not problem.limited):
            cost = problem.cost[k] + price
            least, most = gain_range(problem, ranges, k, ck, left, cost)
            if most > 0.0:
                if least >= 0.0:
                    share = 1.0
                    total -= cost
                else:
                    share = most / (most - least)
                    total -= share * (cost + least)
                mixed += share
        if ck != 0.0:
            total += ck * (problem.base_mean[k] + share * problem.diff_mean[k])
            for j in range(k):
                c[j] += ck * (problem.base[k, j] + share * problem.diff[k, j])
    return total, mixed


@kernel
def best_price(
    problem: Problem, ranges: Ranges, c: FloatArray, last: int, constant: float, left: int
) -> tuple[float, float]:
    """The least bound over prices on a grid, and its price."""
    work = c.copy()
    best, mixed = upper(problem, ranges, work, last, constant, left, 0.0)
    chosen = 0.0
    if problem.limited and mixed > left > 0:
        scale = abs(best) + abs(constant) + 1e-300
        for step in range(24):
            price = scale * 2.0 ** (-step)
            work[: last + 1] = c[: last + 1]
            bound, _ = upper(problem, ranges, work, last, constant, left, price)
            if bound < best:
                best, chosen = bound, price
    return best, chosen
