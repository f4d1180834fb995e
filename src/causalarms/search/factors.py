"""What can be set: factors with levels, and the regime that each node then follows.

A factor acts on one or several nodes, and the levels of the factors that act on a node number its
regimes, the last factor varying fastest. Levels and regimes tell the same: every factor acts on
some node, so that an intervention (one regime per node) says how it was set.
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

from causalarms.arrays import IntArray
from causalarms.errors import ModelError
from causalarms.limits import MAX_REGIMES

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

    def __post_init__(self) -> None:
        for factor, n_levels in enumerate(self.levels):
            if not 1 <= n_levels <= MAX_REGIMES:
                raise ModelError(
                    f"factor {factor} has {n_levels} levels, not between 1 and {MAX_REGIMES}"
                )
        for node, factors in enumerate(self.acting):
            for factor in factors:
                if not 0 <= factor < len(self.levels):
                    raise ModelError(f"node {node}: there is no factor {factor}")
            if len(set(factors)) < len(factors):
                raise ModelError(f"node {node}: a factor acts on it twice")
            if self.regimes[node] > MAX_REGIMES:
                raise ModelError(
                    f"node {node}: {self.regimes[node]} combinations of levels act on it "
                    f"(at most {MAX_REGIMES})"
                )
        for factor, n_levels in enumerate(self.levels):
            if n_levels > 1 and factor not in chain(*self.acting):
                raise ModelError(
                    f"factor {factor} acts on no node: its {n_levels} levels would be the same"
                )

    @staticmethod
    def per_node(regimes: Sequence[int]) -> Factors:
        """One factor per node whose level is the node's regime."""
        return _per_node(tuple(int(n) for n in regimes))

    @classmethod
    def acting_on(
        cls, *, levels: Sequence[int], nodes: Sequence[Sequence[int]], n_nodes: int
    ) -> Self:
        """Level l puts the nodes of a factor into regime l; two factors, a regime per combination.

        A node on which no factor acts has one regime.
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
        return cls(tuple(int(n) for n in levels), acting)

    @property
    def n_nodes(self) -> int:
        return len(self.acting)

    @cached_property
    def regimes(self) -> tuple[int, ...]:
        """How many each node has."""
        return tuple(prod(self.levels[factor] for factor in factors) for factors in self.acting)

    @cached_property
    def is_per_node(self) -> bool:
        """Levels are regimes."""
        return self == Factors.per_node(self.regimes)

    def settings(self, node: int) -> list[tuple[tuple[int, int], ...]]:
        """Of every regime of a node the (factor, level) pairs that give it.

        >>> Factors.acting_on(levels=[2, 2], nodes=[[0], [0]], n_nodes=1).settings(0)[1]
        ((0, 0), (1, 1))
        """
        pairs = [[(f, level) for level in range(self.levels[f])] for f in self.acting[node]]
        return list(product(*pairs))

    @cached_property
    def _strides(self) -> list[list[int]]:
        """Per node, what one level of each factor that acts on it is worth in its regime."""
        counts = [[self.levels[factor] for factor in factors] for factors in self.acting]
        return [[prod(of[at + 1 :]) for at in range(len(of))] for of in counts]

    @cached_property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """As `Rules` hold them: act_start, act_factor, act_stride, table_start, table."""
        tables = [range(n) for n in self.regimes]
        parts = (self.acting, self._strides, tables)
        flat = [np.array([*chain(*part)], np.int64) for part in parts]
        return starts(self.acting), flat[0], flat[1], starts(tables), flat[2]

    def interventions(self, levels: npt.ArrayLike) -> Levels:
        """The regime of every node, (n, N), for rows of levels (n, F)."""
        rows = np.asarray(levels)
        if self.is_per_node:
            return rows.astype(np.uint8)
        return regimes_given(rows, *self.arrays[:3]).astype(np.uint8)

    def levels_of(self, interventions: npt.ArrayLike) -> npt.NDArray[np.int16]:
        """The levels (n, F) that give these regimes (n, N); NOT_SET if none do."""
        rows = np.asarray(interventions)
        node, stride = self._read_from
        levels = (rows[:, node] // stride % np.array(self.levels, np.int64)).astype(np.int16)
        # a factor is read off one of its nodes: the others, and regimes out of range, may disagree
        right = (self.interventions(levels) == rows).all(axis=1, keepdims=True)
        return np.where(right, levels, np.int16(NOT_SET))  # which does not fit uint8

    @cached_property
    def _read_from(self) -> tuple[IntArray, IntArray]:
        """For each factor the first node it acts on, and what one level is worth there, (F,)."""
        places = {
            factor: (node, stride)
            for node in reversed(range(self.n_nodes))
            for factor, stride in zip(self.acting[node], self._strides[node], strict=True)
        }
        # a factor that acts on no node has one level, which is read wherever one looks
        found = [places.get(factor, (0, 1)) for factor in range(len(self.levels))]
        node, stride = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return node, stride


def regimes_given(
    levels: npt.NDArray[np.integer],  # (n, F)
    act_start: IntArray,
    act_factor: IntArray,
    act_stride: IntArray,
) -> IntArray:
    """The regime of every node, (n, N); the arrays are those of `Rules`."""
    regimes = np.empty((len(levels), len(act_start) - 1), dtype=np.int64)
    for node in range(regimes.shape[1]):
        acting = slice(act_start[node], act_start[node + 1])
        regimes[:, node] = levels[:, act_factor[acting]] @ act_stride[acting]
    return regimes


def starts(parts: Sequence[Sequence[object]]) -> IntArray:
    """Where each of these parts starts in all of them one after the other, and where they end."""
    return np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)


@lru_cache(maxsize=256)  # the checks take longer than a small search
def _per_node(counts: tuple[int, ...]) -> Factors:
    return Factors(counts, tuple((node,) for node in range(len(counts))))
