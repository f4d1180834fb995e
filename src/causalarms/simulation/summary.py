"""From records of units to one row per policy, with intervals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from causalarms.simulation.detection import Detection, detection
from causalarms.simulation.experiment import Experiment
from causalarms.simulation.intervals import Interval, mean

TINY = float(np.finfo(float).tiny)


class PolicySummary(NamedTuple):
    """One policy over all repetitions."""

    policy: str
    runs: int
    regret: Interval
    median_regret: float
    worst_regret: float
    final_optimal_share: Interval
    optimal_share: Interval
    linear_runs: int  # runs whose regret still grows at the end
    detected: float  # share of played changed mechanisms; nan without changes
    delay: float
    false_alarms: float  # per run
    unplayed: int
    normalised_regret: Interval  # of every system in units of random play's; nan: not recorded
    stopped: float = float("nan")  # share of runs that a stop rule ended; nan without one
    rounds_to_stop: float = float("nan")  # mean over those runs

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values; nan becomes None."""
        return plain_row(self)


def summarise(experiment: Experiment, records: list[dict[str, Any]]) -> list[PolicySummary]:
    """One row per policy, in the experiment's order."""
    rows = []
    for contestant in experiment.contestants:
        units = [record for record in records if record["policy"] == contestant.name]
        if not units:
            continue
        regret = np.array([unit["regret"] for unit in units])
        found = [detection(unit, experiment.horizon) for unit in units]
        rows.append(
            PolicySummary(
                policy=contestant.name,
                runs=len(units),
                regret=mean(regret),
                median_regret=float(np.median(regret)),
                worst_regret=float(regret.max()),
                final_optimal_share=mean([unit["final_optimal_share"] for unit in units]),
                optimal_share=mean([unit["optimal_share"] for unit in units]),
                linear_runs=sum(unit["linear_regret"] for unit in units),
                normalised_regret=_normalised(units),
                **_detection(found),
                **_stopped(units),
            )
        )
    return rows


def _detection(found: list[Detection]) -> dict[str, Any]:
    played = sum(d.played for d in found)
    delays = [delay for d in found for delay in d.delays]
    return {
        "detected": len(delays) / played if played else float("nan"),
        "delay": float(np.mean(delays)) if delays else float("nan"),
        "false_alarms": float(np.mean([d.false_alarms for d in found])),
        "unplayed": sum(d.unplayed for d in found),
    }


def _normalised(units: list[dict[str, Any]]) -> Interval:
    if any("random_regret" not in unit for unit in units):  # of version 0.1
        return Interval(float("nan"), float("nan"), float("nan"))
    return mean([unit["regret"] / max(unit["random_regret"], TINY) for unit in units])


def _stopped(units: list[dict[str, Any]]) -> dict[str, Any]:
    if any("stopped" not in unit for unit in units):
        return {}
    rounds = [unit["stopped"] for unit in units if unit["stopped"] is not None]
    return {
        "stopped": len(rounds) / len(units),
        "rounds_to_stop": float(np.mean(rounds)) if rounds else float("nan"),
    }


def plain_row(row: NamedTuple) -> dict[str, Any]:
    """Plain JSON values; nan becomes None."""
    record: dict[str, Any] = {}
    for name, value in row._asdict().items():
        if isinstance(value, Interval):
            record[name] = {key: _plain(number) for key, number in value._asdict().items()}
        else:
            record[name] = _plain(value)
    return record


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
