"""Systems whose nodes are shifted by factors: the columns of the factors are the last nodes.

A column has no causes and no noise; its regime is the level of its factor, and its mean the code of
that level (`factors.py`). So a system with factors is a `LinearSEM` like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from causalarms.arrays import FloatArray
from causalarms.checks import as_mapping, fraction, integer
from causalarms.errors import ModelError, shown
from causalarms.rng import Seed, generator
from causalarms.sem.ensembles import Ensemble, WeightDistribution, random_sem
from causalarms.sem.factor import SHIFT, Factor
from causalarms.sem.factors import NamedFactors, switches
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.regimes import node_index

EXACT_FIT = 1e-9  # of the largest shift


class ShiftedSEM(NamedTuple):
    """A system with the columns of its factors, and the factors that set them."""

    sem: LinearSEM
    factors: NamedFactors


def shifted_sem(
    sem: LinearSEM, factors: Mapping[str, Any], shifts: Mapping[str, Mapping[str, Sequence[float]]]
) -> ShiftedSEM:
    """The system `sem` with factors that shift its nodes.

    factors   {factor: {"levels": [...]}}; what a factor acts on is not said here
    shifts    {factor: {node: what each level adds to the node}}

    >>> plant = LinearSEM(weights=[[[0, 2.0], [0, 0]]], nodes=("heat", "yield"), regimes=1)
    >>> shifts = {"load": {"heat": [1, 2, 6]}}
    >>> sem, named = shifted_sem(plant, {"load": {"levels": [1, 2, 4]}}, shifts)
    >>> rows = [named.intervention({"load": load}) for load in (1, 2, 4)]
    >>> sem.mean(rows)[:, :2].round(9).tolist()
    [[1.0, 2.0], [2.0, 4.0], [6.0, 12.0]]
    """
    named = _named(sem, factors)
    weights = np.zeros((len(named.columns), sem.n_nodes))
    mean = np.zeros(sem.n_nodes)
    for name, by_node in as_mapping("shifts", shifts, "{factor: {node: list}}").items():
        at = named.factor(name)
        factor = named.factors[at]
        if factor.effect != SHIFT:
            raise ModelError(f"shifts: {shown(name)} switches a node; it has its own mechanisms")
        own = [c for c, column in enumerate(named.columns) if column.factors == (at,)]
        for node, added in as_mapping(f"shifts of {name!r}", by_node, "{node: list}").items():
            child = node_index(node, sem.nodes)
            fitted, average = _column_weights(factor, sem.nodes[child], added)
            weights[own, child] += fitted
            mean[child] += average
    return ShiftedSEM(_with_columns(sem, named, weights, mean), named)


def random_shifted_sem(
    n_nodes: int,
    factors: Mapping[str, Any],
    *,
    seed: Seed = None,
    weights: str | WeightDistribution = "separated",
    edge_probability: float = 0.5,
    acting_probability: float = 0.5,
    n_context: int = 0,
) -> ShiftedSEM:
    """A random system of the paper's ensemble whose nodes have no switches, shifted by factors.

    Every one of the `factors` acts on every node with `acting_probability`, and on one at least;
    weights of its columns are those of an edge. No factor acts on the first `n_context` nodes of
    the order, the context. The other settings are those of `random_sem`.

    >>> sem, named = random_shifted_sem(4, {"load": {"levels": [1, 2, 4]}}, seed=1)
    >>> sem.nodes, sem.nodes[sem.reward]
    (('x0', 'x1', 'x2', 'x3', 'do:load', 'do:load.2'), 'x3')
    """
    fraction("acting_probability", acting_probability, ends="[]")
    integer("n_context", n_context, minimum=0, maximum=integer("n_nodes", n_nodes, minimum=1) - 1)
    rng = generator(seed)
    sem = random_sem(
        n_nodes, seed=rng, weights=weights, edge_probability=edge_probability, regimes=1
    )
    named = _named(sem, factors)
    moved = sem.order[n_context:]
    columns, every_edge = np.zeros((len(named.columns), n_nodes)), Ensemble(weights, 1.0)
    for at in named.shifting:
        own = [c for c, column in enumerate(named.columns) if column.factors == (at,)]
        acts = rng.random(len(moved)) < acting_probability
        acts[rng.integers(len(moved))] = True
        for node in moved[acts]:
            columns[own, node] = every_edge.column(rng, len(own))
    return ShiftedSEM(_with_columns(sem, named, columns, np.zeros(n_nodes)), named)


def _named(sem: LinearSEM, factors: Mapping[str, Any]) -> NamedFactors:
    """The given factors, and the switches of nodes that have some."""
    for name in as_mapping("factors", factors, "{factor: {'levels': [...]}}"):
        if name in sem.nodes:
            raise ModelError(f"factor {shown(name)} has the name of a node: give it another")
    named = NamedFactors.of({**switches(sem.nodes, sem.regimes), **factors}, sem.nodes)
    for factor in named.factors:
        if factor.effect != SHIFT and factor.name not in sem.nodes:
            raise ModelError(
                f"factor {factor.name!r} has a mechanism per level: give the node on which it acts "
                "regimes instead"
            )
    return named


def _column_weights(factor: Factor, node: str, added: Any) -> tuple[FloatArray, float]:
    """Weights of the factor's columns, and what the levels add on average."""
    what = f"shifts of {factor.name!r} on {node!r}"
    try:
        shift = np.array(added, dtype=float)
    except (TypeError, ValueError):
        shift = np.empty(0)
    if shift.shape != (len(factor.levels),) or not np.isfinite(shift).all():
        raise ModelError(
            f"{what} must be {len(factor.levels)} numbers, one per level, not {shown(added)}"
        )
    average = float(shift.mean())
    weights = np.linalg.lstsq(factor.codes, shift - average, rcond=None)[0]
    left = np.abs(factor.codes @ weights - (shift - average)).max()
    if left > EXACT_FIT * np.abs(shift).max(initial=1.0):
        raise ModelError(
            f"{what} must lie on a curve of degree {factor.codes.shape[1]} over the levels, which "
            "are numbers; call the levels by names for an effect per level"
        )
    return np.asarray(weights), average


def _with_columns(
    sem: LinearSEM, named: NamedFactors, columns: FloatArray, mean: FloatArray
) -> LinearSEM:
    """`columns` (C, N) are their weights, `mean` (N,) is added to the means of the noise."""
    n, size = sem.n_nodes, len(named.system_nodes)
    most = int(named.regimes.max())
    weights = np.zeros((most, size, size))
    noise_mean, noise_std = np.zeros((most, size)), np.zeros((most, size))
    for node, count in enumerate(sem.regimes.tolist()):
        weights[:count, :n, node] = sem.weights[:count, :, node]
        weights[:count, n:, node] = columns[:, node]
        noise_mean[:count, node] = sem.mechanism_mean[:count, node] + mean[node]
        noise_std[:count, node] = sem.mechanism_std[:count, node]
    noise_mean[:, n:] = named.codes
    return LinearSEM(
        weights=weights,
        noise_mean=noise_mean,
        noise_std=noise_std,
        nodes=named.system_nodes,
        reward=sem.reward,
        order=np.append(np.arange(n, size), sem.order),
        regimes=named.regimes,
    )
