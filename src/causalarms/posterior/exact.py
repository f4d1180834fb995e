"""`ExactPosterior`: the posterior over orders, parents and weights, summed over all orders.

With an order of the nodes, parents P of node i in regime r, its samples D and the set S before it,

    p(order, graphs | data)  ~  prod_i prod_r p(P_ri) p(D_ri | P_ri),    P_ri within S_i

and, with X the parents, y the node, n samples, A = X'X + Lambda, Q = y'y - y'X A^-1 X'y and a the
shape of the noise (`prior.py` has the prior), the score of a parent set is log p(P) plus

    log p(D | P) = lgamma(a + n/2) - lgamma(a) + a log a - n/2 log 2 pi + 1/2 log det Lambda
                   - 1/2 log det A - (a + n/2) log(a + Q/2).

`mechanism.py` computes it for all P (`score_by_size`: what depends on |P| only; `fit_score`: the
last term) and sums over the subsets of every set: local(i, S) = sum_r log sum_{P in S} exp(score).
`orders.py` sums over orders by F(S) = log sum_{i in S} exp(F(S - i) + local(i, S - i)) (Koivisto
and Sood, 2004). Where factors may change more than the mean of a node, local(i, S) is a sum over
hypotheses (`sharing.py`). Time and memory double with every node, at least. A mechanism with new
moments is scored again; the others keep their scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.errors import ModelError
from causalarms.limits import MAX_SMALL_NODES
from causalarms.posterior.base import Draws, OrderedGraph
from causalarms.posterior.mechanism import ScoreTables, score_mechanisms
from causalarms.posterior.orders import (
    GraphNumbers,
    backward_sums,
    best_order,
    best_parents,
    best_terms,
    draw_graphs,
    edge_probabilities,
    forward_sums,
    restricted_log_sum,
    without,
)
from causalarms.posterior.prior import (
    FactorColumns,
    MechanismPrior,
    add_prior,
    bits_of,
    bytes_allowed,
    check_memory,
    edge_masks,
    free_factors,
    kernel_prior,
    may_act,
    no_columns,
    open_factors,
    regimes_of,
    sums_by_count,
)
from causalarms.posterior.sharing import Cells, all_cells, comparable, factor_gains
from causalarms.posterior.weights import PointEstimate, RandomNumbers, draw_weights, point_estimate
from causalarms.sem.regimes import existing, topological_order
from causalarms.statistics.dataset import Moments

# Probability below which a factor is free in no draw. What is drawn for its levels is then mostly
# the prior. Of 100 draws a few were so wild, and regret in tunnels was 9 % higher.
WORTH_DRAWING = 0.05


class ExactPosterior:
    """All graphs of the regimes with a common order, given the moments of every mechanism.

    n_nodes      number of nodes
    moments      Gram moments of every mechanism; None: no data yet
    noise_mean   (R, N) known noise means, None for an intercept per mechanism
    noise_std    (R, N) known standard deviations, None for an inverse gamma prior
    prior        of edges, weights and noise; None for the defaults of `MechanismPrior`
    allowed, required   edges that may be and must be, (N, N) or (R, N, N) as [.., parent, child]
    memory_limit   in bytes, None for 1 GiB
    regimes      how many each node has; None: those of the moments, else two
    columns      of factors: the last so many of the nodes; None: there are no factors

    Data are in units in which noise has a standard deviation of about one. `update` scores only
    mechanisms whose moments changed; everything else is derived from the scores when asked for.
    """

    def __init__(
        self,
        n_nodes: int,
        moments: Moments | None = None,
        *,
        noise_mean: npt.ArrayLike | None = None,
        noise_std: npt.ArrayLike | None = None,
        prior: MechanismPrior | None = None,
        allowed: npt.ArrayLike | None = None,
        required: npt.ArrayLike | None = None,
        memory_limit: int | None = None,
        regimes: npt.ArrayLike | None = None,
        columns: FactorColumns | None = None,
    ) -> None:
        self.regimes = regimes_of(n_nodes, moments, regimes)
        n_regimes = int(self.regimes.max())
        self.n_nodes = n_nodes
        self.prior = prior or MechanismPrior()
        self._edge_mask = edge_masks(self.regimes, allowed, required)
        columns = no_columns(self.regimes) if columns is None else columns
        self.kernel_prior = kernel_prior(self.regimes, self.prior, noise_mean, noise_std, columns)
        self._free = free_factors(self.regimes, columns, self.prior.free_probability)
        # The sums are over the N measured nodes; columns of factors only multiply the variants.
        self._n_measured = n_nodes - len(self.kernel_prior.factors)
        self._edge_mask.allowed[:, :, self._n_measured :] = False
        n_sets = 1 << (self._n_measured - 1)
        n_variants = len(self.kernel_prior.scales) << self.kernel_prior.open.shape[1]
        n_with_free = len(self.kernel_prior.scales) << self.kernel_prior.open_with_free.shape[1]
        n_cells = len(self.kernel_prior.cells.source)
        n_own = n_cells - int(self._free.levels.sum())
        self.n_bytes = table_bytes(
            self._n_measured, n_cells, n_own * n_variants + (n_cells - n_own) * n_with_free
        )
        who = f"the exact posterior of {self._n_measured} nodes needs"
        check_memory(who, self.n_bytes, memory_limit, "every further node doubles it")
        shape = (n_cells, self._n_measured, n_sets)
        scores = np.empty(shape)
        self._tables = ScoreTables(
            variants=(
                scores[:, :, None] if n_variants == 1
                else np.empty((n_own, self._n_measured, n_variants, n_sets))
            ),
            with_free=np.empty((n_cells - n_own, self._n_measured, n_with_free, n_sets)),
            scores=scores,
            within=np.empty(shape),
            possible=self._possible(),
            past=np.zeros(shape[1:]),
            local=np.empty(shape[1:]),
            mantissa=np.empty(n_sets),
            exponent=np.empty(n_sets, dtype=np.int32),
        )  # fmt: skip
        self._gram: FloatArray = np.full((n_regimes, n_nodes, n_nodes + 1, n_nodes + 1), np.nan)
        self._log_prior_sum: float | None = None
        self._forward_sums: FloatArray | None = None  # None: nothing is scored yet
        self._retired: list[tuple[int, int, FloatArray]] = []  # regime, node, gram
        if topological_order(self._edge_mask.required.any(axis=0)) is None:
            raise ModelError("no order of the nodes fits the required and excluded edges")
        if moments is None:
            # The prior alone is scored on demand: the first, random rounds of a policy need no
            # score, and would wait 20 seconds for kernels to be compiled.
            self._gram[:] = Moments(n_nodes, regimes=self.regimes).gram
        else:
            self.update(moments)

    def _possible(self) -> FloatArray:
        """Log prior of the parent sets within every set; read if there are several hypotheses."""
        n = self._n_measured
        several = len(self.kernel_prior.cells.log_prior) > 1
        found = np.zeros((n, 1 << (n - 1) if several else 1))
        for node in range(n if several else 0):
            _add_prior_of(
                node,
                self.kernel_prior.log_sizes,
                self._edge_mask.allowed[0, :n, node],
                self._edge_mask.required[0, :n, node],
                found[node],
            )
        return found

    def update(self, moments: Moments) -> int:
        """Take over these moments; returns how many mechanisms were scored again."""
        # A round changes one mechanism of each node: half of the tables at most, with two regimes.
        changed = (moments.gram != self._gram).any(axis=(2, 3)) & existing(self.regimes)
        if changed.any():
            self._gram = np.array(moments.gram, order="C")
            cells = self.kernel_prior.cells
            again = changed[cells.regime, cells.source] | self._screen_factors()
            self._score(np.ones_like(again) if self._forward_sums is None else again)
        return int(changed.sum())

    def _screen_factors(self) -> BoolArray:
        """Choose again which factors to sum over, if not all; the cells affected, (Z, N)."""
        prior = self.kernel_prior
        again: BoolArray = np.zeros(prior.cells.source.shape, dtype=bool)
        if not len(prior.chances):
            return again
        n_may = may_act(prior.chances).sum(axis=0).max(initial=0)
        free = len(self._free.levels) > 0
        if n_may > prior.open.shape[1] or (free and n_may > prior.open_with_free.shape[1]):
            gains = factor_gains(self._gram, prior)
            chosen = open_factors(prior.chances, prior.open.shape[1], gains)
            others = open_factors(prior.chances, prior.open_with_free.shape[1], gains)
            of_free = prior.cells.free > 0
            again |= of_free & (others != prior.open_with_free).any(axis=1)
            again |= ~of_free & (chosen != prior.open).any(axis=1)
            prior = prior._replace(open=chosen, open_with_free=others)
        if free:
            possible = comparable(self._gram, self._free)
            now = self._free._replace(probability=self._free.probability * possible)
            cells = all_cells(self.regimes, self._n_measured, now)
            pairs = zip(cells, prior.cells, strict=True)
            again |= ~np.all([(new == old).all(axis=0) for new, old in pairs], axis=0)
            prior = prior._replace(cells=cells)
        self.kernel_prior = prior
        return again

    def _score(self, changed: BoolArray) -> FloatArray:
        score_mechanisms(self._gram, changed, self._edge_mask, self.kernel_prior, self._tables)
        self._forward_sums = forward_sums(self._tables.local)
        self._edge_probability: FloatArray | None = None
        return self._forward_sums

    def _score_all(self) -> FloatArray:
        return self._score(np.ones(self.kernel_prior.cells.source.shape, dtype=bool))

    @property
    def _forward(self) -> FloatArray:
        if self._forward_sums is None:
            return self._score_all()
        return self._forward_sums

    @property
    def tables(self) -> ScoreTables:
        """Scores of parent sets and their sums, of all moments seen."""
        if self._forward_sums is None:
            self._score_all()
        return self._tables

    def retire(self, regime: int, node: int) -> None:
        """The mechanism was replaced: another one, with other parents, produces what comes next.

        What its samples say about the order stays, for the order outlasts the change: the former
        mechanism counts as one more mechanism of the node, with parents among the same
        predecessors. Without it the other mechanisms' samples, in which this node followed
        its old parents, would be read the wrong way round.
        """
        self.tables.past[node] += evidence_of_order(
            self.tables.within[regime, node],
            node,
            self.kernel_prior.log_sizes,
            self._edge_mask.allowed[regime, : self._n_measured, node],
            self._edge_mask.required[regime, : self._n_measured, node],
        )
        self._retired.append((regime, node, self._gram[regime, node].copy()))
        now = Moments(self.n_nodes, regimes=self.regimes)
        now.gram[:] = self._gram
        now.forget(regime, node)
        self._gram[regime, node] = np.nan  # never equal, so that `update` scores it again
        self.update(now)

    @property
    def _mechanisms(self) -> list[tuple[int, int]]:
        """All (regime, node) there are."""
        exist = existing(self.regimes)[:, : self._n_measured]
        return [(int(r), int(i)) for r, i in np.argwhere(exist)]

    @property
    def gram(self) -> FloatArray:
        """The moments this is the posterior of, (R, N, N+1, N+1)."""
        return self._gram

    @property
    def diagnostics(self) -> None:
        """None: nothing is sampled, so there is no convergence to diagnose."""
        return None

    @property
    def log_evidence(self) -> float:
        """Log probability density of the data, averaged over the whole prior."""
        if self._log_prior_sum is None:
            n = self._n_measured
            self._log_prior_sum = log_prior_sum(
                self.kernel_prior.log_sizes,
                self._edge_mask.allowed[:, :n, :n],
                self._edge_mask.required[:, :n, :n],
                self.regimes[:n],
            )
        return float(self._forward[-1]) - self._log_prior_sum

    @property
    def edge_probability(self) -> FloatArray:
        """Exact posterior probability of every edge, (R, N, N)."""
        forward = self._forward
        if self._edge_probability is None:
            probability, self._hypotheses = edge_probabilities(
                self.tables, self.kernel_prior, forward, backward_sums(self.tables.local)
            )
            # the sum is 1 only up to rounding
            probability[self._edge_mask.required] = 1.0
            prior, n = self.kernel_prior, self._n_measured
            told = (prior.made_of[:, None] & prior.certain[:n]) > 0
            alone = (prior.made_of & (prior.made_of - 1)) == 0
            probability[:1, n:, :n][:, told & alone[:, None]] = 1.0
            probability.setflags(write=False)
            self._edge_probability = probability
        return self._edge_probability

    @property
    def free_probability(self) -> FloatArray:
        """How likely each factor gives each node a mechanism per level, (F, N)."""
        _ = self.edge_probability  # computes those of hypotheses, too
        cells, n = self.kernel_prior.cells, self._n_measured
        found = np.zeros((len(self.kernel_prior.chances), n))
        for h, node in np.argwhere(cells.log_prior > -np.inf).tolist():
            free = int(cells.free[cells.first[h, node], node])
            if free:
                found[free.bit_length() - 1, node] = self._hypotheses[h, node]
        return found

    def probability_within(self, kept: BoolArray) -> float:
        """Exact posterior probability that no edge lies outside `kept` (R, N, N), DAG or not."""
        bits = 1 << np.arange(self.n_nodes - 1)
        masks = np.zeros(kept.shape[:2], dtype=np.int64)
        for regime, node in self._mechanisms:
            masks[regime, node] = bits @ np.delete(kept[regime, :, node], node)
        log_sum = restricted_log_sum(self.tables, self.kernel_prior, masks)
        return float(min(np.exp(log_sum - self._forward[-1]), 1.0))

    def most_probable(self) -> OrderedGraph:
        """The most probable (order, G_0, G_1, ...) jointly.

        Not quite the most probable graphs alone: those may fit many orders, each of them less
        probable.
        """
        order = best_order(best_terms(self.tables, self.regimes))
        adjacency, log_score = best_parents(self.tables, self.kernel_prior, order)
        log_score += _past_of_order(self.tables.past, order)
        order = np.concatenate([np.arange(self._n_measured, self.n_nodes), order])
        return OrderedGraph(order, adjacency, float(log_score - self._forward[-1]))

    def draw(self, rng: np.random.Generator, n: int = 1) -> Draws:
        """Independent exact draws of order, parents, weights, intercepts and noise.

        But for factors that are hardly free: they shift their nodes in all draws.
        """
        size, n_regimes = self.n_nodes, len(self._gram)
        uniforms = rng.random((n, size, 1 + 2 * n_regimes))
        prior = self.kernel_prior
        several = len(prior.cells.log_prior) > 1
        if several:
            prior = prior._replace(cells=self._worth_drawing())
        choices = rng.random((n, size)) if several else np.zeros((n, size))
        order, adjacency, scales, cells = draw_graphs(
            prior, self.tables, self._forward, GraphNumbers(uniforms, choices)
        )
        source = self._sources(cells)
        counts = self._gram[np.arange(n_regimes)[:, None], source, -1, -1]
        gammas = rng.standard_gamma(prior.noise_shape + 0.5 * counts)
        normals = rng.standard_normal((n, n_regimes, self._n_measured, size + 1))
        more = rng.random(gammas.shape) if len(prior.noise_ratios) > 1 else np.zeros(gammas.shape)
        random = RandomNumbers(gammas, normals, more)
        drawn = draw_weights(self._gram, prior, adjacency, scales, cells, random)
        return Draws(order, adjacency, *drawn, source[:, 0] if several else None)

    def _worth_drawing(self) -> Cells:
        """Without hypotheses that are unlikely; hypothesis 0 takes their place."""
        _ = self.edge_probability  # computes those of hypotheses, too
        cells = self.kernel_prior.cells
        unlikely = self._hypotheses < WORTH_DRAWING
        unlikely[0] = False
        return cells._replace(log_prior=np.where(unlikely, -np.inf, cells.log_prior))

    def _sources(self, cells: IntArray) -> IntArray:
        """The node whose regime each drawn mechanism follows, (n, R, M)."""
        found = np.broadcast_to(np.arange(self.n_nodes), cells.shape).copy()
        for node in range(self._n_measured):
            drawn = cells[:, :, node]
            found[:, :, node][drawn >= 0] = self.kernel_prior.cells.source[drawn[drawn >= 0], node]
        return found

    def estimate(self, adjacency: BoolArray) -> PointEstimate:
        """Posterior means of weights and intercepts given the graphs (R, N, N)."""
        return point_estimate(self._gram, self.kernel_prior, adjacency)

    def state(self) -> dict[str, Any]:
        """Moments, present and retired: all else follows from them."""
        size = self.n_nodes + 1
        mechanisms = [(regime, node) for regime, node, _ in self._retired]
        return {
            "gram": self._gram.copy(),
            "retired": np.array(mechanisms, dtype=np.int64).reshape(-1, 2),
            "retired_gram": np.array([m[2] for m in self._retired]).reshape(-1, size, size),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Into a posterior made with the same settings that knows nothing yet."""
        # Retired mechanisms are replayed one by one: the evidence for the order is a sum over them
        # in the order of their retirement, to the same bits.
        seen = Moments(self.n_nodes, regimes=self.regimes)
        for (regime, node), gram in zip(state["retired"], state["retired_gram"], strict=True):
            seen.gram[regime, node] = gram
            self.update(seen)
            self.retire(int(regime), int(node))
            seen.forget(int(regime), int(node))
        seen.gram[:] = state["gram"]
        self.update(seen)


def table_bytes(n_nodes: int, n_cells: int = 2, n_variants: int | None = None) -> int:
    """Peak bytes of the tables: scores, their sums, sums by node, the past, one temporary table.

    If parent sets have several variants, each of them has a score; `n_variants` in all cells.

    >>> f"{table_bytes(20):,}"
    '622,854,144'
    """
    n_sets = 1 << max(n_nodes - 1, 0)
    tables = 8 * n_nodes * n_sets * (n_cells + n_cells + 1 + 1 + 1)
    if n_variants is not None and n_variants > n_cells:
        tables += 8 * n_nodes * n_sets * n_variants
    orders = 8 * 2 * n_sets * 3
    room = (8 + 4 + 8) * n_sets
    return tables + orders + room


def exact_is_best(n_nodes: int, memory_limit: int | None = None, n_regimes: int = 2) -> bool:
    """Whether the exact posterior is small, or its tables fit into `memory_limit` bytes."""
    needed = table_bytes(n_nodes, n_regimes)
    return n_nodes <= MAX_SMALL_NODES or needed <= bytes_allowed(memory_limit)


def evidence_of_order(
    within: FloatArray,  # (2^(N-1),) log sums over subsets, of one mechanism
    node: int,
    log_sizes: FloatArray,
    allowed: BoolArray,  # (N,) parents
    required: BoolArray,  # (N,)
) -> FloatArray:
    """Log probability of a mechanism's samples given the set before the node, (2^(N-1),).

    This is what a mechanism that has changed still says about the order of the nodes. Its successor
    has parents and weights of its own among the same predecessors. Given the set S before the
    node, the old samples have the probability sum over P in S of prior(P | S) exp(log likelihood
    of P): one more factor of that node in the sum over orders.
    """
    prior = np.zeros_like(within)
    _add_prior_of(node, log_sizes, allowed, required, prior)
    possible = prior > -np.inf
    return np.where(possible, within - np.where(possible, prior, 0.0), -np.inf)


def log_prior_sum(
    log_sizes: FloatArray, allowed: BoolArray, required: BoolArray, regimes: npt.NDArray[np.int64]
) -> float:
    """Log sum of the prior over all orders and parent sets that are possible.

    log_sizes           (N,) log prior of a parent set by its size
    allowed, required   (R, N, N) as [regime, parent, child]
    regimes             (N,)
    """
    n = len(log_sizes)
    local = np.zeros((n, 1 << (n - 1)))
    for regime, node in np.argwhere(existing(regimes)).tolist():
        _add_prior_of(
            node, log_sizes, allowed[regime, :, node], required[regime, :, node], local[node]
        )
    return float(forward_sums(local)[-1])


def _add_prior_of(
    node: int, log_sizes: FloatArray, allowed: BoolArray, required: BoolArray, local: FloatArray
) -> None:
    """Add the log prior of a mechanism's parents within every set; `allowed`, `required` (N,)."""
    certain = np.delete(required, node)
    free = np.delete(allowed, node) & ~certain
    by_count = sums_by_count(log_sizes, int(certain.sum()), int(free.sum()))
    add_prior(bits_of(free), bits_of(certain), by_count, local)


def _past_of_order(past: FloatArray, order: IntArray) -> float:
    """Log evidence of former mechanisms for one order."""
    total, mask = 0.0, 0
    for node in order.tolist():
        total += past[node, without(mask, node)]
        mask |= 1 << node
    return total
