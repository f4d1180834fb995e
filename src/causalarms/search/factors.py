"""What can be set: factors with levels, and the regime that each node then follows.

A factor acts on one or several nodes. A node's regime is looked up in its table by the levels of
the factors that act on it. Levels and regimes tell the same: different levels of a factor are never
the same intervention, so that an intervention (one regime per node) says how it was set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, product
from math import prod
from typing import Self

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, IntArray
from causalarms.errors import ModelError
from causalarms.limits import MAX_COMBINATIONS, MAX_REGIMES

Levels = npt.NDArray[np.uint8]  # of factors, (F,) or (n, F)

NOT_SET = -1  # in decoded levels: no level of this factor gives these regimes


@dataclass(frozen=True)
class Factors:
    """Numbers only; names live with the caller.

    >>> both = Factors.acting_on(levels=[3, 2], nodes=[[0, 2], [1]], n_nodes=3)
    >>> both.interventions([[2, 1]]).tolist()
    [[2, 1, 2]]
    """

    levels: tuple[int, ...]  # (F,) how many
    acting: tuple[tuple[int, ...], ...]  # per node, the factors that act on it
    tables: tuple[tuple[int, ...], ...]  # per node, its regimes; the last factor varies fastest

    def __post_init__(self) -> None:
        for factor, n_levels in enumerate(self.levels):
            if not 1 <= n_levels <= MAX_REGIMES:
                raise ModelError(
                    f"factor {factor} has {n_levels} levels, not between 1 and {MAX_REGIMES}"
                )
        if len(self.acting) != len(self.tables):
            raise ModelError(f"{len(self.tables)} tables of regimes for {len(self.acting)} nodes")
        for node, (factors, table) in enumerate(zip(self.acting, self.tables, strict=True)):
            self._check_node(node, factors, table)
        self._check_told_apart()

    @staticmethod
    def per_node(regimes: Sequence[int]) -> Factors:
        """One factor per node whose level is the node's regime."""
        return _per_node(tuple(int(n) for n in regimes))

    @classmethod
    def acting_on(
        cls, *, levels: Sequence[int], nodes: Sequence[Sequence[int]], n_nodes: int
    ) -> Self:
        """Level l puts the nodes of a factor into regime l; two factors, a regime per combination.

        The combinations are counted with the last factor varying fastest. A node on which no factor
        acts has one regime.
        """
        if len(levels) != len(nodes):
            raise ModelError(f"{len(levels)} numbers of levels for {len(nodes)} factors")
        for factor, targets in enumerate(nodes):
            for node in targets:
                if not 0 <= node < n_nodes:
                    raise ModelError(f"factor {factor} acts on node {node} of {n_nodes} nodes")
        acting = tuple(
            tuple(factor for factor, targets in enumerate(nodes) if node in targets)
            for node in range(n_nodes)
        )
        sizes = [prod(levels[factor] for factor in factors) for factors in acting]
        return cls(
            tuple(int(n) for n in levels), acting, tuple(tuple(range(size)) for size in sizes)
        )

    @property
    def n_nodes(self) -> int:
        return len(self.acting)

    @cached_property
    def regimes(self) -> tuple[int, ...]:
        """How many regimes the tables name, per node."""
        return tuple(max(table) + 1 for table in self.tables)

    @cached_property
    def is_per_node(self) -> bool:
        """Levels are regimes."""
        return self == Factors.per_node(self.regimes)

    def strides(self, node: int) -> tuple[int, ...]:
        """What one level of each acting factor is worth in the node's table."""
        counts = [self.levels[factor] for factor in self.acting[node]]
        return tuple(prod(counts[at + 1 :]) for at in range(len(counts)))

    @cached_property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """As `Rules` hold them: act_start, act_factor, act_stride, table_start, table."""
        strides = [self.strides(node) for node in range(self.n_nodes)]
        flat = [np.array([*chain(*part)], np.int64) for part in (self.acting, strides, self.tables)]
        return starts(self.acting), flat[0], flat[1], starts(self.tables), flat[2]

    def interventions(self, levels: npt.ArrayLike) -> Levels:
        """The regime of every node, (n, N), for rows of levels (n, F)."""
        rows = np.asarray(levels)
        if self.is_per_node:
            return rows.astype(np.uint8)
        out = np.empty((len(rows), self.n_nodes), dtype=np.uint8)
        for node, factors in enumerate(self.acting):
            at = rows[:, list(factors)].astype(np.int64) @ np.array(self.strides(node), np.int64)
            out[:, node] = np.array(self.tables[node], dtype=np.uint8)[at]
        return out

    def levels_of(self, interventions: npt.ArrayLike) -> npt.NDArray[np.int16]:
        """The levels (n, F) that give these regimes (n, N); NOT_SET if none do."""
        rows = np.asarray(interventions)
        if self.is_per_node:
            known = (rows >= 0) & (rows < np.array(self.levels))
            given = rows.astype(np.int16)  # NOT_SET does not fit uint8
            return np.where(known.all(axis=1, keepdims=True), given, np.int16(NOT_SET))
        levels = np.full((len(rows), len(self.levels)), NOT_SET, dtype=np.int16)
        for factor, n_levels in enumerate(self.levels):
            possible = np.ones((len(rows), n_levels), dtype=bool)
            for node, compatible in self._compatible[factor]:
                regime = rows[:, node]
                known = (regime >= 0) & (regime < compatible.shape[1])
                seen = compatible[:, np.where(known, regime, 0).astype(np.int64)].T
                possible &= seen & known[:, None]
            levels[:, factor] = np.where(possible.any(axis=1), possible.argmax(axis=1), NOT_SET)
        found = (levels != NOT_SET).all(axis=1)
        # each regime alone may fit a level although together they fit none
        again = self.interventions(np.where(found[:, None], levels, 0))
        levels[~(found & (again == rows).all(axis=1))] = NOT_SET
        return levels

    @cached_property
    def _compatible(self) -> list[list[tuple[int, BoolArray]]]:
        """Per factor and node it acts on: which regimes each level can go with, (L, regimes)."""
        found: list[list[tuple[int, BoolArray]]] = [[] for _ in self.levels]
        for node, factors in enumerate(self.acting):
            table = self.tables[node]
            seen = [
                np.zeros((self.levels[factor], max(table) + 1), dtype=bool) for factor in factors
            ]
            combinations = product(*(range(self.levels[factor]) for factor in factors))
            for regime, combination in zip(table, combinations, strict=True):
                for place, level in enumerate(combination):
                    seen[place][level, regime] = True
            for place, factor in enumerate(factors):
                found[factor].append((node, seen[place]))
        return found

    def _check_node(self, node: int, factors: tuple[int, ...], table: tuple[int, ...]) -> None:
        for factor in factors:
            if not 0 <= factor < len(self.levels):
                raise ModelError(f"node {node}: there is no factor {factor}")
        if len(set(factors)) < len(factors):
            raise ModelError(f"node {node}: a factor acts on it twice")
        size = prod(self.levels[factor] for factor in factors)
        if size > MAX_COMBINATIONS:
            raise ModelError(
                f"node {node}: {size} combinations of levels act on it (at most {MAX_COMBINATIONS})"
            )
        if len(table) != size:
            raise ModelError(f"node {node}: {len(table)} regimes for {size} combinations of levels")
        if not all(0 <= regime < MAX_REGIMES for regime in table):
            raise ModelError(f"node {node}: regimes must lie between 0 and {MAX_REGIMES - 1}")

    def _check_told_apart(self) -> None:
        for factor, n_levels in enumerate(self.levels):
            alike = np.ones((n_levels, n_levels), dtype=bool)
            for _, compatible in self._compatible[factor]:
                shared = compatible.astype(np.int64)
                alike &= shared @ shared.T > 0
            one, other = np.nonzero(np.triu(alike, 1))
            if len(one):
                raise ModelError(
                    f"factor {factor}: levels {one[0]} and {other[0]} can lead to the same regimes "
                    "of all nodes it acts on; give them different regimes or make them one level"
                )


def starts(parts: Sequence[Sequence[object]]) -> IntArray:
    """Where each of these parts starts in all of them one after the other, and where they end."""
    return np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)


@lru_cache(maxsize=256)  # the check that levels can be told apart takes longer than a small search
def _per_node(counts: tuple[int, ...]) -> Factors:
    return Factors(
        counts,
        tuple((node,) for node in range(len(counts))),
        tuple(tuple(range(n)) for n in counts),
    )
