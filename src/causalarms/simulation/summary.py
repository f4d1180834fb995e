"""From records of units to one row per policy or learner, with intervals.

Intervals are percentile bootstrap intervals over systems. Systems differ a hundredfold in scale, so
nothing here is close to normal.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, IntArray
from causalarms.policies.registry import not_compared
from causalarms.rng import stream
from causalarms.simulation.experiment import METRICS, Experiment
from causalarms.simulation.results import Record

N_RESAMPLES = 2000
LEVEL = 0.95  # probability that an interval is to cover
ENDS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)  # quantiles of the resamples
NAN = float("nan")
WHOLE_GRAPH = -1  # the node of an alarm that names none
TINY = float(np.finfo(float).tiny)


class Interval(NamedTuple):
    """An estimate and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


UNKNOWN = Interval(NAN, NAN, NAN)


# -- one row per policy or learner -----------------------------------------------------------------


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
    detected: float  # fraction of played changed mechanisms; nan without changes
    delay: float
    false_alarms: float  # per run
    unplayed: int
    normalised_regret: Interval  # of every system in units of random play's; nan: not recorded
    stopped: float = NAN  # fraction of runs that a stop rule ended; nan without one
    rounds_to_stop: float = NAN  # mean over those runs
    remark: str = ""  # on a method that was not compared with its full text


def summarise(experiment: Experiment, records: Sequence[Record]) -> list[PolicySummary]:
    """One row per policy, in the experiment's order.

    experiment   what was compared
    records      of its units, as `monte_carlo` returns them
    """
    rows = []
    remarks = {entry.name: not_compared(entry.policy) for entry in experiment.contestants}
    for name, units in by_name(experiment.names, records).items():
        regret = np.array([unit["regret"] for unit in units])
        rows.append(
            PolicySummary(
                policy=name,
                runs=len(units),
                regret=mean(regret),
                median_regret=float(np.median(regret)),
                worst_regret=float(regret.max()),
                final_optimal_share=mean([unit["final_optimal_share"] for unit in units]),
                optimal_share=mean([unit["optimal_share"] for unit in units]),
                linear_runs=sum(unit["linear_regret"] for unit in units),
                # 0 if all interventions are equally good: nothing can be lost there
                normalised_regret=mean(
                    [unit["regret"] / max(unit["random_regret"], TINY) for unit in units]
                ),
                **_detection([detection(unit, experiment.horizon) for unit in units]),
                **_stopped(units),
                remark=remarks[name],
            )
        )
    return rows


class LearnerSummary(NamedTuple):
    """One learner over all repetitions; metrics are of B, over runs that did not fail."""

    learner: str
    runs: int
    failed: int
    false_negative: Interval  # fraction of systems with a missing edge
    precision: Interval
    recall: Interval
    nshd: Interval
    seconds: Interval  # of processor time of a fit, median
    first_failure: str | None


def summarise_learners(names: Sequence[str], records: Sequence[Record]) -> list[LearnerSummary]:
    """One row per learner, in the order of the names.

    names     labels of the learners
    records   of the units, as `compare_learners` returns them
    """
    rows = []
    for name, units in by_name(names, records).items():
        good = [unit for unit in units if unit["failed"] is None]
        failures = [unit["failed"] for unit in units if unit["failed"] is not None]
        rows.append(
            LearnerSummary(
                learner=name,
                runs=len(units),
                failed=len(failures),
                seconds=_median([unit["seconds"] for unit in good]) if good else UNKNOWN,
                first_failure=failures[0] if failures else None,
                **{m: mean([unit[m] for unit in good]) if good else UNKNOWN for m in METRICS},
            )
        )
    return rows


def by_name(names: Sequence[str], records: Sequence[Record]) -> dict[str, list[Record]]:
    """The records of every contestant that has any."""
    found = {name: [r for r in records if r["policy"] == name] for name in names}
    return {name: units for name, units in found.items() if units}


def _median(sample: Sequence[float]) -> Interval:
    # not the mean: the first fit of a process also compiles
    return bootstrap(lambda x: np.median(x, axis=-1), sample)


def _detection(found: list[Detection]) -> dict[str, Any]:
    # over all runs together: a run with one change must not weigh as much as one with ten
    played = sum(d.played for d in found)
    delays = [delay for d in found for delay in d.delays]
    return {
        "detected": len(delays) / played if played else NAN,
        "delay": float(np.mean(delays)) if delays else NAN,
        "false_alarms": float(np.mean([d.false_alarms for d in found])),
        "unplayed": sum(d.unplayed for d in found),
    }


def _stopped(units: list[Record]) -> dict[str, Any]:
    if any("stopped" not in unit for unit in units):
        return {}
    rounds = [unit["stopped"] for unit in units if unit["stopped"] is not None]
    return {
        "stopped": len(rounds) / len(units),
        "rounds_to_stop": float(np.mean(rounds)) if rounds else NAN,
    }


# -- intervals -------------------------------------------------------------------------------------


def bootstrap(statistic: Callable[..., FloatArray], *samples: npt.ArrayLike) -> Interval:
    """Percentile interval of a statistic.

    statistic   maps arrays (..., n) to (...); resamples for which it is nan are left out, and all
                is nan if it is nan for all of them
    samples     are resampled together: the i-th entries belong to the same system

    >>> bootstrap(lambda x: x.mean(axis=-1), [1.0, 1.0, 1.0])
    Interval(value=1.0, low=1.0, high=1.0)
    """
    arrays = [np.asarray(sample, dtype=float) for sample in samples]
    rows = _resamples(len(arrays[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # 0 / 0: a resample that is not defined
        resampled = statistic(*(array[rows] for array in arrays))
        low, high = np.nanquantile(resampled, ENDS)
        return Interval(float(statistic(*arrays)), float(low), float(high))


def mean(sample: npt.ArrayLike) -> Interval:
    """The mean over systems."""
    return bootstrap(lambda x: x.mean(axis=-1), sample)


def ratio_of_means(above: npt.ArrayLike, below: npt.ArrayLike) -> Interval:
    """mean(above) / mean(below), resampled in pairs."""
    return bootstrap(lambda a, b: a.mean(axis=-1) / b.mean(axis=-1), above, below)


def mean_band(curves: npt.ArrayLike) -> FloatArray:
    """The mean over systems of curves and the ends of its interval at every point, (3, points).

    curves   (systems, points)

    >>> mean_band([[1.0, 2.0], [1.0, 2.0]])[2].tolist()
    [1.0, 2.0]
    """
    given = np.asarray(curves, dtype=float)
    n = len(given)
    # how often each system is in each resample: a product of matrices, not an array of all curves
    rows = _resamples(n) + n * np.arange(N_RESAMPLES)[:, None]
    times = np.bincount(rows.ravel(), minlength=N_RESAMPLES * n).reshape(N_RESAMPLES, n)
    resampled = times @ given / n
    return np.vstack([given.mean(axis=0), np.quantile(resampled, ENDS, axis=0)])


def _resamples(n: int) -> IntArray:
    # always the same ones: a table computed again has the same intervals
    return stream(0, "bootstrap", n).integers(n, size=(N_RESAMPLES, n))


# -- how well changes were detected ----------------------------------------------------------------


class Detection(NamedTuple):
    """Counts over the changes of one run; `delays` of the detected ones."""

    played: int
    unplayed: int
    delays: list[int]
    false_alarms: int

    @property
    def detected(self) -> int:
        """How many changed mechanisms were detected."""
        return len(self.delays)


def detection(record: Record, horizon: int) -> Detection:
    """Compare the alarms of a run with its changes.

    Detected means an alarm on that mechanism before the next change; the delay is counted in rounds
    from the change to the first such alarm. Mechanisms that are not played between the change and
    the next are counted apart; all other alarms are false. The first alarm of a whole-graph
    detector after a change is not false, and does not detect a mechanism either: it names none.

    record    of the run
    horizon   its rounds
    """
    changes, alarms = record["changes"], record["alarms"]
    ends = [change["after"] for change in changes[1:]] + [horizon]
    first_alarms = set()
    delays: list[int] = []
    played = unplayed = 0
    for change, end, plays in zip(changes, ends, record["played_after"], strict=False):
        recent = [tuple(alarm) for alarm in alarms if change["after"] < alarm[0] <= end]
        first_alarms |= set([alarm for alarm in recent if alarm[2] == WHOLE_GRAPH][:1])
        for mechanism, n_plays in zip(change["mechanisms"], plays, strict=True):
            if not n_plays:
                unplayed += 1
                continue
            played += 1
            hits = [alarm for alarm in recent if alarm[1:3] == tuple(mechanism)]
            if hits:
                first_alarms.add(hits[0])
                delays.append(hits[0][0] - change["after"])
    return Detection(played, unplayed, delays, len(alarms) - len(first_alarms))
