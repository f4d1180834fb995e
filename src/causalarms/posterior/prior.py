"""What is believed of a mechanism before any data: its parents, weights, noise and intercept.

x_i = c + w . x_P + e with e ~ N(0, s^2), and
    P        each possible edge with probability `edge_probability`, or its number of parents first
    s^2      inverse gamma: `noise_shape` and an average precision of 1
    w | s    N(0, (weight_scale s)^2), independently; of several scales each is as likely
    c | s    N(0, (intercept_scale s)^2) if the mean of the noise is unknown
All are in units in which noise has a standard deviation of about one.

A factor is a root of the graph. It stands behind the nodes as columns, one or several numbers per
level: all columns of a factor that acts on a node are regressors of the node (`FactorColumns`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.checks import fraction, number
from causalarms.errors import MemoryLimitError, ModelError, SettingError
from causalarms.kernels import kernel
from causalarms.limits import EXACT_BYTES, MAX_FACTOR_BITS
from causalarms.posterior.sharing import Cells, FreeFactors, all_cells, max_factors_with_free
from causalarms.sem.regimes import Counts, existing, regime_counts
from causalarms.statistics.dataset import Moments

ADAPTIVE = "adaptive"


@dataclass(frozen=True)
class MechanismPrior:
    """Defaults look at no data.

    edge_probability   0.5 favours neither presence nor absence, so that an edge is not missed
                       because of the prior. "adaptive" draws each mechanism's own density
                       uniformly: sparser if data say little, at the price of more misses.
    weight_scale       1.5: weights of order one, in units of the noise. It is no threshold: too
                       large a scale costs an edge log(scale) nats, too small a one shrinks weights.
                       Of several scales, every mechanism weighs them by their evidence
    noise_shape        0.5: as informative as one sample
    noise_scales       several standard deviations of the noise that are equally likely, in its
                       units: how large the noise is may not be known to a factor of a few
    intercept_scale    100: hardly informative; it is part of every parent set, so that its width
                       favours none
    free_probability   that a factor of several levels that acts on a node does not only shift it,
                       but gives it a mechanism per level
    """

    edge_probability: float | str = 0.5
    weight_scale: float | tuple[float, ...] = 1.5
    noise_shape: float = 0.5
    noise_scales: tuple[float, ...] = (1.0,)
    intercept_scale: float = 100.0
    free_probability: float = 0.01

    def __post_init__(self) -> None:
        for name in ("noise_shape", "intercept_scale"):
            number(name, getattr(self, name), above=0.0)
        for scale in self.weight_scales:
            number("weight_scale", scale, above=0.0)
        chance = self.edge_probability
        if not isinstance(chance, str):
            fraction("edge_probability", chance)
        elif chance != ADAPTIVE:
            raise SettingError(f"edge_probability must be a number or 'adaptive', not {chance!r}")

    @property
    def weight_scales(self) -> tuple[float, ...]:
        scale = self.weight_scale
        return scale if isinstance(scale, tuple) else (scale,)

    def log_sizes(self, n_nodes: int) -> FloatArray:
        """Log prior of one parent set by its size, (N,), before the order restricts it.

        Its sum over the subsets of a node's predecessors depends on their number only, and every
        order has one node with each number of them: all orders are equally likely.

        >>> MechanismPrior(edge_probability=0.5).log_sizes(3).round(3).tolist()
        [-1.386, -1.386, -1.386]
        """
        size = np.arange(n_nodes)
        rest = n_nodes - 1 - size
        if isinstance(self.edge_probability, str):
            from scipy.special import betaln

            return np.asarray(betaln(1 + size, 1 + rest))
        return size * np.log(self.edge_probability) + rest * np.log1p(-self.edge_probability)


class FactorColumns(NamedTuple):
    """What stands for F factors behind the N nodes of a system: C columns.

    A column is a node without causes and without noise; its regime is the level of its factor.
    """

    factors: IntArray  # (C,) as bits: a column is a regressor if one of its factors acts
    codes: FloatArray  # (R, C) the value of each column at every level
    chances: FloatArray  # (F, N) the probability that a factor acts on a node; 1: it does
    made_of: IntArray  # (C,) as bits: the factors whose levels the column tells apart


def no_columns(regimes: IntArray) -> FactorColumns:
    codes, chances = np.zeros((int(regimes.max()), 0)), np.zeros((0, len(regimes)))
    none = np.zeros(0, dtype=np.int64)
    return FactorColumns(none, codes, chances, none)


class KernelPrior(NamedTuple):
    """The prior as kernels take it; nan stands for unknown.

    Cells are mechanisms under a hypothesis; the first of a node are those of its regimes
    (`sharing.py`).
    """

    noise_mean: FloatArray  # (Z, N) by cell, nan: an intercept is part of every regression
    known_variance: FloatArray  # (Z, N) by cell, nan: inverse gamma
    log_sizes: FloatArray  # (N,)
    scales: FloatArray  # (H,) precisions of weights, equally likely
    noise_ratios: FloatArray  # (U,) prior variances of the noise, equally likely, ascending
    intercept_precision: float
    noise_shape: float
    regimes: IntArray  # (N,) how many each node has
    factors: IntArray  # (C,) as `FactorColumns`
    codes: FloatArray  # (R, C)
    chances: FloatArray  # (F, N)
    certain: IntArray  # (N,) as bits: factors that act on a node in all variants
    open: IntArray  # (N, K): factors that act on it in some variants; -1: there are fewer than K
    open_with_free: IntArray  # (N, K') the same for mechanisms in a level of a free factor
    made_of: IntArray  # (C,) as `FactorColumns`
    cells: Cells


def open_factors(chances: FloatArray, most: int, gains: FloatArray | None = None) -> IntArray:
    """The factors that may act on each node, (N, K).

    All subsets of the K are summed over. If there are more than `most`, those of the largest
    `gains` (F, N) are, and the others do not act.
    """
    n_nodes = chances.shape[1]
    may = may_act(chances)
    most = min(int(may.sum(axis=0).max(initial=0)), most)
    found = np.full((n_nodes, most), -1)
    rank = np.where(may, 0.0 if gains is None else gains, -np.inf)
    for node in range(n_nodes):
        # stable: of equal gains the first, on every platform
        best = np.argsort(-rank[:, node], kind="stable")[: min(most, int(may[:, node].sum()))]
        found[node, : len(best)] = np.sort(best)
    return found


def may_act(chances: FloatArray) -> BoolArray:
    """Neither certain nor excluded."""
    return (chances > 0.0) & (chances < 1.0)


def max_open_factors(n_nodes: int) -> int:
    return max(MAX_FACTOR_BITS - (n_nodes - 1), 2)


class EdgeMask(NamedTuple):
    """What is known of edges, (R, N, N) each as [regime, parent, child]."""

    allowed: BoolArray
    required: BoolArray


# -- what every posterior is told: regimes, edges, bytes, and the prior as kernels take it ---------


def regimes_of(n_nodes: int, moments: Moments | None, given: npt.ArrayLike | None) -> Counts:
    """As given, else those of the moments, else two of every node."""
    if given is None and moments is not None:
        return moments.n_regimes
    counts = regime_counts(given, n_nodes)
    if moments is not None and not np.array_equal(counts, moments.n_regimes):
        raise ModelError(
            f"moments of {moments.n_regimes.tolist()} regimes do not fit {counts.tolist()}"
        )
    return counts


def edge_masks(
    regimes: Counts, allowed: npt.ArrayLike | None, required: npt.ArrayLike | None
) -> EdgeMask:
    """Allowed and required edges; none of regimes that a node does not have."""
    n_nodes = len(regimes)
    shape = (int(regimes.max()), n_nodes, n_nodes)
    every = np.ones(shape, dtype=bool) if allowed is None else _mask("allowed", allowed, shape)
    none = np.zeros(shape, dtype=bool) if required is None else _mask("required", required, shape)
    # in C order throughout: kernels are compiled again for every other layout
    possible = np.array(np.broadcast_to(every, shape), order="C")
    possible &= ~np.eye(n_nodes, dtype=bool)
    certain = np.array(np.broadcast_to(none, shape), order="C")
    # so that a mask says the same of a system whatever is given for regimes that do not exist
    for mask in (possible, certain):
        mask &= existing(regimes)[:, None, :]
    if (certain & ~possible).any():
        regime, parent, child = np.argwhere(certain & ~possible)[0]
        raise SettingError(
            f"edge {parent} -> {child} is required and excluded ({regime=}): allowed says no"
        )
    return EdgeMask(possible, certain)


def _mask(name: str, given: npt.ArrayLike, shape: tuple[int, int, int]) -> BoolArray:
    try:
        mask = np.asarray(given)
    except ValueError:
        mask = np.empty(0)
    shapes = (shape[1:], shape)
    if mask.shape not in shapes or mask.dtype.kind not in "biu" or not np.isin(mask, (0, 1)).all():
        raise SettingError(
            f"{name} must say True or False of every edge, in shape {shapes[0]} or {shapes[1]}"
        )
    return mask.astype(bool)


def bytes_allowed(memory_limit: int | None) -> int:
    """The limit as given, else the usual one."""
    return EXACT_BYTES if memory_limit is None else memory_limit


def check_memory(who: str, needed: int, memory_limit: int | None, remedy: str) -> None:
    """MemoryLimitError if tables need more bytes than allowed, before anything is allocated."""
    limit = bytes_allowed(memory_limit)
    if needed > limit:
        raise MemoryLimitError(
            f"{who} {needed:,} bytes, above the limit of {limit:,} (memory_limit); {remedy}"
        )


def kernel_prior(
    regimes: Counts,
    prior: MechanismPrior,
    noise_mean: npt.ArrayLike | None,
    noise_std: npt.ArrayLike | None,
    columns: FactorColumns | None = None,
) -> KernelPrior:
    columns = no_columns(regimes) if columns is None else columns
    n_measured = len(regimes) - len(columns.factors)
    free = free_factors(regimes, columns, prior.free_probability)
    cells = all_cells(regimes, n_measured, free)
    most, others = max_open_factors(n_measured), max_factors_with_free(free.levels, n_measured)
    return KernelPrior(
        noise_mean=by_cell(per_mechanism(noise_mean, regimes), cells),
        known_variance=by_cell(per_mechanism(noise_std, regimes) ** 2, cells),
        log_sizes=prior.log_sizes(len(regimes) - len(columns.factors)),
        scales=np.array(prior.weight_scales) ** -2.0,
        noise_ratios=np.sort(prior.noise_scales) ** 2.0,
        intercept_precision=prior.intercept_scale**-2.0,
        noise_shape=float(prior.noise_shape),
        regimes=np.array(regimes, dtype=np.int64),
        factors=columns.factors,
        codes=columns.codes,
        chances=columns.chances,
        certain=(1 << np.arange(len(columns.chances))) @ (columns.chances == 1.0).astype(np.int64),
        open=open_factors(columns.chances, most),
        open_with_free=open_factors(columns.chances, max(min(most, others), 0)),
        made_of=columns.made_of,
        cells=cells,
    )


@kernel
def intercept_precision_of(
    prior: KernelPrior, cell: int, node: int, weight_precision: float
) -> float:
    """Levels of a free factor lie around the mean of all rounds, like those of a shifting one."""
    return weight_precision if prior.cells.free[cell, node] else prior.intercept_precision


def by_cell(by_regime: FloatArray, cells: Cells) -> FloatArray:
    """Of every cell, (Z, M), from what is known of every regime; columns have no cells."""
    n = cells.source.shape[1]
    found = np.full((max(len(cells.source), len(by_regime)), by_regime.shape[1]), np.nan)
    found[: len(by_regime)] = by_regime
    for node in range(n):
        found[cells.end[0, node] :, node] = by_regime[0, node]
    return found


def free_factors(regimes: Counts, columns: FactorColumns, probability: float) -> FreeFactors:
    """The factors that may also give nodes a mechanism per level: all that shift nodes, or none."""
    n = len(regimes) - len(columns.factors)
    n_factors = len(set(columns.made_of.tolist()) & {1 << f for f in range(len(columns.chances))})
    first = [int(np.argmax(columns.made_of == 1 << f)) for f in range(n_factors)]
    column = np.array([n + c for c in first], dtype=np.int64)
    levels = np.array(regimes[column], dtype=np.int64)
    if probability == 0.0 or max_factors_with_free(levels, n) < 0:
        column, levels = column[:0], levels[:0]
    return FreeFactors(probability * columns.chances[: len(levels), :n], column, levels)


def per_mechanism(given: npt.ArrayLike | None, regimes: Counts) -> FloatArray:
    """Broadcast to (R, N); nan if unknown."""
    values = np.nan if given is None else np.asarray(given, dtype=float)
    return np.array(np.broadcast_to(values, (int(regimes.max()), len(regimes))), order="C")


# -- the sum of the prior over all orders and parent sets that are possible ------------------------
#
# Dividing by it makes the evidence that of a proper prior: the free one, conditioned on what the
# user knows. Sums over parent sets depend on how many of the possible parents come before a node.


def sums_by_count(log_sizes: FloatArray, n_required: int, n_free: int) -> FloatArray:
    """Log prior of the required parents with any of `count` free ones, count = 0 .. n_free."""
    return np.array(_sums_by_count(tuple(log_sizes.tolist()), n_required, n_free))


@lru_cache(maxsize=256)  # mechanisms differ little, and posteriors are made often
def _sums_by_count(log_sizes: tuple[float, ...], n_required: int, n_free: int) -> tuple[float, ...]:
    from scipy.special import gammaln, logsumexp  # importing it takes a third of `study history`

    sizes, sums = np.array(log_sizes), []
    for count in range(n_free + 1):
        chosen = np.arange(count + 1)
        ways = gammaln(count + 1) - gammaln(chosen + 1) - gammaln(count - chosen + 1)
        sums.append(float(logsumexp(ways + sizes[n_required + chosen])))
    return tuple(sums)


def bits_of(members: BoolArray) -> int:
    return int((members * (1 << np.arange(len(members)))).sum())


@kernel
def add_prior(free: int, required: int, by_count: FloatArray, local: FloatArray) -> None:
    for mask in range(len(local)):
        if mask & required != required:
            local[mask] = -np.inf
            continue
        count, rest = 0, mask & free
        while rest:
            rest &= rest - 1
            count += 1
        local[mask] += by_count[count]
