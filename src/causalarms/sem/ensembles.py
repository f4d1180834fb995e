"""Random systems as in Sec. VI of the paper, and the regeneration of some of their mechanisms.

Text and program of the authors differ: `separated` weights (sign * U(0.5, 2)) are the program's,
`uniform` ones (U(-2, 2)) the text's. Each pair of nodes in a common order carries an edge with
probability 1/2, in B and B' independently; a column of B' that equals its column of B is redrawn.
So is a column of any further regime that equals one of the node's earlier columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray
from causalarms.checks import choice, fraction, integer
from causalarms.errors import ModelError
from causalarms.rng import Seed, generator
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.regimes import existing, regimes_of

WeightDistribution: TypeAlias = Callable[[np.random.Generator, int], FloatArray]


def _separated(rng: np.random.Generator, size: int) -> FloatArray:
    return rng.choice([-1.0, 1.0], size) * rng.uniform(0.5, 2.0, size)


def _uniform(rng: np.random.Generator, size: int) -> FloatArray:
    return rng.uniform(-2.0, 2.0, size)


WEIGHT_DISTRIBUTIONS: dict[str, WeightDistribution] = {"separated": _separated, "uniform": _uniform}


RULES = ("authors", "plain")  # of a regeneration


@dataclass(frozen=True)
class Ensemble:
    """How columns of weights are drawn: by a distribution's name, or by a function (rng, size)."""

    weights: str | WeightDistribution = "separated"
    edge_probability: float = 0.5

    def __post_init__(self) -> None:
        if not callable(self.weights):
            choice("weights", self.weights, tuple(WEIGHT_DISTRIBUTIONS))
        fraction("edge_probability", self.edge_probability, ends="[]")

    def column(self, rng: np.random.Generator, n_earlier: int) -> FloatArray:
        """Weights from the nodes earlier in the order."""
        present = rng.random(n_earlier) < self.edge_probability
        return np.where(present, self._drawn(rng, n_earlier), 0.0)

    def _drawn(self, rng: np.random.Generator, size: int) -> FloatArray:
        if not callable(self.weights):
            return WEIGHT_DISTRIBUTIONS[self.weights](rng, size)
        drawn = np.asarray(self.weights(rng, size), dtype=float)
        if drawn.shape != (size,) or not np.isfinite(drawn).all():
            raise ModelError(
                f"weights: the function must give {size} finite numbers when asked for so many"
            )
        return drawn

    def column_unlike(
        self,
        others: FloatArray,  # (columns, n_earlier)
        rng: np.random.Generator,
        n_earlier: int,
    ) -> FloatArray:
        """A column that differs from the others if the ensemble has a different one."""
        column = self.column(rng, n_earlier)
        # without earlier nodes or edges there is one column only, the empty one
        while n_earlier and self.edge_probability and (others == column).all(axis=1).any():
            column = self.column(rng, n_earlier)
        return column


def random_sem(
    n_nodes: int,
    *,
    seed: Seed = None,
    weights: str | WeightDistribution = "separated",
    edge_probability: float = 0.5,
    expected_degree: float | None = None,
    hidden_order: bool = True,
    noise_mean: npt.ArrayLike = 1.0,
    noise_std: npt.ArrayLike = 1.0,
    regimes: npt.ArrayLike | None = None,
) -> LinearSEM:
    """A random system of the paper's ensemble; the last of `n_nodes` is the reward and comes last.

    `expected_degree`, the mean number of neighbours of a node, replaces `edge_probability`; it
    holds for B, while B' is denser in sparse systems, where empty columns of both are redrawn.
    `weights` is `separated`, `uniform` or a function (rng, size) -> weights.
    With `hidden_order` a random permutation of the other nodes hides the order. `regimes` is the
    number of regimes, of all nodes or of each (two). `noise_mean` and `noise_std` are numbers, (N,)
    or (R, N). The same `seed` gives the same system.

    >>> random_sem(10, seed=7)
    LinearSEM(10 nodes, 23 natural and 20 intervened edges, reward 'x9')
    """
    integer("n_nodes", n_nodes, minimum=1)
    if expected_degree is not None:
        edge_probability = expected_degree / max(n_nodes - 1, 1)
    ensemble = Ensemble(weights, edge_probability)
    rng = generator(seed)
    order = np.arange(n_nodes)
    if hidden_order:
        # the reward stays last, so that every other node may cause it
        order[:-1] = rng.permutation(n_nodes - 1)
    known = regimes_of(regimes, n_nodes)
    matrices = np.zeros((known.n_regimes, n_nodes, n_nodes))
    for position, node in enumerate(order):
        earlier = order[:position]
        for regime in range(known.key[node]):
            matrices[regime, earlier, node] = ensemble.column_unlike(
                matrices[:regime, earlier, node], rng, position
            )
    return LinearSEM(
        weights=matrices, noise_mean=noise_mean, noise_std=noise_std, order=order, regimes=known
    )


class Regeneration(NamedTuple):
    """A system after a change, and the mechanisms (regime, node) that really differ."""

    sem: LinearSEM
    mechanisms: list[tuple[int, int]]


def regenerate(
    sem: LinearSEM,
    n_mechanisms: int,
    rng: np.random.Generator,
    *,
    rule: str = "authors",
    ensemble: Ensemble | None = None,
    max_tries: int = 1000,
) -> Regeneration:
    """Redraw some mechanisms, keeping the order (Sec. VI-C).

    `rule="authors"` draws nodes with replacement among the mechanisms that the best intervention
    uses and repeats until another intervention is best; `rule="plain"` redraws that many distinct
    mechanisms once.
    """
    ensemble = ensemble or Ensemble()
    n_nodes = sem.n_nodes
    choice("rule", rule, RULES)
    integer("n_mechanisms", n_mechanisms, minimum=1)
    if rule == "plain":
        mechanisms = np.argwhere(existing(sem.regimes)).tolist()  # (regime, node)
        if n_mechanisms > len(mechanisms):
            raise ModelError(f"cannot regenerate {n_mechanisms} of {len(mechanisms)} mechanisms")
        chosen = rng.choice(len(mechanisms), n_mechanisms, replace=False)
        return _redrawn(sem, [tuple(mechanisms[m]) for m in chosen], rng, ensemble)
    best = sem.best_intervention()
    # most redraws of a mechanism that matters move the best intervention; not all do
    for _ in range(max_tries):
        nodes = rng.integers(n_nodes, size=n_mechanisms)
        changed = _redrawn(sem, [(int(best[i]), int(i)) for i in nodes], rng, ensemble)
        if not np.array_equal(changed.sem.best_intervention(), best):
            return changed
    raise ModelError(
        f"{max_tries} redraws of {n_mechanisms} mechanisms never changed the best intervention"
    )


def _redrawn(
    sem: LinearSEM, mechanisms: list[tuple[int, int]], rng: np.random.Generator, ensemble: Ensemble
) -> Regeneration:
    weights = sem.weights.copy()
    position = np.argsort(sem.order)
    for regime, node in mechanisms:
        earlier = sem.order[: position[node]]
        others = np.delete(weights[: sem.regimes[node]], regime, axis=0)
        weights[regime, earlier, node] = ensemble.column_unlike(
            others[:, earlier, node], rng, len(earlier)
        )
    differ = np.argwhere((weights != sem.weights).any(axis=1))
    return Regeneration(
        sem.replace(weights=weights, order=sem.order), [(int(r), int(i)) for r, i in differ]
    )
