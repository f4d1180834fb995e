"""The linear structural equation model with soft interventions (Sec. II of the paper).

x = B_a^T x + eps; column i of B_a is column i of the matrix of the regime that node i is in.
Arrays are indexed weights[regime, parent, child]: weights[0] is B, weights[1] is B'.
Node i has regimes 0 (natural) to K_i - 1; K_i = 2 is the paper, K_i = 1 a node without a switch.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray, Intervention
from causalarms.errors import CausalArmsWarning, ModelError
from causalarms.files import Mark, parse_json, read_text, write_output
from causalarms.limits import SYSTEM_BYTES
from causalarms.search import Best, best_intervention, best_interventions
from causalarms.search import Constraints as NumberedConstraints
from causalarms.search.best import BUDGET
from causalarms.sem import rewards
from causalarms.sem.constraints import Constraints
from causalarms.sem.factors import NamedFactors, switches
from causalarms.sem.regimes import (
    Counts,
    Regimes,
    ancestors,
    as_interventions,
    find_cycle,
    node_index,
    node_names,
    regimes_of,
    topological_order,
)
from causalarms.sem.rewards import within

FORMAT = "causalarms.LinearSEM/1"
PARTS = ("weights", "noise_mean", "noise_std", "nodes", "reward")  # arguments of a system
FOLLOWING = ("order", "regimes")  # that follow from the weights unless they are given
MARK = Mark("`causalarms demo` or `LinearSEM.save`", f'{{\n "format": "{FORMAT}"'.encode())


class LinearSEM:
    """A world of N nodes, each with one mechanism per regime: natural (0), intervened (1), ...

    B_a is acyclic for every intervention a exactly when the union of the edges of all regimes is,
    so a union with a cycle is refused and one topological order serves all of them.
    `weights` are (R, N, N), `noise_mean` and `noise_std` are (N,) or (R, N). `regimes` says how
    many each node has if they differ; weights of regimes that a node does not have must be 0.
    `nodes` are names, and `reward` is one of them or its number (default: the last). `order` lists
    parents before children, if that is known.

    >>> sem = LinearSEM(weights=[[[0, 2.0], [0, 0]], [[0, -1.0], [0, 0]]], noise_mean=1.0)
    >>> sem.expected_reward([[0, 0], [0, 1]]).tolist()
    [3.0, 0.0]
    >>> sem.best_intervention().tolist()
    [0, 0]
    """

    def __init__(
        self,
        *,
        weights: npt.ArrayLike,
        noise_mean: npt.ArrayLike = 0.0,
        noise_std: npt.ArrayLike = 1.0,
        nodes: Sequence[str] | None = None,
        reward: str | int | None = None,
        order: Sequence[int] | npt.NDArray[np.int64] | None = None,
        regimes: npt.ArrayLike | None = None,
    ) -> None:
        self.weights = _weights(weights)
        n_nodes = self.weights.shape[1]
        self.nodes = node_names(nodes, n_nodes)
        self.reward = n_nodes - 1 if reward is None else node_index(reward, self.nodes)
        self._regimes = _regimes(regimes, self.weights, self.nodes)
        self.noise_mean = _per_node(noise_mean, self._regimes, "noise_mean")
        self.noise_std = _per_node(noise_std, self._regimes, "noise_std")
        if (self.noise_std < 0).any():
            node = self.nodes[int(np.argwhere(self.noise_std < 0)[0, -1])]
            raise ModelError(f"noise_std of node {node!r} is negative")
        self.order = _order(order, (self.weights != 0).any(axis=0), self.nodes)

    @property
    def n_nodes(self) -> int:
        return len(self.nodes)

    @property
    def adjacency(self) -> BoolArray:
        """(R, N, N): which parent feeds which child, per regime."""
        return self.weights != 0

    @property
    def regimes(self) -> Counts:
        """How many every node has, (N,)."""
        return self._regimes.counts

    @cached_property
    def mechanism_mean(self) -> FloatArray:
        """Mean of the exogenous variable of every mechanism, (R, N)."""
        return self._of_mechanisms(self.noise_mean)

    @cached_property
    def mechanism_std(self) -> FloatArray:
        """Standard deviation of the exogenous variable of every mechanism, (R, N)."""
        return self._of_mechanisms(self.noise_std)

    def _of_mechanisms(self, values: FloatArray) -> FloatArray:
        each = np.where(self._regimes.existing, values, 0.0)
        each.setflags(write=False)
        return each

    def parents(self, node: str | int, regime: int = 0) -> list[str]:
        """P_i(a_i) of the paper: the parents of a `node` in a `regime`, by name."""
        i = node_index(node, self.nodes)
        if not 0 <= regime < self.regimes[i]:
            raise ModelError(
                f"node {self.nodes[i]!r} has no regime {regime}: it has {self.regimes[i]}"
            )
        column = self.adjacency[regime, :, i]
        return [self.nodes[parent] for parent in np.flatnonzero(column)]

    def ancestors(self, node: str | int, intervention: npt.ArrayLike | None = None) -> list[str]:
        """A_i(a_i) of the paper: ancestors of a `node` under an `intervention` (none), by name."""
        reach = ancestors(self.post_intervention_weights(self._one(intervention)) != 0)
        return [self.nodes[k] for k in np.flatnonzero(reach[:, node_index(node, self.nodes)])]

    def post_intervention_weights(self, intervention: npt.ArrayLike) -> FloatArray:
        """B_a (eq. constr_Ba) under one `intervention`, (N, N)."""
        a = self._one(intervention)
        return np.ascontiguousarray(self.weights[a, :, np.arange(self.n_nodes)].T)

    def flow(self, intervention: npt.ArrayLike) -> FloatArray:
        """C_a = (I - B_a)^-1 under one `intervention`: the net flow weight from k to i, (N, N)."""
        n = self.n_nodes
        a = np.broadcast_to(self._one(intervention), (n, n))
        unit_impulses = np.eye(n)  # row k: what one unit of eps_k does to every node
        return rewards.propagate(self.weights, self.order, np.ascontiguousarray(a), unit_impulses)

    def mean(self, interventions: npt.ArrayLike) -> FloatArray:
        """mu_a (eq. mu_a) of every row of `interventions`, (n, N)."""
        rows = as_interventions(interventions, self.nodes, self._regimes)
        return rewards.expected_values(self.weights, self.mechanism_mean, self.order, rows)

    def covariance(self, intervention: npt.ArrayLike) -> FloatArray:
        """Exact covariance of x under one `intervention`, (N, N)."""
        a = self._one(intervention)
        std = rewards.of_regimes(self.mechanism_std, a)
        # x - mu_a = C_a^T (eps - nu), and the entries of eps are independent
        scaled = self.flow(a) * std[:, None]
        return scaled.T @ scaled

    def expected_reward(self, interventions: npt.ArrayLike) -> FloatArray:
        """Entry of mu_a at the reward node for every row of `interventions`, (n,)."""
        return self.mean(interventions)[:, self.reward]

    def all_expected_rewards(self) -> FloatArray:
        """Expected rewards of all interventions in lexicographic order, 2^N with K = 2."""
        return rewards.reward_tables(
            self.weights[None], self.mechanism_mean[None], self.order[None], self.reward,
            self._regimes,
        )[0]  # fmt: skip

    def average_reward(self) -> float:
        """Mean expected reward over all interventions, exact for any N.

        A path to the reward meets every node at most once and the regimes of a uniformly random
        intervention are independent, so the mean is the reward of the averaged mechanisms.
        """
        mixed = (self.weights.sum(axis=0) / self.regimes)[None]
        natural = np.zeros((1, self.n_nodes), dtype=np.uint8)
        mean = (self.mechanism_mean.sum(axis=0) / self.regimes)[None]
        return float(rewards.expected_values(mixed, mean, self.order, natural)[0, self.reward])

    def best_intervention(self) -> npt.NDArray[np.uint8]:
        """a* = argmax of the expected reward; the lexicographically first among equals.

        So it changes no node whose change has no effect.
        Warns if it is not proven, which takes hundreds of dense nodes.
        """
        best = self.best_arm()
        if not best.exact:
            warnings.warn(
                f"the best intervention is not proven: after {best.nodes} tree nodes another may "
                f"be better than {best.value:.6g} by up to {best.gap:.3g}",
                CausalArmsWarning,
                stacklevel=2,
            )
        return best.intervention

    def best_arm(self, constraints: Constraints | None = None, *, budget: int = BUDGET) -> Best:
        """The best allowed intervention with its value and what is proven about it.

        `constraints` say what is allowed; None: everything. The search looks at up to `budget`
        nodes of its tree.

        >>> sem = LinearSEM(weights=[[[0, 2.0], [0, 0]], [[0, -1.0], [0, 0]]], noise_mean=1.0)
        >>> best = sem.best_arm(Constraints(forbidden=[{"x1": "off"}]))
        >>> best.intervention.tolist(), best.value, best.exact
        ([0, 1], 0.0, True)
        """
        return best_intervention(
            self.weights, self.mechanism_mean, self.order, self.reward,
            constraints=self._allowed(constraints), budget=budget,
        )  # fmt: skip

    def top(
        self,
        m: int,
        constraints: Constraints | None = None,
        *,
        distinct: bool = False,
        budget: int = BUDGET,
    ) -> list[Best]:
        """The `m` best allowed interventions, best first; `constraints` and `budget` as above.

        With `distinct`, those that intervene without an effect on the reward are left out.
        """
        return best_interventions(
            self.weights, self.mechanism_mean, self.order, self.reward, m,
            constraints=self._allowed(constraints), distinct=distinct, budget=budget,
        )  # fmt: skip

    def _allowed(self, constraints: Constraints | None) -> NumberedConstraints:
        if constraints is None:
            return within(self._regimes)
        # What can be set in a system without factors is the regime of each node that has several.
        named = NamedFactors.of(switches(self.nodes, self.regimes), self.nodes)
        return constraints.checked(named).over(named)

    def sample(self, interventions: npt.ArrayLike, rng: np.random.Generator) -> FloatArray:
        """One sample of all nodes per row of `interventions`, (n, N); the noise is from `rng`."""
        rows = as_interventions(interventions, self.nodes, self._regimes)
        return rewards.sampled_values(
            self.weights, self.mechanism_mean, self.mechanism_std, self.order, rows,
            rng.standard_normal(rows.shape),
        )  # fmt: skip

    def to_dict(self) -> dict[str, object]:
        """Plain lists and scalars, as in the JSON file."""
        return {
            "format": FORMAT,
            "nodes": list(self.nodes),
            "reward": self.nodes[self.reward],
            "order": self.order.tolist(),
            "weights": self.weights.tolist(),
            "noise_mean": self.noise_mean.tolist(),
            "noise_std": self.noise_std.tolist(),
        } | ({} if self._regimes.all_two else {"regimes": self.regimes.tolist()})

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The system of a `record` that `to_dict` made."""
        if record.get("format") != FORMAT:
            raise ModelError(f"not a system of this package: format is {record.get('format')!r}")
        missing = set(PARTS) - set(record)
        if missing:
            raise ModelError(f"the system lacks {', '.join(sorted(missing))}")
        try:
            return cls(**{key: record[key] for key in (*PARTS, *FOLLOWING) if key in record})
        except (TypeError, ValueError) as error:
            raise ModelError(f"the system is malformed: {error}") from error

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the system to `path` as JSON; without `force` only over another system."""
        return write_output(path, json.dumps(self.to_dict(), indent=1) + "\n", MARK, force=force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The system in the JSON file at `path`."""
        try:
            record = parse_json(read_text(path, SYSTEM_BYTES))
        except (ValueError, RecursionError) as error:
            raise ModelError(f"cannot read a system from {path}: {error}") from error
        if not isinstance(record, dict):
            raise ModelError(f"{path} must hold a JSON object, the system")
        return cls.from_dict(record)

    def replace(self, **changes: object) -> Self:
        """The same system with `changes` of its constructor's arguments."""
        arguments = {name: getattr(self, name) for name in PARTS}
        if "weights" not in changes:
            arguments["order"] = self.order
        # other numbers of regimes come with weights of another shape
        if np.asarray(changes.get("weights", self.weights)).shape == self.weights.shape:
            arguments["regimes"] = self._regimes
        return type(self)(**(arguments | changes))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LinearSEM)
            and self.nodes == other.nodes
            and self.reward == other.reward
            and self._regimes == other._regimes
            and np.array_equal(self.weights, other.weights)
            and np.array_equal(self.mechanism_mean, other.mechanism_mean)
            and np.array_equal(self.mechanism_std, other.mechanism_std)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        edges = self.adjacency.sum(axis=(1, 2)).tolist()
        counts = ", ".join(map(str, edges))
        each = f"{edges[0]} natural and {edges[1]} intervened edges" if len(edges) == 2 else (
            f"{counts} edges by regime"
        )  # fmt: skip
        return f"LinearSEM({self.n_nodes} nodes, {each}, reward {self.nodes[self.reward]!r})"

    def _one(self, intervention: npt.ArrayLike | None) -> Intervention:
        if intervention is None:
            return np.zeros(self.n_nodes, dtype=np.uint8)
        return as_interventions(np.asarray(intervention)[None], self.nodes, self._regimes)[0]


def _weights(given: npt.ArrayLike) -> FloatArray:
    weights = np.array(given, dtype=float)
    if weights.ndim != 3 or weights.shape[0] == 0 or weights.shape[1] != weights.shape[2]:
        raise ModelError(
            "weights must have shape (R, N, N), for two regimes of every node the shape "
            f"(2, N, N), not {weights.shape}"
        )
    if weights.shape[1] == 0:
        raise ModelError("a system needs at least one node")
    if not np.isfinite(weights).all():
        regime, parent, child = np.argwhere(~np.isfinite(weights))[0]
        raise ModelError(f"weights[{regime}, {parent}, {child}] is not finite")
    weights.setflags(write=False)
    return weights


def _regimes(given: object, weights: FloatArray, nodes: tuple[str, ...]) -> Regimes:
    n_regimes = len(weights)
    if n_regimes == 1 and given is None:  # more often a mistake than a system without a switch
        raise ModelError(
            "weights must have a matrix per regime; shape (2, N, N) for two, not "
            f"{weights.shape}; if no node has a switch, say regimes=1"
        )
    known = regimes_of(given, len(nodes), default=n_regimes)
    if known.n_regimes != n_regimes:
        raise ModelError(
            f"weights have {n_regimes} regimes, but the nodes have up to {known.n_regimes} "
            "(regimes)"
        )
    for regime, _, child in np.argwhere((weights != 0) & ~known.existing[:, None, :])[:1]:
        raise ModelError(
            f"node {nodes[child]!r} has {known.key[child]} regimes, but weights in regime {regime}"
        )
    return known


def _order(
    given: Sequence[int] | IntArray | None, union: BoolArray, nodes: tuple[str, ...]
) -> IntArray:
    # also if an order is given: it shows cycles
    found = topological_order(union)
    if found is None:
        cycle = [nodes[node] for node in find_cycle(union)]
        raise ModelError(
            "the edges of the regimes together contain the cycle " + " -> ".join([*cycle, cycle[0]])
        )
    order = found if given is None else np.array(given, dtype=np.int64)
    if sorted(order.tolist()) != list(range(len(nodes))):
        raise ModelError(f"order must list every node once, not {order.tolist()}")
    backwards = np.argwhere(np.tril(union[np.ix_(order, order)]))
    if len(backwards):
        parent, child = (nodes[order[position]] for position in backwards[0])
        raise ModelError(f"edge {parent} -> {child} goes against the given order")
    order.setflags(write=False)
    return order


def _per_node(given: npt.ArrayLike, regimes: Regimes, name: str) -> FloatArray:
    values = np.array(given, dtype=float)
    n_nodes, has = len(regimes), regimes.existing
    if values.ndim == 0:
        values = np.full(n_nodes, float(values))
    if values.shape not in ((n_nodes,), has.shape):
        raise ModelError(f"{name} must have shape ({n_nodes},) or {has.shape}, not {values.shape}")
    # what is given for regimes that a node lacks is never read; equal systems are equal
    if values.shape == has.shape:
        values[~has] = 0.0
    if not np.isfinite(values).all():
        node = int(np.argwhere(~np.isfinite(values))[0, -1])
        raise ModelError(f"{name} of node {node} is not finite")
    values.setflags(write=False)
    return values
