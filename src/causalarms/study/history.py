"""Trials and alarms as tables."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from causalarms.policies.base import Policy
from causalarms.sem.regimes import REGIME_NAMES
from causalarms.study.far_values import far_values
from causalarms.study.limits import Limits
from causalarms.study.trials import Ledger, Record
from causalarms.tables.plain import PlainTable
from causalarms.tables.trials import PREFIX, column_of


def columns(ledger: Ledger) -> dict[str, list[Any]]:
    """One entry per trial; the values of a node are in `column_of` it, its switch in `do:NODE`."""
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
    for i, node in enumerate(settings.nodes):
        table[PREFIX + node] = [r.intervention[i] for r in trials]
    for i, node in enumerate(settings.nodes):
        table[column_of(node)] = [None if r.values is None else r.values[i] for r in trials]
    table["asked_at"] = [r.asked_at for r in trials]
    table["done_at"] = [r.done_at for r in trials]
    table["remark"] = [r.reason for r in trials]
    far: dict[int, list[str]] = {}
    for found in far_values(ledger):
        far.setdefault(found.trial, []).append(found.node)
    table["far"] = [";".join(far.get(r.number, ())) for r in trials]
    table["not_as_asked"] = [";".join(not_as_asked(r, settings.nodes)) for r in trials]
    return table


def not_as_asked(record: Record, nodes: Sequence[str]) -> list[str]:
    """Nodes that were played in another regime than the trial asked for."""
    pairs = zip(nodes, record.asked_intervention, record.intervention, strict=True)
    return [node for node, asked, played in pairs if asked != played]


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
            "regime": "all" if alarm.node < 0 else REGIME_NAMES[alarm.regime],
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
