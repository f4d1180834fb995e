"""Exact answers given an order, from the tables of candidate parents."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.kernels import kernel
from causalarms.posterior.candidate_tables import CandidateTables, locate_all
from causalarms.posterior.graph_draws import draw_parents
from causalarms.posterior.mechanism_weights import draw_mechanism
from causalarms.posterior.parent_steps import step_parents
from causalarms.posterior.prior import EdgeMask

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


class Located(NamedTuple):
    """An order and where its tables are; good until the tables change."""

    place: IntArray  # (N,)
    start: IntArray  # (R, N) of the table of every mechanism
    before: IntArray  # (R, N) the free nodes before it, as a set


class Uniforms(NamedTuple):
    """What parents are drawn from."""

    tables: FloatArray  # (R, N)
    flips: FloatArray  # (R, N, N) of nodes beside the tables
    steps: FloatArray  # (R, N, sweeps, N)


def located(tables: CandidateTables, order: IntArray) -> Located:
    """Tables that are missing are made."""
    start, before = np.zeros((2, *tables.n_free.shape), dtype=np.int64)
    place = np.argsort(order)
    locate_all(tables, place, start, before)
    return Located(place, start, before)


@kernel
def log_weight(tables: CandidateTables, at: Located) -> float:
    """Unnormalised log probability of the order."""
    total = 0.0
    for node in range(len(at.place)):
        for regime in range(tables.prior.regimes[node]):
            where = at.start[regime, node] + at.before[regime, node]
            total += tables.within[regime, node, where]
        for j in range(len(at.place)):
            if at.place[j] < at.place[node]:
                total += tables.tail[j, node]
    return total


@kernel
def edges_given(tables: CandidateTables, at: Located, found: FloatArray) -> None:
    """Probability of every edge given the order, (R, N, N).

    The sets without j within S are the sets within S less j: P(j | S) = 1 - e^(a(S - j) - a(S)).
    """
    n = len(at.place)
    found[:] = 0.0
    for node in range(n):
        for regime in range(tables.prior.regimes[node]):
            for j in range(n):
                if at.place[j] < at.place[node]:
                    odds = tables.log_odds[regime, j, node]
                    found[regime, j, node] = 1.0 / (1.0 + math.exp(-odds))
            start, before = at.start[regime, node], at.before[regime, node]
            within = tables.within[regime, node]
            for a in range(tables.n_free[regime, node]):
                if before >> a & 1:
                    without = within[start + (before ^ (1 << a))] - within[start + before]
                    j = tables.members[regime, node, a]
                    found[regime, j, node] = -math.expm1(min(without, 0.0))


@kernel
def log_share_within(tables: CandidateTables, at: Located, kept: BoolArray) -> float:
    """Log probability, given the order, that no edge lies outside `kept` (R, N, N)."""
    n = len(at.place)
    share = 0.0
    for regime in range(len(kept)):
        for node in range(n):
            if regime >= tables.prior.regimes[node]:
                continue
            start, before = at.start[regime, node], at.before[regime, node]
            inside = before
            for a in range(tables.n_free[regime, node]):
                if not kept[regime, tables.members[regime, node, a], node]:
                    inside &= ~(1 << a)
            within = tables.within[regime, node]
            share += within[start + inside] - within[start + before]
            for j in range(n):
                # the log odds of free nodes say that they are never here
                if at.place[j] < at.place[node] and not kept[regime, j, node]:
                    odds = tables.log_odds[regime, j, node]
                    share -= max(odds, 0.0) + math.log1p(math.exp(-abs(odds)))
    return share


@kernel
def draw_parents_given(
    tables: CandidateTables,
    at: Located,
    edges: EdgeMask,
    uniforms: Uniforms,
    adjacency: BoolArray,  # (R, N, N) out
    chances: FloatArray,  # (R, N, N) out, of vague mechanisms only
) -> None:
    """Parents from the tables, and from there by steps where nodes beside the table matter."""
    place, n = at.place, len(at.place)
    possible = np.empty(n, dtype=np.bool_)
    adjacency[:] = False
    for node in range(n):
        for regime in range(tables.prior.regimes[node]):
            parents = adjacency[regime, :, node]
            start, before = at.start[regime, node], at.before[regime, node]
            n_free = tables.n_free[regime, node]
            for j in range(n):
                if place[j] < place[node]:
                    odds = tables.log_odds[regime, j, node]
                    parents[j] = uniforms.flips[regime, j, node] * (1.0 + math.exp(-odds)) < 1.0
            chosen = draw_parents(
                tables.scores[regime, node, start : start + (1 << n_free)],
                tables.within[regime, node, start + before],
                before,
                uniforms.tables[regime, node],
            )
            for a in range(n_free):
                if chosen >> a & 1:
                    parents[tables.members[regime, node, a]] = True
            if tables.vague[regime, node]:
                for j in range(n):
                    possible[j] = place[j] < place[node] and edges.allowed[regime, j, node]
                    possible[j] = possible[j] and not edges.required[regime, j, node]
                step_parents(
                    tables.gram[regime, node],
                    regime,
                    node,
                    tables.prior,
                    possible,
                    uniforms.steps[regime, node],
                    parents,
                    chances[regime, :, node],
                )


@kernel
def draw_weights_given(
    tables: CandidateTables,
    adjacency: BoolArray,  # (R, N, N)
    gammas: FloatArray,  # (R, N)
    normals: FloatArray,  # (R, N, N+1)
    weights: FloatArray,  # (R, N, N) out
    intercept: FloatArray,  # (R, N) out
    noise_std: FloatArray,  # (R, N) out
) -> None:
    weights[:] = 0.0
    intercept[:] = 0.0
    noise_std[:] = 0.0
    for node in range(adjacency.shape[1]):
        for regime in range(tables.prior.regimes[node]):
            intercept[regime, node], noise_std[regime, node] = draw_mechanism(
                tables.gram[regime, node],
                regime,
                node,
                adjacency[regime, :, node],
                tables.prior,
                gammas[regime, node],
                normals[regime, node],
                weights[regime, :, node],
            )


@kernel
def best_parents_given(tables: CandidateTables, at: Located) -> tuple[BoolArray, float]:
    """The most probable parents of every mechanism, and the sum of their scores."""
    n = len(at.place)
    adjacency = np.zeros((len(tables.n_free), n, n), dtype=np.bool_)
    total = 0.0
    for regime in range(len(tables.n_free)):
        for node in range(n):
            if regime >= tables.prior.regimes[node]:
                continue
            start, before = at.start[regime, node], at.before[regime, node]
            scores = tables.scores[regime, node]
            best, best_score, subset = 0, -np.inf, before
            while True:
                if scores[start + subset] >= best_score:
                    best, best_score = subset, scores[start + subset]
                if subset == 0:
                    break
                subset = (subset - 1) & before
            total += best_score
            for j in range(n):
                likely = tables.log_odds[regime, j, node] > 0.0
                adjacency[regime, j, node] = likely and at.place[j] < at.place[node]
            for a in range(tables.n_free[regime, node]):
                if best >> a & 1:
                    adjacency[regime, tables.members[regime, node, a], node] = True
    return adjacency, total
