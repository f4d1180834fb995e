"""Which factors are summed over, if they are too many: those that explain most of a node.

Gains are of log evidence at the largest scale of the prior, with all other nodes as parents or with
none: a node may carry what a factor does, or hide it.
"""

from __future__ import annotations

import math

import numpy as np

from causalarms.arrays import FloatArray, IntArray
from causalarms.posterior.prior import KernelPrior
from causalarms.posterior.sharing import FreeFactors

# Nats by which a free factor must explain a node better than a shifting one before it is summed
# over. With 0, draws of the first rounds were so wild that worlds cost half as much again.
WORTH_SCORING = 4.0
SAME_ROUNDS = 1e-6  # difference of two counts of rounds below which they are equal


def factor_gains(gram: FloatArray, prior: KernelPrior) -> FloatArray:
    """How much each factor explains of each node by shifting it, (F, N)."""
    n_columns = len(prior.factors)
    m = gram.shape[2] - 1
    n = m - n_columns
    found = np.zeros((len(prior.chances), n))
    total = gram.sum(axis=0)  # over regimes
    for node in range(n):
        others = [j for j in range(n) if j != node]
        for parents in (others, []):
            without = _log_evidence(total[node], node, parents, prior)
            for f in range(len(found)):
                own = [n + c for c in range(n_columns) if prior.factors[c] == 1 << f]
                gain = _log_evidence(total[node], node, [*parents, *own], prior) - without
                found[f, node] = max(found[f, node], gain)
    return found


def chosen_factors(gram: FloatArray, prior: KernelPrior, free: FreeFactors) -> IntArray:
    """The factors that may be free, (J, N); of one per node the one that explains it best so.

    As in `factor_gains`, with all other nodes as parents or none, compared with a shift. Not
    those whose levels hold other rounds than the node learns from: rounds from before a change of
    the node, or with missing values.
    """
    n_slots, n = prior.cells.log_prior.shape[0] - 1, prior.cells.log_prior.shape[1]
    m = gram.shape[2] - 1
    precision = float(prior.scales.min())
    found = np.full((n_slots, n), -1)
    for node in range(n):
        others = [j for j in range(n) if j != node]
        gains = np.full(len(free.column), -np.inf)
        for f, column in enumerate(free.column.tolist()):
            levels = gram[: free.levels[f], column]
            same = abs(levels[:, -1, -1].sum() - gram[0, node, -1, -1]) < SAME_ROUNDS
            if not same or prior.cells.end[0, node] > 1 or not free.probability[f, node] > 0.0:
                continue
            own = [c for c in range(n, m) if prior.made_of[c - n] == 1 << f]
            gains[f] = max(
                sum(_log_evidence(each, node, parents, prior, precision) for each in levels)
                - _log_evidence(gram[0, node], node, parents + own, prior)
                for parents in (others, [])
            )
        # stable: of equal gains the first, on every platform
        allowed = np.argsort(-gains, kind="stable")[:n_slots]
        allowed = np.sort(allowed[gains[allowed] > WORTH_SCORING])
        found[: len(allowed), node] = allowed
    return found


def _log_evidence(
    gram: FloatArray,
    node: int,
    regressors: list[int],
    prior: KernelPrior,
    intercept_precision: float | None = None,
) -> float:
    """Log marginal likelihood at the largest scale, with an intercept."""
    precision, m = float(prior.scales.min()), len(gram) - 1
    of_intercept = prior.intercept_precision if intercept_precision is None else intercept_precision
    chosen = [*regressors, m]
    penalty = np.array([precision] * len(regressors) + [of_intercept])
    matrix = gram[np.ix_(chosen, chosen)] + np.diag(penalty)
    squares = gram[node, node] - gram[chosen, node] @ np.linalg.solve(matrix, gram[chosen, node])
    size = 0.5 * np.log(penalty).sum() - 0.5 * np.linalg.slogdet(matrix)[1]
    before, count = prior.noise_shape, gram[-1, -1]
    shape = before + 0.5 * count
    size += math.lgamma(shape) - math.lgamma(before) + before * math.log(before)
    size -= 0.5 * count * math.log(2.0 * math.pi)
    return float(size - shape * math.log(before + 0.5 * max(float(squares), 0.0)))
