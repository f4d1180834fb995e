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

from typing import NamedTuple

import numpy as np

from causalarms.arrays import FloatArray, IntArray

# Sets of parents and acting factors that are scored in all levels of free factors, per node
MAX_SETS_OF_ALL = 2**13  # up to here every factor may be free: a few ms a round
MAX_SETS_OF_ONE = 2**18  # up to here one may, that which explains most: 0.1 s, and 100 MiB


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
    """Of draws under hypothesis 0, (n, R, M): the cell is the regime; -1 where there is none."""
    most = int(regimes.max())
    found = np.repeat(np.arange(most)[:, None], len(regimes), axis=1)
    found[found >= regimes] = -1
    found[:, n_measured:] = -1
    return np.repeat(found[None], n_draws, axis=0)
