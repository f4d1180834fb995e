"""What the mechanisms of a node have in common: a few hypotheses per node, summed over exactly.

Hypothesis 0: the node has a mechanism per regime, which factors shift. Each of the others says that
the node, although it has one regime, has a mechanism in every level of one factor: the factor is
*free*, it changes how the node answers its causes and does not only shift it.

A mechanism under a hypothesis is a *cell*. Cells of a node are numbered through, those of
hypothesis 0 first, so that their number is the regime. With S the set before node j,

    local(j, S) = log sum_h p(h) prod_{cells z of h} sum_{P in S} exp(score of P in z) / Z(S)^d

where Z(S) is the prior of all P within S, and d by how many cells h has more than hypothesis 0: a
hypothesis is not less likely because it has more mechanisms whose parents are to be chosen.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:  # that module imports this one
    from causalarms.posterior.prior import KernelPrior

# Sets of parents and acting factors that are scored in all levels of free factors, per node:
# 50 ms a round with 12 nodes
MAX_FREE_SETS = 2**16
SAME_ROUNDS = 1e-6  # difference of two counts of rounds below which they are equal


class Cells(NamedTuple):
    """The hypotheses of every node and their cells: H hypotheses, at most Z cells of a node."""

    log_prior: FloatArray  # (H, N); -inf: impossible for this node
    first: IntArray  # (H, N) its first cell
    end: IntArray  # (H, N) behind its last cell
    source: IntArray  # (Z, N) the node whose regime it is: itself, or a column of a factor
    regime: IntArray  # (Z, N) of the source
    free: IntArray  # (Z, N) the factor whose level it is, as a bit; 0: none


def own_cells(regimes: IntArray, n_measured: int) -> Cells:
    """Hypothesis 0 alone."""
    most = int(regimes[:n_measured].max())
    shape = (most, n_measured)
    return Cells(
        log_prior=np.zeros((1, n_measured)),
        first=np.zeros((1, n_measured), dtype=np.int64),
        end=np.array(regimes[None, :n_measured], dtype=np.int64, order="C"),
        source=np.repeat(np.arange(n_measured)[None], most, axis=0),
        regime=np.repeat(np.arange(most)[:, None], n_measured, axis=1),
        free=np.zeros(shape, dtype=np.int64),
    )


class FreeFactors(NamedTuple):
    """Factors that may change the mechanisms of a node: F factors with L levels at most."""

    probability: FloatArray  # (F, N)
    column: IntArray  # (F,) a node of the system whose regime is the level
    levels: IntArray  # (F,) how many


def all_cells(regimes: IntArray, n_measured: int, free: FreeFactors) -> Cells:
    """Hypothesis 0, and one for every factor that may be free."""
    own = own_cells(regimes, n_measured)
    n_factors, most = len(free.levels), len(own.source)
    with np.errstate(divide="ignore"):
        log_odds = np.log(free.probability / (1.0 - free.probability))
    log_prior = np.full((1 + n_factors, n_measured), -np.inf)
    first, end = np.zeros((2, *log_prior.shape), dtype=np.int64)
    n_cells = most + int(free.levels.sum())
    source, regime, factor = np.zeros((3, n_cells, n_measured), dtype=np.int64)
    source[:most], regime[:most], end[0] = own.source, own.regime, own.end[0]
    for node in range(n_measured):
        at, log_prior[0, node] = int(regimes[node]), 0.0
        for f in range(n_factors):
            first[1 + f, node] = end[1 + f, node] = at
            if regimes[node] > 1 or not free.probability[f, node] > 0.0:
                continue
            cells = slice(at, at + int(free.levels[f]))
            source[cells, node] = free.column[f]
            regime[cells, node] = np.arange(free.levels[f])
            factor[cells, node] = 1 << f
            at = end[1 + f, node] = cells.stop
            log_prior[1 + f, node] = log_odds[f, node]
    # each factor by itself is free or not, given that one at most is
    log_prior -= np.logaddexp.reduce(log_prior, axis=0)
    return Cells(log_prior, first, end, source, regime, factor)


def max_factors_with_free(levels: IntArray, n_measured: int) -> int:
    """How many others may shift a node that has a free factor; -1: no factor may be free.

    levels   of every factor, how many there are

    >>> max_factors_with_free(np.full(7, 2), 12)
    1
    """
    most = MAX_FREE_SETS / max(int(levels.sum()), 1) / (1 << (n_measured - 1))
    return math.floor(math.log2(most)) if most >= 1.0 else -1


def cells_by_regime(regimes: IntArray, n_draws: int, n_measured: int) -> IntArray:
    """The cells of n draws under hypothesis 0, (n, R, M): the regime, or -1 if there is none."""
    most = int(regimes.max())
    found = np.repeat(np.arange(most)[:, None], len(regimes), axis=1)
    found[found >= regimes] = -1
    found[:, n_measured:] = -1
    return np.repeat(found[None], n_draws, axis=0)


# -- which factors are summed over, if they are too many: those that explain most of a node --------
#
# Gains are of log evidence at the largest scale of the prior, with all other nodes as parents or
# with none: a node may carry what a factor does, or hide it.


def factor_gains(gram: FloatArray, prior: KernelPrior) -> FloatArray:
    """How much each factor explains of each node by shifting it, (F, N)."""
    n_columns = len(prior.factors)
    m = gram.shape[2] - 1
    n = m - n_columns
    # Weak effects have gains below zero, and are ranked by them all the same.
    found = np.full((len(prior.chances), n), -np.inf)
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


def comparable(gram: FloatArray, free: FreeFactors) -> BoolArray:
    """Whether the levels of a factor hold the same rounds as a node learns from, (F, N).

    Not if some are from before a change of the node, or have missing values.
    """
    n = free.probability.shape[1]
    own = gram[0, np.arange(n), -1, -1]
    of_levels = gram[:, free.column, -1, -1].sum(axis=0)
    return np.abs(of_levels[:, None] - own) < SAME_ROUNDS


def _log_evidence(gram: FloatArray, node: int, regressors: list[int], prior: KernelPrior) -> float:
    """Log marginal likelihood at the largest scale, with an intercept."""
    precision, m = float(prior.scales.min()), len(gram) - 1
    chosen = [*regressors, m]
    penalty = np.array([precision] * len(regressors) + [prior.intercept_precision])
    matrix = gram[np.ix_(chosen, chosen)] + np.diag(penalty)
    squares = gram[node, node] - gram[chosen, node] @ np.linalg.solve(matrix, gram[chosen, node])
    size = 0.5 * np.log(penalty).sum() - 0.5 * np.linalg.slogdet(matrix)[1]
    before, count = prior.noise_shape, gram[-1, -1]
    shape = before + 0.5 * count
    size += math.lgamma(shape) - math.lgamma(before) + before * math.log(before)
    size -= 0.5 * count * math.log(2.0 * math.pi)
    return float(size - shape * math.log(before + 0.5 * max(float(squares), 0.0)))
