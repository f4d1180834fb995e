"""Good interventions quickly: coordinate ascent with kicks, the incumbent of the search.

One backward sweep improves all nodes one after another at the cost of one expected reward: the
flow from a node to the reward depends on later regimes only, its mean on earlier ones only.
Starts and kicks come from a fixed sequence, so the same problem gives the same answer.
"""

from __future__ import annotations

import numpy as np

from causalarms.kernels import kernel
from causalarms.sem.arm_problem import FREE, Arm, FloatArray, Problem, permitted

TIE = 1e-12  # of the sum of the absolute terms: rounding is about N times 1e-16 of it


@kernel
def value_of(problem: Problem, arm: Arm, mean: FloatArray) -> float:
    """Expected reward minus costs; writes the means."""
    value = 0.0
    for k in range(len(arm)):
        total = problem.base_mean[k] + arm[k] * problem.diff_mean[k]
        for j in range(k):
            total += (problem.base[k, j] + arm[k] * problem.diff[k, j]) * mean[j]
        mean[k] = total
        value += problem.root[k] * total - arm[k] * problem.cost[k]
    return value


@kernel
def tie_width(problem: Problem, arm: Arm) -> float:
    """Values closer than this count as equal: TIE times sum_k |flow_k| (sum of |terms| of k)."""
    n = len(arm)
    mean, flow, scale = np.empty(n), problem.root.copy(), 0.0
    value_of(problem, arm, mean)
    for k in range(n - 1, -1, -1):
        terms = abs(problem.base_mean[k]) + arm[k] * abs(problem.diff_mean[k])
        for j in range(k):
            weight = problem.base[k, j] + arm[k] * problem.diff[k, j]
            terms += abs(weight * mean[j])
            flow[j] += weight * flow[k]
        scale += abs(flow[k]) * terms + abs(problem.cost[k])
    return TIE * scale


@kernel
def climb(problem: Problem, arm: Arm, mean: FloatArray, flow: FloatArray) -> float:
    """Sweep until no single flip that is allowed helps; `arm` is allowed and stays so."""
    n = len(arm)
    value = value_of(problem, arm, mean)
    n_on = 0
    for k in range(n):
        n_on += arm[k] if problem.forced[k] == FREE else 0
    while True:
        flow[:] = problem.root
        for k in range(n - 1, -1, -1):
            if problem.forced[k] == FREE:
                gain = problem.diff_mean[k]
                for j in range(k):
                    gain += problem.diff[k, j] * mean[j]
                gain = flow[k] * gain - problem.cost[k]
                wanted = 1 if gain > 0.0 else 0
                full = wanted == 1 and n_on >= problem.limit
                if wanted != arm[k] and gain != 0.0 and not full:
                    arm[k] = wanted
                    if problem.in_clause[k] and not permitted(problem.clauses, arm, 0):
                        arm[k] = 1 - wanted
                    else:
                        n_on += 1 if wanted == 1 else -1
            flow_k = flow[k]
            if flow_k != 0.0:
                for j in range(k):
                    flow[j] += flow_k * (problem.base[k, j] + arm[k] * problem.diff[k, j])
        swept = value_of(problem, arm, mean)
        if not swept > value + 1e-12 * abs(value):
            return swept
        value = swept


@kernel
def kicked_climb(problem: Problem, start: Arm, kicks: int) -> tuple[Arm, float]:
    """The best of climbs from the start, and from flips of 1, 2, .. 15 nodes of the best so far."""
    n = len(start)
    best, arm = start.copy(), start.copy()
    mean, flow = np.empty(n), np.empty(n)
    value = climb(problem, best, mean, flow)
    random = np.uint64(0x9E3779B97F4A7C15)
    for kick in range(kicks):
        arm[:] = best
        n_on = 0
        for k in range(n):
            n_on += arm[k] if problem.forced[k] == FREE else 0
        for _ in range(1 + kick % min(n, 15)):
            random ^= random << np.uint64(13)  # xorshift
            random ^= random >> np.uint64(7)
            random ^= random << np.uint64(17)
            k = int(random % np.uint64(n))
            if problem.forced[k] != FREE or (arm[k] == 0 and n_on >= problem.limit):
                continue
            arm[k] = 1 - arm[k]
            if problem.in_clause[k] and not permitted(problem.clauses, arm, 0):
                arm[k] = 1 - arm[k]
            else:
                n_on += 1 if arm[k] == 1 else -1
        climbed = climb(problem, arm, mean, flow)
        if climbed > value:
            value = climbed
            best[:] = arm
    return best, value
