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

from causalarms.arrays import FloatArray, IntArray

if TYPE_CHECKING:  # that module imports this one
    from causalarms.posterior.prior import KernelPrior

# Sets of parents and acting factors that are scored in all levels of free factors, per node
MAX_SETS_OF_ALL = 2**13  # up to here every factor may be free: a few ms a round
MAX_SETS_OF_ONE = 2**18  # up to here one may, that which explains most: 0.1 s, and 100 MiB

# Nats by which a free factor must explain a node better than a shifting one before it is summed
# over. With 0, draws of the first rounds were so wild that worlds cost half as much again.
WORTH_SCORING = 4.0
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


def all_cells(regimes: IntArray, n_measured: int, free: FreeFactors, chosen: IntArray) -> Cells:
    """Hypothesis 0, and one for every factor that is chosen for a node.

    chosen   (J, N), the factors that may be free; -1: there are fewer than J
    """
    own = own_cells(regimes, n_measured)
    n_slots, most = len(chosen), len(own.source)
    longest = int(free.levels.max(initial=0))
    log_prior = np.full((1 + n_slots, n_measured), -np.inf)
    first, end = np.zeros((2, *log_prior.shape), dtype=np.int64)
    source, regime, factor = np.zeros((3, most + n_slots * longest, n_measured), dtype=np.int64)
    source[:most], regime[:most], end[0] = own.source, own.regime, own.end[0]
    for node in range(n_measured):
        chance = 0.0
        at = int(regimes[node])
        for slot, f in enumerate(chosen[:, node].tolist(), start=1):
            first[slot, node] = end[slot, node] = at
            if f < 0 or regimes[node] > 1 or not free.probability[f, node] > 0.0:
                continue
            cells = slice(at, at + int(free.levels[f]))
            source[cells, node] = free.column[f]
            regime[cells, node] = np.arange(free.levels[f])
            factor[cells, node] = 1 << f
            at = end[slot, node] = cells.stop
            log_prior[slot, node] = np.log(free.probability[f, node])
            chance += float(free.probability[f, node])
        log_prior[0, node] = np.log1p(-chance)
    return Cells(log_prior, first, end, source, regime, factor)


def first_choice(free: FreeFactors, n_measured: int, n_open: int) -> IntArray:
    """The factors that may be free before any data, (J, N): all, none yet of one, or none."""
    n_sets = 1 << (n_measured - 1 + n_open)
    if free.levels.sum() * n_sets <= MAX_SETS_OF_ALL:
        every = np.arange(len(free.levels))
        return np.repeat(every[:, None], n_measured, axis=1)
    n_slots = 1 if free.levels.max() * n_sets <= MAX_SETS_OF_ONE else 0
    return np.full((n_slots, n_measured), -1)


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
