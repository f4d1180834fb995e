"""Trials and alarms as tables."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.policies.base import Policy
from causalarms.sem.factors import NamedFactors
from causalarms.study.far_values import far_values
from causalarms.study.limits import Limits
from causalarms.study.trials import Ledger, Record
from causalarms.tables.read import PlainTable
from causalarms.tables.write import PREFIX, column_of


def columns(ledger: Ledger) -> dict[str, list[Any]]:
    """One entry per trial; values of a node are in `column_of` it, levels in `do:FACTOR`."""
    settings = ledger.settings
    assert settings is not None
    limits, trials = Limits(settings), ledger.trials
    table: dict[str, list[Any]] = {
        "trial": [r.number for r in trials],
        "state": [r.state for r in trials],
        "worker": [r.worker for r in trials],
        "reason": [str(r.asked.get("reason", "")) for r in trials],
        "predicted": [r.asked.get("mean") for r in trials],
        "learned": [limits.learnable(r) for r in trials],
        "corrected": [r.corrected for r in trials],
    }
    levels = _levels(trials, settings.named)
    for at, factor in enumerate(settings.named.factors):
        shown: list[Any] = [0, 1] if factor.is_switch else list(factor.levels)
        table[PREFIX + factor.name] = [shown[level] for level in levels[:, at]]
    for i, node in enumerate(settings.nodes):
        table[column_of(node)] = [None if r.values is None else r.values[i] for r in trials]
    table["asked_at"] = [r.asked_at for r in trials]
    table["done_at"] = [r.done_at for r in trials]
    table["remark"] = [r.reason for r in trials]
    far: dict[int, list[str]] = {}
    for found in far_values(ledger):
        far.setdefault(found.trial, []).append(found.node)
    table["far"] = [";".join(far.get(r.number, ())) for r in trials]
    table["not_as_asked"] = [";".join(not_as_asked(r, settings.named)) for r in trials]
    return table


def missing_values(ledger: Ledger) -> dict[str, Any]:
    """How many values were not measured, in how many trials, and whether those are learned from."""
    assert ledger.settings is not None
    gaps = [r for r in ledger.with_values() if r.n_missing]
    limits = Limits(ledger.settings)
    return {
        "values": sum(r.n_missing for r in gaps),
        "trials": len(gaps),
        "learned": sum(limits.learnable(r) for r in gaps),
    }


def missing_in_words(missing: dict[str, Any]) -> str:
    """
    >>> missing_in_words({"values": 3, "trials": 2, "learned": 2})
    '3 values of 2 trials were not measured; the others of these trials are learned from'
    """
    values, trials, learned = missing["values"], missing["trials"], missing["learned"]
    what = f"{values} value{'s' * (values != 1)} of {trials} trial{'s' * (trials != 1)}"
    if learned == trials:
        of_which = "the others of these trials are learned from"
    else:
        of_which = f"{trials - learned} of these trials are left out of learning"
    return f"{what} {'was' if values == 1 else 'were'} not measured; {of_which}"


def _levels(trials: Sequence[Record], named: NamedFactors) -> npt.NDArray[np.int16]:
    """Which level each factor was at, (trials, factors)."""
    rows = np.array([r.intervention for r in trials], dtype=np.int64)
    return named.numbers.levels_of(rows.reshape(len(trials), len(named.nodes)))


def not_as_asked(record: Record, named: NamedFactors) -> list[str]:
    """Factors that were played at another level than the trial asked for."""
    if record.asked_intervention == record.intervention:
        return []
    asked, played = named.levels(record.asked_intervention), named.levels(record.intervention)
    return [name for name in named.names if asked[name] != played[name]]


def frame(ledger: Ledger) -> Any:
    """A pandas frame where pandas is installed, else polars, else a `PlainTable`."""
    table = columns(ledger)
    for library in ("pandas", "polars"):
        try:
            module = importlib.import_module(library)
        except ImportError:
            continue
        return module.DataFrame(table)
    return PlainTable(table)


def alarms(ledger: Ledger, policy: Policy) -> list[dict[str, Any]]:
    """The policy's alarms with the trial that raised each."""
    settings = ledger.settings
    assert settings is not None
    limits = Limits(settings)
    learned = [r for r in map(ledger.trials.__getitem__, ledger.order) if limits.learnable(r)]
    return [
        {
            "alarm": number,
            "trial": learned[alarm.round - 1].number,
            "regime": (
                "all" if alarm.node < 0 else settings.named.regime_name(alarm.node, alarm.regime)
            ),
            "node": "all" if alarm.node < 0 else settings.nodes[alarm.node],
            "changed_after": _after(learned, alarm.change_point),
            "statistic": alarm.statistic,
            "threshold": alarm.threshold,
            "acknowledged": number in ledger.acknowledged,
            "note": ledger.acknowledged.get(number, ""),
        }
        for number, alarm in enumerate(policy.alarms)
    ]


def _after(learned: list[Record], point: int) -> int | None:
    """The trial of the last round before the estimated change."""
    return learned[point - 1].number if 0 < point <= len(learned) else None
