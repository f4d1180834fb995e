"""One factor: its levels, its effect, and the columns that stand for its levels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from causalarms.arrays import FloatArray
from causalarms.checks import as_float, usable
from causalarms.errors import ModelError, shown
from causalarms.limits import MAX_REGIMES
from causalarms.sem.regimes import as_name, node_index

Level = str | int | float
OFF, ON = OFF_ON = ("off", "on")
ENTRIES = ("levels", "acts_on", "sets", "effect", "range", "step")
FREE, SHIFT = EFFECTS = ("free", "shift")
UNKNOWN = "unknown"  # instead of a list of nodes: to be learned
ROUNDING = 1e-12  # relative, of levels that are numbers
MAX_BENDS = 3  # a line, a parabola and a cubic are enough for an effect of numbers


@dataclass(frozen=True)
class Factor:
    """`sets`: the nodes that a level sets, so that nothing else causes them then.

    A factor that shifts and acts on no node by name acts on what the data say.
    """

    name: str
    levels: tuple[Level, ...] = OFF_ON
    acts_on: tuple[str, ...] = ()
    sets: tuple[tuple[str, tuple[Level, ...]], ...] = ()
    effect: str = FREE

    @cached_property
    def codes(self) -> FloatArray:
        """The columns of a factor that shifts, (levels, columns), each with mean 0 and variance 1.

        Numbers have a line, from three on a parabola and from four on a cubic. Names have one
        column less than levels, so that no level is special: any two are equally far apart.

        >>> Factor("load", (1, 2, 3), effect=SHIFT).codes[:, 0].round(3).tolist()
        [-1.225, 0.0, 1.225]
        """
        n = len(self.levels)
        if self.is_named:
            # an orthonormal basis of the contrasts (Helmert), all of one length
            helmert = np.zeros((n, n - 1))
            for k in range(1, n):
                helmert[:k, k - 1], helmert[k, k - 1] = -1.0, k
            return np.asarray(helmert / helmert.std(axis=0))
        line = np.array(self.levels, dtype=float)
        line = (line - line.mean()) / line.std()
        # powers made orthogonal to those before them, each of variance 1
        powers = np.vander(line, min(n, 1 + MAX_BENDS), increasing=True)
        columns = np.linalg.qr(powers).Q[:, 1:]
        signs = np.sign((columns * powers[:, 1:]).sum(axis=0))
        return np.asarray(columns * signs * math.sqrt(n))

    @property
    def is_named(self) -> bool:
        return any(isinstance(level, str) for level in self.levels)

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
        record: dict[str, Any] = {
            "levels": list(self.levels),
            "acts_on": list(self.acts_on) or UNKNOWN,
        }
        if self.effect == SHIFT:
            record["effect"] = SHIFT
        if self.sets:
            record["sets"] = {node: list(levels) for node, levels in self.sets}
        return record


def factor_entries(given: object) -> list[tuple[object, object]]:
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


def shifting_by_default(given: Any, nodes: Any) -> Any:
    """The same factors; those of which nobody said how they act shift nodes.

    A factor of two levels with the name of a node does not: it is the soft intervention of the
    paper, and may change the node's slopes, too. Nor does a factor with a level that sets a node.
    """
    if isinstance(given, Mapping):
        return {name: _shifting(name, entry, nodes) for name, entry in given.items()}
    if isinstance(given, list | tuple):
        return [_shifting(e.get("name"), e, nodes) if isinstance(e, Mapping) else e for e in given]
    return given


def _shifting(name: Any, entry: Any, nodes: Any) -> Any:
    if not isinstance(entry, Mapping) or "effect" in entry or entry.get("sets") is not None:
        return entry
    # whatever else is odd is refused where factors are checked
    names = [n for n in nodes if isinstance(n, str)] if isinstance(nodes, list | tuple) else []
    levels = entry.get("levels", OFF_ON)
    has_two = isinstance(levels, list | tuple) and len(levels) == 2 and "range" not in entry
    if isinstance(name, str) and name in names and has_two:
        return entry
    return {**entry, "effect": SHIFT}


def checked_factor(name: object, given: object, nodes: tuple[str, ...]) -> Factor:
    name = as_name("a factor", name)
    if not isinstance(given, Mapping):
        raise ModelError(f"factor {shown(name)}: say {', '.join(ENTRIES)}, not {shown(given)}")
    for entry in given:
        if entry not in ENTRIES:
            words = f"there is no {shown(entry)}; say {', '.join(ENTRIES)}"
            raise ModelError(f"factor {shown(name)}: {words}")
    if "step" in given and "range" not in given:
        raise ModelError(f"factor {shown(name)}: step goes with range=[lowest, highest]")
    levels = _levels(name, _range(name, given) if "range" in given else given.get("levels"))
    targets = given.get("acts_on")
    own = targets is None and name in nodes  # the switch of a node
    told = own or targets not in (None, UNKNOWN)
    effect = given.get("effect", FREE if told else SHIFT)
    if effect not in EFFECTS:
        raise ModelError(f"factor {shown(name)}: effect is free or shift, not {shown(effect)}")
    if own:
        targets = [name]
    if targets is None or targets == UNKNOWN:
        if effect == FREE:
            raise ModelError(
                f"factor {shown(name)} has a mechanism per level: say which nodes it acts on "
                "(acts_on=[...])"
            )
        if given.get("sets") is not None:
            raise ModelError(
                f"factor {shown(name)} sets nodes: say which nodes it acts on (acts_on=[...])"
            )
        return Factor(name, levels, effect=effect)
    if isinstance(targets, str) or not isinstance(targets, Sequence) or not targets:
        raise ModelError(f"factor {shown(name)}: acts_on is a list of nodes, not {shown(targets)}")
    try:
        acts_on = tuple(nodes[node_index(node, nodes)] for node in targets)
    except (ModelError, TypeError, ValueError) as error:
        raise ModelError(f"factor {shown(name)}: {error}") from None
    if len(set(acts_on)) < len(acts_on):
        raise ModelError(f"factor {shown(name)} acts on a node twice")
    factor = Factor(name, levels, acts_on, effect=effect)
    sets = _sets(factor, given.get("sets"))
    if sets and effect == SHIFT:
        raise ModelError(f"factor {shown(name)} sets nodes: its effect is free, not shift")
    return replace(factor, sets=sets)


def _range(name: str, given: Mapping[Any, Any]) -> tuple[int | float, ...]:
    """The levels of {"range": [lowest, highest], "step": step}; both ends are levels."""
    what = f"factor {shown(name)}"
    ends, step = given["range"], given.get("step")
    if given.get("levels") is not None:
        raise ModelError(f"{what} has levels and a range: say one of them")
    if isinstance(ends, str) or not isinstance(ends, Sequence) or len(ends) != 2:
        raise ModelError(f"{what}: range is [lowest, highest], not {shown(ends)}")
    numbers = [
        as_float(n) if isinstance(n, int | float) and not isinstance(n, bool) else math.nan
        for n in (*ends, step)
    ]
    low, high, by = numbers
    if not usable(np.array(numbers)).all() or not low < high or not by > 0:
        raise ModelError(
            f"{what}: range [{shown(ends[0])}, {shown(ends[1])}] with step {shown(step)} has no "
            "levels: say the lower end first and a step above 0"
        )
    count = (high - low) / by
    if count > MAX_REGIMES - 0.5:  # both ends are levels
        raise ModelError(f"{what}: a step of {by:g} makes more than {MAX_REGIMES} levels")
    if abs(count - round(count)) > 1e-6:
        raise ModelError(f"{what}: steps of {by:g} from {low:g} do not end at {high:g}")
    # 0.3, 0.4, ... as people write them, and not 0.30000000000000004
    levels = tuple(float(f"{low + k * by:.12g}") for k in range(round(count) + 1))
    # 440, 460, ... and not 440.0, where people wrote it so
    whole = all(isinstance(number, int) for number in (*ends, step))
    return tuple(int(level) for level in levels) if whole else levels


def _levels(name: str, given: object) -> tuple[Level, ...]:
    if given is None:
        return OFF_ON
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ModelError(f"factor {shown(name)}: levels is a list of names, not {shown(given)}")
    levels = tuple(
        level.item() if isinstance(level, np.generic) else level
        for level in islice(given, MAX_REGIMES + 1)
    )
    if len(levels) > MAX_REGIMES:
        raise ModelError(f"factor {shown(name)} has more than {MAX_REGIMES} levels")
    for level in levels:
        if isinstance(level, bool) or not isinstance(level, str | int | float):
            raise ModelError(
                f"factor {shown(name)}: level {shown(level)} is neither text nor a number"
            )
        if isinstance(level, str):
            as_name(f"factor {shown(name)}: a level", level)
        elif not usable(np.array(as_float(level))):
            raise ModelError(f"factor {name!r}: level {shown(level)} is not finite or too large")
    texts = [level for level in levels if isinstance(level, str)]
    if 0 < len(texts) < len(levels) / 2:  # one name would make names of all numbers
        raise ModelError(
            f"factor {shown(name)}: level {shown(texts[0])} is not a number, and others are: make "
            "all of them numbers, or all names"
        )
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
            given = float(given)
        except ValueError:
            return False
    if isinstance(given, float) and not given.is_integer() and not isinstance(level, str):
        return math.isclose(given, level, rel_tol=ROUNDING)  # 3 * 0.1 is 0.3
    if isinstance(given, int | float | np.number) and isinstance(level, str):
        return False
    return bool(given == level) if isinstance(given, str | int | float | np.number) else False
