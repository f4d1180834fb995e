"""Factors as roots of a graph: the columns that stand for them, and the one root that people see.

The posterior knows columns behind the nodes, several per factor (`sem/factors.py`). People see one
root per factor; its weight is what the last level adds to a node, compared with the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.graphs.inputs import Rounds
from causalarms.posterior.base import Posterior
from causalarms.posterior.prior import FactorColumns
from causalarms.sem.factors import NamedFactors, switches
from causalarms.sem.regimes import Counts
from causalarms.tables.cells import FactorLevels, refuse_names_of_nodes

WORTH_TELLING = 6.0  # nats by which two factors must explain a node better than their sum does
TINY = 1e-9  # squares of values in units of the noise, below which a fit is exact

Scalar = TypeVar("Scalar", bound=np.generic)


def factor_columns(
    named: NamedFactors,
    chances: FloatArray | None = None,
    *,
    reward: int | None = None,
    pairs: bool = True,
) -> FactorColumns:
    """The columns of all factors that shift nodes, as a posterior takes them.

    chances   how likely each of them acts on each node, (F, N); None: as `named` has it
    reward    a node on which pairs of factors act in any case
    pairs     whether what two factors do together is learned at all

    Pairs act on a node if any factor does: it may carry what two others do together. On the reward
    they always act, so that the model contains the regression of the reward on all levels, which
    it must not lose to. Of 60 wind tunnels, regret is 10.0 with it, 11.8 if pairs need a factor
    that acts on the reward, 14.0 if they need both, and 14.9 without pairs.
    """
    chances = named.chances if chances is None else chances
    of_pairs = np.zeros(len(named.nodes))
    if reward is not None:
        of_pairs[reward] = 1.0
    every = (1 << (len(chances) + 1)) - 1 if pairs else 0
    factors = np.where(named.is_pair, every, named.bits)
    return FactorColumns(factors, named.codes, np.vstack([chances, of_pairs]), named.bits)


def chances_of(named: NamedFactors, context: Sequence[str]) -> FloatArray:
    """How likely each factor acts on each node, (F, N): no factor moves context."""
    return np.where(np.isin(named.nodes, context), 0.0, named.chances)


class BetweenNodes:
    """What a posterior says of edges between measured nodes, whatever factors act on them."""

    def __init__(self, posterior: Posterior, roots: Roots) -> None:
        self._posterior = posterior
        self._n = roots.n_measured
        self._most = int(roots.regimes.max())

    @property
    def edge_probability(self) -> FloatArray:
        return self._posterior.edge_probability[: self._most, : self._n, : self._n]

    def probability_within(self, kept: BoolArray) -> float:
        """Exact posterior probability that no edge between nodes lies outside `kept` (R, N, N)."""
        more = self._posterior.edge_probability.shape[1] - self._n
        return self._posterior.probability_within(np.pad(kept, ((0, 0), (0, more), (0, more))))


class Roots:
    """Translates between nodes with roots (N + F) and the system of a posterior (N + C columns).

    nodes     that are measured
    regimes   how many each of them has, (N,)
    factors   the levels of the rounds; None: there are none, and nothing is to be translated

    >>> from causalarms.tables.cells import factor_levels
    >>> roots = Roots(("a", "b"), np.array([1, 1]), factor_levels({"load": [1, 2, 4]}))
    >>> roots.names, roots.system_nodes
    (('a', 'b', 'load'), ('a', 'b', 'do:load', 'do:load.2'))
    """

    def __init__(
        self, nodes: tuple[str, ...], regimes: Counts, factors: FactorLevels | None = None
    ) -> None:
        self.n_measured = len(nodes)
        self.named: NamedFactors | None = None
        self.names = self.system_nodes = nodes
        self.regimes = self.system_regimes = regimes
        if factors is None:
            return
        refuse_names_of_nodes(factors.names, nodes)
        # What switches a node is a factor of its own, with a mechanism per level.
        shifting = {name: {"levels": levels} for name, levels in factors.levels.items()}
        self.named = NamedFactors.of({**switches(nodes, regimes), **shifting}, nodes)
        self.names = (*nodes, *self.named.root_names)
        self.system_nodes = self.named.system_nodes
        self.system_regimes = self.named.regimes
        self.regimes = np.append(regimes, np.ones(self.n_roots, dtype=np.int64))

    @property
    def n_roots(self) -> int:
        return 0 if self.named is None else len(self.named.shifting)

    def columns(
        self, allowed: BoolArray, required: BoolArray, *, pairs: bool
    ) -> FactorColumns | None:
        """What stands for the roots, given which edges may be and must be, (N + F, N + F)."""
        if self.named is None:
            return None
        n = self.n_measured
        chances = np.where(allowed[n:, :n], self.named.chances, 0.0)
        chances = np.where(required[n:, :n], 1.0, chances)
        return factor_columns(self.named, chances, pairs=pairs)

    @property
    def is_pair(self) -> BoolArray:
        """Which columns stand for two factors, (C,)."""
        return np.zeros(0, dtype=bool) if self.named is None else self.named.is_pair

    @cached_property
    def _kept(self) -> list[int]:
        """The nodes of the system that are shown: those measured, and one column per factor."""
        return [*range(self.n_measured), *([] if self.named is None else self.named.roots)]

    def rounds(self, rounds: Rounds, factors: FactorLevels | None) -> Rounds:
        """What was measured and set: values and regimes of all nodes of the system."""
        if self.named is None or factors is None:
            return rounds
        n, named = self.n_measured, self.named
        switched = [i for i in range(n) if self.regimes[i] > 1]
        levels = np.column_stack([rounds.regimes[:, switched], factors.numbers])
        rows = named.numbers.interventions(levels).astype(np.uint8)
        values = np.column_stack([rounds.values, named.values(rows)])
        return Rounds(values, rows, self.system_nodes)

    def alone(self, values: FloatArray) -> FloatArray:
        """Values (n, N + C) without columns of pairs of factors."""
        return values[:, np.append(np.ones(self.n_measured, dtype=bool), ~self.is_pair)]

    def shows_pairs(self, values: FloatArray) -> bool:
        """Whether rounds (n, N + C) tell effects of pairs of factors from those of each.

        If factors were moved one at a time, columns of pairs are sums of others: they would explain
        all that single factors do.
        """
        columns = values[:, self.n_measured :]
        with_pairs = np.column_stack([np.ones(len(values)), columns])
        return bool(np.linalg.matrix_rank(with_pairs) == with_pairs.shape[1])

    def hidden_pairs(self, gram: FloatArray, adjacency: BoolArray) -> Iterator[str]:
        """What to say of two factors that act on a node beyond their sum, if an edge is missing.

        By the BIC of the regression of the node on its parents and both factors; `gram` (R, M, ..)
        and `adjacency` (R, M, M) are of the system. In the posterior all pairs act on a node if any
        factor does: their probability does not say which of them matters.
        """
        if self.named is None:
            return
        n, bits = self.n_measured, self.named.bits
        for pair, node in product(np.unique(bits[self.is_pair]).tolist(), range(n)):
            has = np.asarray(adjacency[:, :, node].any(axis=0))
            two = [f for f in range(self.n_roots) if pair >> f & 1]
            if has[np.array(self.named.roots)[two]].all():
                continue
            has[n:] = (has[n:] & ~self.is_pair) | np.isin(bits, [1 << f for f in two])
            alone = [-1, *np.flatnonzero(has)]
            both = [*alone, *(n + np.flatnonzero(bits == pair))]
            given = gram[:, node].sum(axis=0)
            left = [
                given[node, node] - given[kept, node] @ np.linalg.pinv(given[np.ix_(kept, kept)])
                @ given[kept, node] for kept in (alone, both)
            ]  # fmt: skip
            rows, more = given[-1, -1], len(both) - len(alone)
            gain = (rows - len(both)) * np.log(max(left[0], TINY) / max(left[1], TINY))
            if gain - more * np.log(rows) > 2.0 * WORTH_TELLING:
                one, other = (self.named.root_names[f] for f in two)
                yield (
                    f"what {one!r} and {other!r} do to {self.names[node]!r} together is more than "
                    "the sum of both: an edge shows only what a factor does by itself"
                )

    def edges(self, given: BoolArray) -> BoolArray:
        """Edges between nodes as the system has them; of columns, `columns` tells."""
        n, size = self.n_measured, len(self.system_nodes)
        found = np.zeros((*given.shape[:-2], size, size), dtype=bool)
        found[..., :n, :n] = given[..., :n, :n]
        return found

    def graph(self, kept: BoolArray) -> BoolArray:
        """Edges between nodes, (R, N, N), as a graph of the system: columns have none."""
        found = np.zeros((int(self.system_regimes.max()), *kept.shape[1:]), dtype=bool)
        found[: len(kept)] = kept
        return self.edges(found)

    def padded(self, given: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Of every mechanism of the system what is `given` of nodes, (R, N); 1 of columns."""
        shape = int(self.system_regimes.max()), len(self.system_nodes)
        found = np.ones(shape, dtype=given.dtype)
        found[tuple(slice(k) for k in given.shape)] = given
        return found

    def free(self, posterior: Posterior) -> FloatArray:
        """How likely any factor gives each node a mechanism per level, (N,)."""
        return np.asarray(posterior.free_probability.sum(axis=0))

    def of_nodes(self, given: FloatArray) -> FloatArray:
        """(R, N + F) from (.., N + C), 0 of roots."""
        found = np.zeros((int(self.regimes.max()), len(self.names)))
        found[:, : self.n_measured] = given[: len(found), : self.n_measured]
        return found

    def known(self, counts: IntArray) -> BoolArray:
        """Which mechanisms have data, (R, N + F); those of roots are known."""
        found = self.of_nodes(np.asarray(counts, dtype=float)) > 0
        found[0, self.n_measured :] = True
        return found

    def shown(self, matrices: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Nodes and roots, (R, N + F, N + F), of matrices of the system, (.., N + C, N + C)."""
        most = int(self.regimes.max())
        return matrices[:most][:, self._kept][:, :, self._kept]

    def order(self, order: IntArray) -> IntArray:
        """Positions among nodes and roots, from those of the system."""
        place = {node: at for at, node in enumerate(self._kept)}
        return np.array([place[i] for i in order.tolist() if i in place], dtype=np.int64)

    def weights(self, weights: FloatArray) -> FloatArray:
        """Weights (R, N + F, N + F): that of a root is what its last level adds to its first.

        On average over the levels of all other factors: pairs are left out.
        """
        found = self.shown(weights).copy()
        if self.named is not None:
            n, alone = self.n_measured, ~self.named.is_pair
            steps = self.named.root_steps()[:, alone]
            found[:, n:, :n] = steps @ weights[: len(found), n:, :n][:, alone]
        return found

    def intercept(self, intercept: FloatArray, weights: FloatArray) -> FloatArray:
        """Intercepts at the first level of all factors, (R, N + F); roots are 0 there."""
        n = self.n_measured
        found = self.of_nodes(intercept)
        if self.named is not None:
            first = self.named.codes[0]  # regime 0 of a pair: both at their first level
            found[:, :n] += np.einsum("c,rcj->rj", first, weights[: len(found), n:, :n])
        return found
