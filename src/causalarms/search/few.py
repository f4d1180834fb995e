"""Few interventions are compared one by one, in plain NumPy.

Nothing has to be compiled for that: the first answer about a small system takes no time. Terms are
added in the order of `ascent.value_of`, so values are the same to the last bit, but where a tree
finds what the ascent missed and adds in another order.
"""

from __future__ import annotations

import math

import numpy as np

from causalarms.limits import MAX_FEW
from causalarms.search.ascent import TIE
from causalarms.search.factors import Levels
from causalarms.search.rules import BoolArray, FloatArray, IntArray, Rules, keeps
from causalarms.search.stages import Posed


def best_of_few(posed: Posed) -> tuple[Levels, float, int] | None:
    """The first of the best levels (F,), their value, and how many were compared.

    None where there are many, or where they cost something. What does not reach the reward rests.
    """
    weights, mean, order, reward, rules, _ = posed
    edges = np.logical_or.reduce(weights.astype(bool), axis=0)
    reaching = _reaching(edges, order, reward)
    sizes = rules.domain.sum(axis=1)
    if rules.n_boxes == 0 and not all(reaching):
        rests = np.ones(len(sizes), dtype=bool)
        rests[rules.act_factor[np.repeat(reaching, np.diff(rules.act_start))]] = False
        sizes[rests] = 1
    if math.prod(sizes.tolist()) > MAX_FEW or rules.cost.any():
        return None
    lowest = rules.domain.argmax(axis=1)
    domain = rules.domain & (sizes[:, None] > 1)
    domain[np.arange(len(sizes)), lowest] = True
    rows = _products(domain)
    levels = rows[keeps(rules, rows)]
    regimes, reference = _regimes(rules, levels), _regimes(rules, lowest[None])[0]

    nodes = np.arange(len(order))
    natural = mean[reference, nodes]  # (N,)
    base = weights[reference, :, nodes].T  # (N, N)
    weights = base + (weights - base)  # as the search rounds them
    means = np.zeros((len(order), len(levels)))  # (N, n)
    for at, node in enumerate(order):
        if reaching[node]:
            of_node = regimes[:, node]
            total = natural[node] + (mean[:, node] - natural[node])[of_node]
            for parent in order[:at]:
                if edges[parent, node]:
                    total += weights[of_node, parent, node] * means[parent]
            means[node] = total
    values = means[reward]
    top = int(values.argmax())
    chosen = regimes[top]
    shift = np.abs(natural) + np.abs(mean[chosen, nodes] - natural)
    tie = TIE * _scale(weights[chosen, :, nodes], shift, means[:, top], order, reward)
    first = int((values >= values[top] - tie).argmax())
    return levels[first].astype(np.uint8), float(values[first]), len(levels)


def _reaching(edges: BoolArray, order: IntArray, reward: int) -> list[bool]:
    """Which nodes have a path to the reward; sets of nodes are the bits of a number."""
    n_nodes, width = len(edges), (len(edges) + 7) // 8
    parents = np.packbits(edges, axis=0, bitorder="little").T.tobytes()
    reaching, everybody = 1 << reward, (1 << n_nodes) - 1
    for node in order[::-1].tolist():
        if reaching == everybody:
            break
        if reaching >> node & 1:
            reaching |= int.from_bytes(parents[node * width : (node + 1) * width], "little")
    return [bool(reaching >> node & 1) for node in range(n_nodes)]


def _products(domain: BoolArray) -> IntArray:
    """All combinations of levels, (n, F), in lexicographic order."""
    sizes = domain.sum(axis=1)
    number, repeats = np.arange(sizes.prod()), int(sizes.prod())
    rows = np.empty((repeats, len(domain)), dtype=np.int64)
    for factor, size in enumerate(sizes):
        repeats //= size
        rows[:, factor] = np.flatnonzero(domain[factor])[number // repeats % size]
    return rows


def _regimes(rules: Rules, levels: IntArray) -> IntArray:
    """(n, N) for levels (n, F)."""
    n_nodes = len(rules.act_start) - 1
    found = np.empty((len(levels), n_nodes), dtype=np.int64)
    for node in range(n_nodes):
        acting = slice(rules.act_start[node], rules.act_start[node + 1])
        at = levels[:, rules.act_factor[acting]] @ rules.act_stride[acting]
        found[:, node] = rules.table[rules.table_start[node] + at]
    return found


def _scale(
    weights: FloatArray,  # (N, N) as [child, parent]
    shift: FloatArray,  # (N,) absolute terms that are no parent's
    means: FloatArray,  # (N,)
    order: IntArray,
    reward: int,
) -> float:
    """The sum of the absolute terms of one reward."""
    terms = shift + np.abs(weights * means).sum(axis=1)
    flow = np.zeros(len(order))
    flow[reward] = 1.0
    for node in order[::-1]:
        if flow[node] != 0.0:
            flow += weights[node] * flow[node]
    return float(np.abs(flow) @ terms)
