"""Factors and levels by name; the search itself knows numbers only.

A factor has named levels and acts on one or several nodes; its level l puts each of them into its
l-th regime. A node on which two factors act has a regime per combination, a node on which none acts
has one. A level may set a node: whatever causes it otherwise, does not in that regime.

The core speaks in regimes (`search/factors.py` has the numbers); this is the one place that
translates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Self

import numpy as np

from causalarms.arrays import BoolArray
from causalarms.checks import as_float, usable
from causalarms.errors import ModelError, shown
from causalarms.limits import MAX_REGIMES
from causalarms.search.factors import Factors
from causalarms.sem.regimes import (
    REGIME_NAMES,
    Counts,
    as_name,
    existing,
    node_index,
)

Level = str | int | float
Intervention = tuple[int, ...]
OFF, ON = OFF_ON = ("off", "on")
ENTRIES = ("levels", "acts_on", "sets")


@dataclass(frozen=True)
class Factor:
    """`sets`: the nodes that a level sets, so that nothing else causes them then."""

    name: str
    levels: tuple[Level, ...] = OFF_ON
    acts_on: tuple[str, ...] = ()
    sets: tuple[tuple[str, tuple[Level, ...]], ...] = ()

    @property
    def is_switch(self) -> bool:
        return self.levels == OFF_ON

    def number(self, given: object) -> int:
        """Which level is meant: by its name or value, as text too; 0 and 1 of a switch."""
        for number, level in enumerate(self.levels):
            if _same(given, level):
                return number
        if self.is_switch and _is_bit(given):
            return int(given)  # type: ignore[call-overload]
        words = ", ".join(str(level) for level in self.levels)
        extra = ", 0, 1" if self.is_switch else ""
        raise ModelError(f"factor {self.name!r} has no level {shown(given)}; it has {words}{extra}")

    def as_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"levels": list(self.levels), "acts_on": list(self.acts_on)}
        if self.sets:
            record["sets"] = {node: list(levels) for node, levels in self.sets}
        return record


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

    @classmethod
    def of(cls, given: object, nodes: tuple[str, ...]) -> Self:
        """Checked; ModelError names the factor, level or node that is wrong."""
        pairs = _pairs(given)
        if not pairs:
            raise ModelError("factors is empty: there would be nothing to try")
        factors = tuple(_factor(name, entry, nodes) for name, entry in pairs)
        names = [factor.name for factor in factors]
        for name in names:
            if names.count(name) > 1:
                raise ModelError(f"there are two factors {shown(name)}")
        position = {node: i for i, node in enumerate(nodes)}
        # here by name; the search would refuse it by number
        for node in nodes:
            acting = [f for f in factors if node in f.acts_on]
            combinations = math.prod(len(f.levels) for f in acting)
            if combinations > MAX_REGIMES:
                words = ", ".join(f.name for f in acting)
                raise ModelError(
                    f"node {node!r} would have {combinations} regimes, one per combination of the "
                    f"levels of {words}; at most {MAX_REGIMES}"
                )
        numbers = Factors.acting_on(
            levels=[len(f.levels) for f in factors],
            nodes=[[position[node] for node in f.acts_on] for f in factors],
            n_nodes=len(nodes),
        )
        return cls(nodes, factors, numbers)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(factor.name for factor in self.factors)

    @cached_property
    def moved_by(self) -> tuple[str, ...]:
        """Per node what a person sets to move it: its factor, or its own name if several act."""
        return tuple(
            self.factors[acting[0]].name if len(acting) == 1 else node
            for node, acting in zip(self.nodes, self.numbers.acting, strict=True)
        )

    @cached_property
    def regimes(self) -> Counts:
        """How many each node has, (N,)."""
        counts = np.array(self.numbers.regimes, dtype=np.int64)
        counts.setflags(write=False)
        return counts

    @cached_property
    def set_regimes(self) -> BoolArray:
        """Mechanisms without parents because a level sets the node, (R, N)."""
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
        return [self.numbers.settings(node) for node in range(len(self.nodes))]

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

    def words(self, intervention: Sequence[int]) -> list[str]:
        """As `switched`, with the level if it is not just on."""
        levels = self.levels(intervention)
        return [
            f.name if f.is_switch else f"{f.name}={levels[f.name]}"
            for f in self.factors
            if levels[f.name] != f.levels[0]
        ]

    def regime_name(self, node: int, regime: int) -> str:
        """What a regime of a node is called: natural, intervened, or the levels that give it."""
        given_by = self._given_by(node, regime)
        if not given_by:
            return REGIME_NAMES[0]
        first = given_by[0][0]
        if len(given_by) == 1 and first.is_switch and first.name == self.nodes[node]:
            return REGIME_NAMES[regime]
        return ", ".join(
            f"{factor.name} {level}" if factor.is_switch else f"{factor.name}={level}"
            for factor, level in given_by
        )

    def as_list(self) -> list[dict[str, Any]]:
        """Plain values, in this order."""
        return [{"name": factor.name} | factor.as_dict() for factor in self.factors]


def _pairs(given: object) -> list[tuple[object, object]]:
    """From {name: entry}, or from a list of entries that hold their names."""
    if isinstance(given, Mapping):
        return list(given.items())
    if (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and all(isinstance(entry, Mapping) and "name" in entry for entry in given)
    ):
        return [(entry["name"], {k: v for k, v in entry.items() if k != "name"}) for entry in given]
    raise ModelError(f"factors are names with their levels, not {shown(given)}")


def _factor(name: object, given: object, nodes: tuple[str, ...]) -> Factor:
    name = as_name("a factor", name)
    if not isinstance(given, Mapping):
        raise ModelError(f"factor {shown(name)}: say {', '.join(ENTRIES)}, not {shown(given)}")
    for entry in given:
        if entry not in ENTRIES:
            words = f"there is no {shown(entry)}; say {', '.join(ENTRIES)}"
            raise ModelError(f"factor {shown(name)}: {words}")
    levels = _levels(name, given.get("levels"))
    targets = given.get("acts_on")
    if targets is None:
        if name not in nodes:
            raise ModelError(
                f"factor {shown(name)} is not the name of a node: say which nodes it acts on "
                "(acts_on=[...])"
            )
        targets = [name]
    if isinstance(targets, str) or not isinstance(targets, Sequence) or not targets:
        raise ModelError(f"factor {shown(name)}: acts_on is a list of nodes, not {shown(targets)}")
    try:
        acts_on = tuple(nodes[node_index(node, nodes)] for node in targets)
    except (ModelError, TypeError, ValueError) as error:
        raise ModelError(f"factor {shown(name)}: {error}") from None
    if len(set(acts_on)) < len(acts_on):
        raise ModelError(f"factor {shown(name)} acts on a node twice")
    factor = Factor(name, levels, acts_on)
    return Factor(name, levels, acts_on, _sets(factor, given.get("sets")))


def _levels(name: str, given: object) -> tuple[Level, ...]:
    if given is None:
        return OFF_ON
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ModelError(f"factor {shown(name)}: levels is a list of names, not {shown(given)}")
    levels = tuple(
        level.item() if isinstance(level, np.generic) else level for level in list(given)
    )
    for level in levels:
        if isinstance(level, bool) or not isinstance(level, str | int | float):
            raise ModelError(
                f"factor {shown(name)}: level {shown(level)} is neither text nor a number"
            )
        if isinstance(level, str):
            as_name(f"factor {shown(name)}: a level", level)
        elif not usable(np.array(as_float(level))):
            raise ModelError(f"factor {name!r}: level {shown(level)} is not finite or too large")
    if len(levels) < 2:
        raise ModelError(f"factor {shown(name)} needs at least two levels to choose from")
    for at, level in enumerate(levels):
        if any(_same(level, other) for other in levels[:at]):
            raise ModelError(f"factor {shown(name)}: level {shown(level)} is there twice")
    return levels


def _sets(factor: Factor, given: object) -> tuple[tuple[str, tuple[Level, ...]], ...]:
    """{node: levels}, or levels for all nodes of the factor."""
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Mapping | Sequence):
        raise ModelError(
            f"factor {factor.name!r}: sets is a list of levels, or node -> levels, "
            f"not {shown(given)}"
        )
    by_node = given if isinstance(given, Mapping) else dict.fromkeys(factor.acts_on, given)
    found = []
    for node, levels in by_node.items():
        if node not in factor.acts_on:
            raise ModelError(f"factor {factor.name!r} sets {shown(node)}, but does not act on it")
        if isinstance(levels, str) or not isinstance(levels, Sequence):
            raise ModelError(
                f"factor {factor.name!r}: sets is a list of levels, not {shown(levels)}"
            )
        chosen = sorted({factor.number(level) for level in levels})
        if chosen:
            found.append((str(node), tuple(factor.levels[at] for at in chosen)))
    return tuple(found)


def _is_bit(given: object) -> bool:
    if isinstance(given, str):
        return given.strip() in ("0", "1")
    return isinstance(given, bool | np.bool_ | int | float | np.number) and given in (0, 1)


def _same(given: object, level: Level) -> bool:
    """Numbers by value, also as text; True is not a number."""
    if isinstance(given, bool | np.bool_):
        return False
    if isinstance(given, str) and not isinstance(level, str):
        try:
            return float(given) == level
        except ValueError:
            return False
    if isinstance(given, int | float | np.number) and isinstance(level, str):
        return False
    return bool(given == level) if isinstance(given, str | int | float | np.number) else False
