"""Factors and levels by name; the search itself knows numbers only.

A factor has levels, names or numbers, and one of two effects:

free    The node of its name, or those in `acts_on`, have a mechanism per level: level l puts them
        into regime l. A node with two such factors has a regime per combination. A level may set a
        node: whatever causes it otherwise, does not in that regime.
shift   Its levels shift nodes and leave their slopes alone. Which nodes, is told (`acts_on`) or
        learned. The factor is a root of the graph: behind the nodes of the system stand its
        columns, numbers by which its levels are told apart, and each of them is a node whose regime
        is the level. Products of columns of two factors stand behind those: what a level does may
        depend on the other factor, and does if the data say so.

The core speaks in regimes of the measured nodes and the columns (`search/factors.py` has the
numbers); this is the one place that translates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from itertools import combinations
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.errors import ModelError, shown
from causalarms.limits import MAX_REGIMES
from causalarms.search.factors import Factors
from causalarms.sem.factor import FREE, SHIFT, Factor, Level, checked_factor, factor_entries
from causalarms.sem.regimes import REGIME_NAMES, Counts, existing

PREFIX = "do:"  # of columns of factors, in tables and among the nodes of a system
Intervention = tuple[int, ...]
MAX_PAIR_COLUMNS = 12  # beyond, effects of factors only add up
ACTING_PROBABILITY = 0.5  # of a factor on a node, if nothing is told
UNTOLD_PROBABILITY = 0.02  # of a factor on a node that its `acts_on` leaves out
PAIR_SIZE = 0.2  # of what two factors do together, next to what each does


@dataclass(frozen=True)
class Column:
    """A number that stands for the level of a factor, or for the levels of two."""

    factors: tuple[int, ...]
    parts: tuple[int, ...]  # which of the factor's `codes`


def _columns(factors: tuple[Factor, ...]) -> tuple[Column, ...]:
    """Columns of all factors that shift nodes, then of pairs, which use only lines of numbers."""
    shifting = [at for at, factor in enumerate(factors) if factor.effect == SHIFT]
    alone = [Column((at,), (c,)) for at in shifting for c in range(factors[at].codes.shape[1])]
    parts = {
        at: range(factors[at].codes.shape[1] if factors[at].is_named else 1) for at in shifting
    }
    pairs = [
        Column((one, other), (c, d))
        for one, other in combinations(shifting, 2)
        if len(factors[one].levels) * len(factors[other].levels) <= MAX_REGIMES
        for c in parts[one]
        for d in parts[other]
    ]
    return tuple(alone + (pairs if len(pairs) <= MAX_PAIR_COLUMNS else []))


def switches(nodes: Sequence[str], regimes: Counts) -> dict[str, dict[str, Any]]:
    """A factor with the name of each node that has several regimes, which are its levels."""
    counts = zip(nodes, regimes.tolist(), strict=True)
    return {node: {} if n == 2 else {"levels": range(n)} for node, n in counts if n > 1}


@dataclass(frozen=True)
class NamedFactors:
    """The factors of a system with these nodes.

    >>> given = {"catalyst": {"levels": ["old", "new", "none"], "acts_on": ["a", "b"]}, "b": {}}
    >>> both = NamedFactors.of(given, ("a", "b", "y"))
    >>> both.regimes.tolist(), both.intervention({"catalyst": "new", "b": "on"})
    ([3, 6, 1], (1, 3, 0))
    >>> both.levels((1, 3, 0)), both.regime_name(1, 3)
    ({'catalyst': 'new', 'b': 'on'}, 'catalyst=new, b on')
    """

    nodes: tuple[str, ...]
    factors: tuple[Factor, ...]
    numbers: Factors = field(compare=False)
    columns: tuple[Column, ...] = field(compare=False)  # of the factors that shift nodes

    @classmethod
    def of(cls, given: object, nodes: tuple[str, ...]) -> Self:
        """Checked; ModelError names the factor, level or node that is wrong."""
        pairs = factor_entries(given)
        if not pairs:
            raise ModelError("factors is empty: there would be nothing to try")
        factors = tuple(checked_factor(name, entry, nodes) for name, entry in pairs)
        names = [factor.name for factor in factors]
        for name in names:
            if names.count(name) > 1:
                raise ModelError(f"there are two factors {shown(name)}")
        position = {node: i for i, node in enumerate(nodes)}
        # here by name; the search would refuse it by number
        for node in nodes:
            acting = [f for f in factors if node in f.acts_on and f.effect == FREE]
            count = math.prod(len(f.levels) for f in acting)
            if count > MAX_REGIMES:
                words = ", ".join(f.name for f in acting)
                raise ModelError(
                    f"node {node!r} would have {count} regimes, one per combination of the "
                    f"levels of {words}; at most {MAX_REGIMES}"
                )
        columns = _columns(factors)
        targets = [
            [position[node] for node in factor.acts_on] if factor.effect == FREE
            else [len(nodes) + c for c, column in enumerate(columns) if at in column.factors]
            for at, factor in enumerate(factors)
        ]  # fmt: skip
        numbers = Factors.acting_on(
            levels=[len(f.levels) for f in factors],
            nodes=targets,
            n_nodes=len(nodes) + len(columns),
        )
        return cls(nodes, factors, numbers, columns)

    @property
    def n_measured(self) -> int:
        return len(self.nodes)

    @cached_property
    def shifting(self) -> tuple[int, ...]:
        """The factors that are roots of the graph, by position."""
        return tuple(at for at, f in enumerate(self.factors) if f.effect == SHIFT)

    @cached_property
    def system_nodes(self) -> tuple[str, ...]:
        """The measured nodes, then the columns of factors: what an intervention has regimes of.

        >>> NamedFactors.of({"load": {"levels": [1, 2, 5], "effect": "shift"}}, ("y",)).system_nodes
        ('y', 'do:load', 'do:load.2')
        """
        names = [
            PREFIX + " x ".join(
                self.factors[at].name + (f".{c + 1}" if c else "")
                for at, c in zip(column.factors, column.parts, strict=True)
            )
            for column in self.columns
        ]  # fmt: skip
        return (*self.nodes, *names)

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """As `system_nodes` in the words of people: columns have the name of their factor."""
        names = [" x ".join(self.factors[at].name for at in c.factors) for c in self.columns]
        return (*self.nodes, *(PREFIX + n if n in self.nodes else n for n in names))

    @cached_property
    def bits(self) -> IntArray:
        """The factors of every column as bits, by their place in `shifting`, (C,)."""
        found = [sum(1 << self.shifting.index(at) for at in c.factors) for c in self.columns]
        return np.array(found, dtype=np.int64)

    @cached_property
    def roots(self) -> list[int]:
        """The first column of each factor of `shifting`, as a node of the system.

        It stands for all columns of the factor: all of them act on a node, or none does.
        """
        first = [int(np.argmax(self.bits == 1 << root)) for root in range(len(self.shifting))]
        return [self.n_measured + column for column in first]

    @property
    def root_names(self) -> list[str]:
        """What they are called in the graph: like the factor, unless a node is."""
        return [self.shown[at] for at in self.roots]

    def root_steps(self, levels: Sequence[int] | None = None) -> FloatArray:
        """How far each column moves if one factor goes from its first level to its last, (F, C).

        All other factors are at their first. `levels`, a number for every factor: they are at
        these, and the one goes from its first level to its own of these.
        """
        base = [0] * len(self.factors) if levels is None else list(levels)
        rows = []
        for at in self.shifting:
            last = len(self.factors[at].levels) - 1 if levels is None else base[at]
            rows += [[*base[:at], level, *base[at + 1 :]] for level in (0, last)]
        set_to = self.values(self.numbers.interventions(rows)) if rows else self.codes[:0]
        return np.asarray(set_to[1::2] - set_to[::2])

    @cached_property
    def is_pair(self) -> BoolArray:
        """Which columns stand for two factors, (C,)."""
        return np.array([len(column.factors) == 2 for column in self.columns], dtype=bool)

    @cached_property
    def chances(self) -> FloatArray:
        """How likely each factor of `shifting` acts on each node, (F, N); 1: it was told."""
        found = np.full((len(self.shifting), len(self.nodes)), ACTING_PROBABILITY)
        for row, at in zip(found, self.shifting, strict=True):
            acts_on = self.factors[at].acts_on
            if acts_on:
                row[:] = [1.0 if node in acts_on else UNTOLD_PROBABILITY for node in self.nodes]
        return found

    @cached_property
    def codes(self) -> FloatArray:
        """The value of every column in each of its regimes, (R, C); R as in `regimes`."""
        found = np.zeros((int(self.regimes.max()), len(self.columns)))
        for c, column in enumerate(self.columns):
            for regime, setting in enumerate(self._settings[self.n_measured + c]):
                levels = dict(setting)
                parts = [
                    self.factors[at].codes[levels[at], part]
                    for at, part in zip(column.factors, column.parts, strict=True)
                ]
                found[regime, c] = math.prod(parts) * (1.0 if len(parts) == 1 else PAIR_SIZE)
        return found

    def values(self, interventions: npt.ArrayLike) -> FloatArray:
        """What the columns are set to, (.., C), by interventions (.., system nodes)."""
        regimes = np.asarray(interventions, dtype=np.int64)[..., self.n_measured :]
        return np.asarray(self.codes[regimes, np.arange(len(self.columns))])

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(factor.name for factor in self.factors)

    @cached_property
    def moved_by(self) -> tuple[str, ...]:
        """Per system node what a person sets to move it: its factor, or itself if several act.

        Empty for the column of a pair: each of the two factors has a column of its own.
        """
        pairs = [""] * len(self.columns)
        return tuple(
            self.factors[acting[0]].name if len(acting) == 1 else node
            for node, acting in zip((*self.nodes, *pairs), self.numbers.acting, strict=True)
        )

    @cached_property
    def regimes(self) -> Counts:
        """How many each system node has."""
        counts = np.array(self.numbers.regimes, dtype=np.int64)
        counts.setflags(write=False)
        return counts

    @cached_property
    def set_regimes(self) -> BoolArray:
        """Mechanisms without parents because a level sets the node, (R, system nodes)."""
        found = np.zeros(existing(self.regimes).shape, dtype=bool)
        for i, node in enumerate(self.nodes):
            for regime in range(self.regimes[i]):
                found[regime, i] = any(
                    level in dict(factor.sets).get(node, ())
                    for factor, level in self._given_by(i, regime)
                )
        return found

    @cached_property
    def _settings(self) -> list[list[tuple[tuple[int, int], ...]]]:
        """By node and regime, the (factor, level) pairs that give it."""
        return [self.numbers.settings(node) for node in range(len(self.system_nodes))]

    def _given_by(self, node: int, regime: int) -> list[tuple[Factor, Level]]:
        """The factors that act on a node, each with its level in this regime."""
        pairs = ((self.factors[f], level) for f, level in self._settings[node][regime])
        return [(factor, factor.levels[level]) for factor, level in pairs]

    def factor(self, name: object) -> int:
        """The position of a factor, or an error that names the nearest."""
        if name in self.names:
            return self.names.index(str(name))
        near = get_close_matches(name, self.names, n=1) if isinstance(name, str) else []
        if name in self.nodes:
            hint = f"node {shown(name)} has no switch of its own"
            acting = [f.name for f in self.factors if name in f.acts_on]
            if acting:
                hint += f": factor {acting[0]!r} acts on it"
        else:
            hint = f"there is no factor {shown(name)}"
            hint += f"; did you mean {near[0]!r}?" if near else ""
        raise ModelError(f"{hint}; the factors are {', '.join(self.names)}")

    def intervention(self, levels: Mapping[Any, object]) -> Intervention:
        """The regime of every node; factors that are not named stay at their first level."""
        chosen = [0] * len(self.factors)
        for name, level in levels.items():
            at = self.factor(name)
            chosen[at] = self.factors[at].number(level)
        return tuple(int(regime) for regime in self.numbers.interventions([chosen])[0])

    def numbers_of(self, intervention: Sequence[int]) -> list[int] | None:
        """Which level every factor is at; None if no levels give these regimes."""
        found: dict[int, int] = {}
        for settings, regime in zip(self._settings, intervention, strict=True):
            if not 0 <= regime < len(settings):
                return None
            for factor, level in settings[regime]:
                # nodes that share a factor must agree on its level
                if found.setdefault(factor, level) != level:
                    return None
        return [found[factor] for factor in range(len(self.factors))]

    def levels(self, intervention: Sequence[int]) -> dict[str, Level]:
        """The level of every factor; ModelError if no levels give these regimes."""
        found = self.numbers_of(intervention)
        if found is None:
            raise ModelError(f"no levels of the factors give the regimes {list(intervention)}")
        return {f.name: f.levels[at] for f, at in zip(self.factors, found, strict=True)}

    def switched(self, intervention: Sequence[int]) -> list[str]:
        """Factors that are not at their first level."""
        found = self.numbers_of(intervention) or [0] * len(self.factors)
        return [name for name, level in zip(self.names, found, strict=True) if level]

    def regime_name(self, node: int, regime: int) -> str:
        """What a regime of a node is called: natural, intervened, or the levels that give it."""
        given_by = self._given_by(node, regime)
        if not given_by:
            return REGIME_NAMES[0]
        first = given_by[0][0]
        if len(given_by) == 1 and first.is_switch and first.name == self.system_nodes[node]:
            return REGIME_NAMES[regime]
        return ", ".join(
            f"{factor.name} {level}" if factor.is_switch else f"{factor.name}={level}"
            for factor, level in given_by
        )

    def as_list(self) -> list[dict[str, Any]]:
        """Plain values, in this order."""
        return [{"name": factor.name} | factor.as_dict() for factor in self.factors]
