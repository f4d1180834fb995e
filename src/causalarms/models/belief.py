"""`Belief`: what a policy knows of the system. All that a user is shown is computed from it.

A belief is a number of draws of the whole system (graph, weights, noise) in the units of the data.
Expected values, intervals, the probability of being the best and the loss of settling are averages
over the draws. If the policy has a posterior over graphs, the draws differ in their graphs. If it
has one graph, all draws have that graph, and `weighs_graphs` is False. `recommend` is the only
answer to "what is best and how sure".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray, Intervention, Interventions
from causalarms.errors import ModelError, TooEarlyError
from causalarms.graphs.graph import Graph
from causalarms.limits import MAX_COMPARED
from causalarms.models.failures import MAX_RECOMMENDED_RISK
from causalarms.posterior.base import Draws
from causalarms.posterior.dag import likely_edges
from causalarms.posterior.prior import MechanismPrior, kernel_prior
from causalarms.posterior.sharing import cells_by_regime
from causalarms.posterior.weights import RandomNumbers, draw_weights
from causalarms.search.best import best_intervention
from causalarms.search.constraints import Constraints
from causalarms.search.worth import Worth
from causalarms.sem.regimes import Counts, existing, regime_counts, topological_order
from causalarms.sem.rewards import expected_values
from causalarms.statistics.units import Units

INTERVAL = (0.025, 0.975)  # quantiles between which all intervals lie
BUDGET = 5_000  # tree nodes for the best intervention of a draw, which need not be proven
SEARCHED_DRAWS = 40  # whose best interventions are compared if there are too many to compare all
TIE = 1e-9  # relative difference of rewards below which they are equal
# of its standard deviation over the draws: a smaller mean difference speaks for neither. On 40
# systems of 6 nodes a fifth fewer changes without effect were recommended, and no more was lost.
INDIFFERENT = 0.1
# Rounds per mechanism up to which draws say nothing about what is best. Chosen on 150 systems of 3
# to 6 nodes: with it, claims are as high as recommendations are right from the tenth round on.
TOO_FEW_ROUNDS = 3.0


class Summary(NamedTuple):
    """Mean over the draws, and the interval in which 95 % of them lie."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


class Recommendation(NamedTuple):
    """The allowed intervention to settle on, and how sure that is."""

    intervention: Intervention
    reward: Summary  # expected, before costs
    cost: float
    # that none is better by more than `tolerance`: the fraction of draws, tempered (`tempered`)
    probability: float
    expected_loss: float  # net reward per round forgone by playing it for ever, on average
    draws: int
    failing: float | None = None  # probability that a trial of it fails; None: nothing has failed


class Choice(NamedTuple):
    """The intervention that is best on average, net of its cost, among those compared."""

    row: int  # of the interventions compared
    reward: Summary
    probability: float  # fraction of draws in which none is better
    expected_loss: float  # net reward per round forgone by settling on it, on average


@dataclass(frozen=True)
class Belief:
    """A belief of n draws about R regimes and N nodes."""

    draws: Draws
    edge_probability: FloatArray  # (R, N, N)
    counts: IntArray  # (R, N), rounds each mechanism learns from
    starts: IntArray  # (R, N), the last round before its last change; 0: it never changed
    weighs_graphs: bool

    @property
    def n_draws(self) -> int:
        return len(self.draws.order)

    def rounds_per_mechanism(self, regimes: Sequence[int]) -> float:
        """On average, of what is learned: columns of factors are set, and have no noise."""
        learned = self.draws.noise_std.any(axis=(0, 1))
        return float(self.counts[:, learned].sum() / np.array(regimes)[learned].sum())

    def expected(self, rows: Interventions) -> FloatArray:
        """Expected value of every node under every draw, (n, rows, N)."""
        return np.stack([_expected(self.draws, d, rows) for d in range(self.n_draws)])

    def rewards(self, rows: Interventions, reward: int) -> FloatArray:
        """Expected rewards under every draw, (n, rows)."""
        return rewards_of(self.draws, rows, reward)

    def best(
        self, rows: Interventions, reward: int, worth: Worth, *, tolerance: float = 0.0
    ) -> Choice:
        """The best of these interventions.

        rows        (n, N) interventions
        reward      the node to maximise
        worth       of each intervention
        tolerance   net reward by which another may be better

        Interventions that differ only in nodes without an effect on the reward are ties. Of those
        that are equally good, as far as the draws can tell, the one with the fewest changes is
        chosen.
        """
        rewards = self.rewards(rows, reward)
        # Risks are estimates without draws of their own: one that is smaller by a thousandth, for a
        # level that does not matter, would look better in every draw.
        net = worth.as_likely_to_fail(int(np.argmax(worth.net(rewards.mean(axis=0))))).net(rewards)
        mean, changes = net.mean(axis=0), (rows != 0).sum(axis=1)
        tie = TIE * max(float(np.abs(mean).max()), TIE)
        row = int(np.argmax(mean))
        rivals = np.flatnonzero(changes <= changes[row])
        equals = rivals[as_good(net[:, rivals], int(np.searchsorted(rivals, row)))]
        # fewest changes: a person has less to do, and a change without effect would look like a
        # finding
        fewest = equals[changes[equals] == changes[equals].min()]
        row = int(fewest[np.argmax(mean[fewest] >= mean[fewest].max() - tie)])
        top = net.max(axis=1)
        loss = top - net[:, row]
        return Choice(
            row,
            summary(rewards[:, row]),
            float((loss <= tolerance + TIE * np.abs(top)).mean()),
            float(loss.mean()),
        )

    def scaled(self, factors: FloatArray) -> Belief:
        """The belief about the nodes multiplied by these factors, (N,)."""
        draws = self.draws._replace(
            weights=self.draws.weights * (factors[None, :] / factors[:, None]),
            intercept=self.draws.intercept * factors,
            noise_std=self.draws.noise_std * np.abs(factors),
        )
        return replace(self, draws=draws)


def as_good(net: FloatArray, row: int) -> BoolArray:
    """Of net rewards (n, rows), which the draws cannot tell from those of this row, (rows,).

    Draws of the same posterior give interventions without a difference the same mean up to
    rounding, or a difference of either sign.
    """
    mean, doubt = net.mean(axis=0), (net[:, [row]] - net).std(axis=0)
    tie = TIE * max(float(np.abs(mean).max()), TIE)
    return np.asarray(np.abs(mean - mean[row]) <= np.maximum(tie, INDIFFERENT * doubt))


def recommend(
    belief: Belief, reward: int, allowed: Constraints, *, tolerance: float = 0.0
) -> Recommendation:
    """What to settle on, and how sure that is.

    All allowed interventions are compared. If there are too many, those that are best in some draw
    are compared, and then the neighbours of the best until none of them is better.
    What fails more often than not is not recommended: a TooEarlyError if everything does.
    `tolerance` is the net reward by which another may be better.
    """
    few = allowed.count(MAX_COMPARED) is not None
    rows = working(candidates(belief, reward, allowed), allowed)
    if not len(rows):
        raise TooEarlyError("every setting that is allowed fails more often than not so far")
    while True:
        worth = allowed.worth(rows)
        found = belief.best(rows, reward, worth, tolerance=tolerance)
        chosen = rows[found.row]
        known = len(rows)
        if not few:
            near = working(allowed.neighbours(chosen), allowed)
            rows = np.unique(np.concatenate([rows, near]), axis=0)
        if len(rows) == known:  # nothing near the best is left to compare it with
            return Recommendation(
                chosen.copy(),
                found.reward,
                float(worth.cost[found.row]),
                tempered(found.probability, belief.rounds_per_mechanism(allowed.regimes))
                if len(rows) > 1
                else 1.0,
                found.expected_loss,
                belief.n_draws,
                None if allowed.risk is None else float(allowed.failing(chosen[None])[0]),
            )


def tempered(probability: float, n: float) -> float:
    """What a fraction of draws is worth as a probability, given n rounds per mechanism.

    After few rounds the draws follow the prior, which knows nothing of this system, and agree more
    than they should. The fraction counts 1 - (3 / n)^2.

    >>> tempered(0.9, 12.0)
    0.84375
    """
    return probability * max(0.0, 1.0 - (TOO_FEW_ROUNDS / max(n, TOO_FEW_ROUNDS)) ** 2)


def working(rows: Interventions, allowed: Constraints) -> Interventions:
    """Those that do not fail more often than not."""
    return rows if allowed.risk is None else rows[allowed.failing(rows) <= MAX_RECOMMENDED_RISK]


def belief_given_graph(
    adjacency: npt.NDArray[np.bool_],  # (R, N, N)
    gram: FloatArray,  # (R, N, N+1, N+1), in these units
    units: Units,
    starts: IntArray,  # (R, N)
    rng: np.random.Generator,
    n: int,
    *,
    noise_mean: FloatArray | None = None,  # (R, N), in the units of the data
    regimes: Counts | None = None,  # (N,), None: all R
) -> Belief:
    """The belief of a policy that takes one graph as certain; `n` is the number of draws.

    Each mechanism is drawn by itself. Draws are t-distributed, wide if a mechanism has few rounds;
    one that was never played is drawn from the prior.
    """
    order = topological_order(adjacency.any(axis=0))
    if order is None:
        raise ModelError(
            "the learned graphs of the regimes mix into a cycle: no prediction; the policies "
            "posterior and csl-ucb-joint learn graphs that do not"
        )
    n_regimes, size = adjacency.shape[:2]
    known = None if noise_mean is None else noise_mean / units.scale
    counts = regime_counts(regimes, size, default=n_regimes)
    prior = kernel_prior(counts, MechanismPrior(), known, None)
    gammas = rng.standard_gamma(prior.noise_shape + 0.5 * gram[:, :, -1, -1], (n, n_regimes, size))
    normals = rng.standard_normal((n, n_regimes, size, size + 1))
    edges = np.repeat(adjacency[None], n, axis=0)
    scales = np.zeros(gammas.shape, dtype=np.int64)
    cells = cells_by_regime(prior.regimes, n, size)
    random = RandomNumbers(gammas, normals, np.zeros(gammas.shape))
    weights = draw_weights(np.ascontiguousarray(gram), prior, edges, scales, cells, random)
    drawn = Draws(np.repeat(order[None], n, axis=0), edges, *weights)
    return Belief(
        drawn.in_units_of_data(units, regimes),
        adjacency.astype(float),
        gram[:, :, -1, -1].astype(np.int64),
        starts,
        weighs_graphs=False,
    )


class EdgeWeights(NamedTuple):
    """The weight of every edge over the draws that have it, (R, N, N); 0 if none has."""

    mean: FloatArray
    deviation: FloatArray


def edge_weights(draws: Draws, parts: FloatArray | None = None) -> EdgeWeights:
    """A draw without an edge says nothing about its weight.

    `parts` (n, N) are how much of a draw each row counts for, by child; None: all of it.
    """

    def total(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.sum(values if parts is None else values * parts[:, None, None, :], axis=0)

    present = total(draws.adjacency)
    known, none = present > 0, np.zeros(present.shape)
    mean = np.divide(total(draws.weights), present, where=known, out=none.copy())
    squares = np.where(draws.adjacency, draws.weights - mean, 0.0) ** 2
    variance = np.divide(total(squares), present, where=known, out=none)
    return EdgeWeights(mean, np.sqrt(variance))


def level_by_level(draws: Draws, regimes: Counts) -> tuple[Draws, FloatArray | None]:
    """Draws in which every node follows its own regime, and the `parts` of `edge_weights`.

    Where a node follows another in a draw, the draw is there once per regime of the other, with one
    mechanism of the node in each; together they count as one. `regimes` are those of all nodes.
    """
    if draws.by is None:
        return draws, None
    own = np.arange(draws.by.shape[1])
    counts = np.where(draws.by == own, 1, regimes[draws.by])
    levels = range(int(counts.max()))
    copies = [_at_level(draws, draws.by != own, level)[:-1] for level in levels]
    parts = [(level < counts) / counts for level in levels]
    return Draws(*map(np.concatenate, zip(*copies, strict=True))), np.concatenate(parts)


def _at_level(draws: Draws, follows: BoolArray, level: int) -> Draws:
    """Draws in which nodes that follow others (n, N) have only their mechanism at this level."""
    d, node = np.nonzero(follows)
    found = draws._replace(**{name: getattr(draws, name).copy() for name in draws._fields[1:-1]})
    found.adjacency[d, 0, :, node] = draws.adjacency[d, level, :, node]
    found.weights[d, 0, :, node] = draws.weights[d, level, :, node]
    found.intercept[d, 0, node] = draws.intercept[d, level, node]
    found.noise_std[d, 0, node] = draws.noise_std[d, level, node]
    return found._replace(by=None)


def likely_graph(
    belief: Belief, nodes: tuple[str, ...], regimes: Counts, parts: FloatArray | None = None
) -> Graph:
    """The graph of the likely edges, without a cycle.

    A weight is the mean over the draws that have the edge (`edge_weights`, which takes `parts`).
    `nodes` are the names, and `regimes` (N,) says how many regimes each node has.
    """
    exists = existing(regimes, len(belief.counts))
    adjacency = likely_edges(np.where(exists[:, None, :], belief.edge_probability, 0.0))
    draws = belief.draws
    if draws.by is not None:
        draws, parts = level_by_level(draws, regimes)
    weights, error = edge_weights(draws, parts)
    order = topological_order(adjacency.any(axis=0))
    assert order is not None
    return Graph(
        nodes,
        adjacency,
        np.where(adjacency, weights, 0.0),
        known=exists & (belief.counts > 0),
        order=tuple(nodes[i] for i in order),
        measures={
            "probability": belief.edge_probability,
            "standard_error": np.where(adjacency, error, np.nan),
        },
        regimes=regimes,
    )


def candidates(belief: Belief, reward: int, allowed: Constraints) -> Interventions:
    """All allowed interventions; if there are too many, those that are best in some draw.

    The natural one, without any switch, is always among them if it is allowed.
    """
    if allowed.count(MAX_COMPARED) is not None:
        return allowed.interventions(MAX_COMPARED)
    # Not in all draws: each is a search of its own, and `recommend` adds the neighbours of the
    # best.
    found = best_of_each(belief.draws.first(SEARCHED_DRAWS), reward, allowed)
    # What happens without any switch is what people compare a recommendation with.
    natural = np.zeros((1, allowed.n_nodes), dtype=np.uint8)
    rows = np.unique(np.concatenate([found, natural]), axis=0)
    return np.ascontiguousarray(rows[allowed.allows(rows)])


def summary(values: FloatArray) -> Summary:
    """Mean and interval of draws, along the first axis."""
    low, high = np.quantile(values, INTERVAL, axis=0)
    mean = np.asarray(values.mean(axis=0))
    # a few far draws can move the mean out of the interval: widen it to contain the mean
    return Summary(mean, np.minimum(low, mean), np.maximum(high, mean))


def best_of_each(draws: Draws, reward: int, allowed: Constraints) -> Interventions:
    """The best allowed intervention found for every draw, (n, N)."""
    rows = []
    for d, (order, weights, mean) in enumerate(
        zip(draws.order, draws.weights, draws.intercept, strict=True)
    ):
        # to the search, a factor acts on what follows it
        seen = allowed if draws.by is None else allowed.following(tuple(draws.by[d].tolist()))
        best = best_intervention(weights, mean, order, reward, constraints=seen, budget=BUDGET)
        rows.append(allowed.factors.interventions(best.levels[None])[0])
    return np.stack(rows)


def rewards_of(draws: Draws, rows: Interventions, reward: int) -> FloatArray:
    """Expected rewards of given interventions under every draw, (n, rows)."""
    return np.stack([_expected(draws, d, rows)[:, reward] for d in range(len(draws.order))])


def _expected(draws: Draws, d: int, rows: Interventions) -> FloatArray:
    """Expected values of all nodes in one draw, (rows, N)."""
    seen = draws.seen(d, rows)
    return expected_values(draws.weights[d], draws.intercept[d], draws.order[d], seen)
