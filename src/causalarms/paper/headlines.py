"""The numbers the paper states, each next to ours.

"agrees" means: the paper's value lies within our 95 % interval or within the stated tolerance of
our value. Ratios are ratios of means over systems, resampled in pairs; medians stand next to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from causalarms.arrays import FloatArray
from causalarms.paper.experiments import COMPARED_BY_ROUNDS, REFERENCE, fewer
from causalarms.paper.settings import STATED, Settings
from causalarms.simulation.results import Record
from causalarms.simulation.summary import Interval, bootstrap, detection, mean, ratio_of_means

PERCENT = 100.0


class Headline(NamedTuple):
    """One stated number."""

    key: str
    what: str
    paper: float
    measured: Interval
    tolerance: float
    unit: str = "%"
    beside: str = ""  # a second reading: medians, percentage points

    @property
    def agrees(self) -> bool:
        """Whether the paper's value is within our interval or the tolerance."""
        inside = self.measured.low <= self.paper <= self.measured.high
        return bool(inside or abs(self.paper - self.measured.value) <= self.tolerance)


def graph_headlines(settings: Settings, records: Sequence[Record]) -> list[Headline]:
    """Averages over sizes and sample sizes (Sec. VI-A)."""
    found = [
        Headline(
            f"{metric} {method}",
            f"{metric} of {method}, averaged over sizes and T",
            value,
            mean(PERCENT * _per_repetition(records, method, metric)),
            3.0,
        )
        for metric in ("recall", "precision")
        for method, value in STATED[metric].items()
    ]
    csl = _per_repetition(records, "CSL", "false_negative")
    for method, value in (("GOLEM", 81.1), ("DAGMA", 86.9)):
        other = _per_repetition(records, method, "false_negative")
        points = PERCENT * (other.mean() - csl.mean())
        found.append(
            Headline(
                f"graph-FN {method}",
                f"graph-FN rate of CSL below that of {method}",
                value,
                _lower(csl, other),
                8.0,
                beside=f"{csl.mean():.3f} against {other.mean():.3f}, {points:.0f} points",
            )
        )
    nw = mean(PERCENT * _per_repetition(records, "CSL-nw", "false_negative"))
    return [*found, Headline("graph-FN CSL-nw", "graph-FN rate of CSL-nw", 100.0, nw, 1)]


def reward_headlines(settings: Settings, records: Sequence[Record]) -> list[Headline]:
    """How much lower the error is without false negatives (Sec. VI-B)."""
    errors = np.array([r["error"] for r in records])  # (system, time)
    missing = np.array([r["missing"] for r in records])

    # whole systems are resampled: the times of one belong together
    def lower(rows: FloatArray) -> FloatArray:
        index = rows.astype(int)
        e, m = errors[index], missing[index]  # (..., system, time)
        without = np.nanmean(np.where(m, np.nan, e), axis=-2)
        with_fn = np.nanmean(np.where(m, e, np.nan), axis=-2)
        return PERCENT * (1 - np.nanmean(without, axis=-1) / np.nanmean(with_fn, axis=-1))

    n_missing = int(missing.any(axis=1).sum())
    return [
        Headline(
            "reward error",
            "reward error without FN errors below that with them, averaged over time",
            62.8,
            bootstrap(lower, np.arange(len(records))),
            10.0,
            beside=f"{n_missing} of {len(records)} systems had an FN error at some time",
        )
    ]


def stationary_headlines(settings: Settings, records: Sequence[Record]) -> list[Headline]:
    """Optimal fractions and regret without changes (Sec. VI-B)."""
    what = "optimal share of {} at the end"
    return [
        *_optimal(records, "final_optimal_share", "final share {}", what, 8.0),
        _regret(records, "CSL-UCB", "vanilla UCB", 91.6, 3.0, key="stationary"),
        _regret(records, "CSL-UCB", "GOLEM-MAB", 86.8, 5.0, key="stationary"),
        _regret(records, "LinSEM-TS", "CSL-UCB", 86.6, 6.0, key="stationary"),
    ]


def changing_headlines(settings: Settings, records: Sequence[Record]) -> list[Headline]:
    """Optimal fractions, regret and detection with changes (Sec. VI-C)."""
    what = "optimal share of {}, average over time"
    name, horizon = "CSL-UCB-CD", settings.changing_horizon
    runs = [detection(r, horizon) for r in records if r["policy"] == name]
    played = np.array([d.played for d in runs], dtype=float)
    detected = np.array([d.detected for d in runs], dtype=float)
    delays = np.array([sum(d.delays) for d in runs], dtype=float)
    # of all mechanisms together: runs in which few changed must not weigh more
    found = ratio_of_means(detected, played)
    return [
        *_optimal(records, "optimal_share", "average share {}", what, 6.0),
        _regret(records, name, "vanilla UCB", 83.0, 5.0, key="changing"),
        _regret(records, name, "GOLEM-MAB-CD", 83.2, 5.0, key="changing"),
        _regret(records, name, "LinSEM-TS", 73.5, 8.0, key="changing"),
        Headline(
            "detected",
            "sub-graph changes detected",
            89.3,
            Interval(*(PERCENT * end for end in found)),
            4.0,
            beside=f"{int(detected.sum())} of {int(played.sum())} played; "
            f"{sum(d.unplayed for d in runs)} never played; "
            f"{sum(d.false_alarms for d in runs) / len(runs):.2f} false alarms a run",
        ),
        Headline(
            "delay",
            "mean delay of detection",
            13.1,
            ratio_of_means(delays, detected),
            4.0,
            "rounds",
        ),
    ]


def sample_headlines(settings: Settings, records: Sequence[Record]) -> list[Headline]:
    """Rounds needed for the same graph accuracy (conclusions)."""
    csl, golem = (_of(records, method, "recall") for method in COMPARED_BY_ROUNDS)

    def lower(rows: FloatArray) -> FloatArray:
        index = rows.astype(int)
        return PERCENT * fewer(csl[index], golem[index], settings)

    at = settings.budgets.index(REFERENCE)
    best = zip(settings.budgets, golem.mean(axis=0), strict=True)
    return [
        Headline(
            "samples",
            "rounds CSL needs below those of GOLEM, same recall of both graphs (conclusions)",
            67.0,
            bootstrap(lower, np.arange(len(csl))),
            10.0,
            beside=f"recall of CSL after {REFERENCE} rounds {csl.mean(axis=0)[at]:.3f}; of GOLEM "
            + ", ".join(f"{budget}: {recall:.3f}" for budget, recall in best),
        )
    ]


def abstract_headlines(headlines: Sequence[Headline]) -> list[Headline]:
    """The 85 % of the abstract: the mean of the two numbers against the GOLEM-MAB family."""
    by_key = {h.key: h for h in headlines}
    keys = ("stationary regret GOLEM-MAB", "changing regret GOLEM-MAB-CD")
    if not all(key in by_key for key in keys):
        return []
    parts = [by_key[key].measured for key in keys]
    interval = Interval(*(float(np.mean(ends)) for ends in zip(*parts, strict=True)))
    what = "regret below the GOLEM-MAB family, mean of both settings (abstract)"
    return [Headline("reward gain", what, 85.0, interval, 5.0)]


def _optimal(
    records: Sequence[Record], column: str, key: str, what: str, tolerance: float
) -> list[Headline]:
    return [
        Headline(
            key.format(name),
            what.format(name),
            value,
            mean(PERCENT * _of(records, name, column)),
            tolerance,
        )
        for name, value in STATED[column].items()
    ]


def _regret(
    records: Sequence[Record], name: str, other: str, paper: float, tolerance: float, *, key: str
) -> Headline:
    ours, theirs = _of(records, name, "regret"), _of(records, other, "regret")
    medians = PERCENT * (1 - np.median(ours) / np.median(theirs))
    return Headline(
        f"{key} regret {other}",
        f"regret of {name} below that of {other}" + (" (changing)" if key == "changing" else ""),
        paper,
        _lower(ours, theirs),
        tolerance,
        beside=f"medians: {medians:.1f} %",
    )


def _lower(ours: FloatArray, theirs: FloatArray) -> Interval:
    """By how many per cent one mean is below another."""
    ratio = ratio_of_means(ours, theirs)
    # the ends change places: a larger ratio is a smaller gain
    return Interval(*(PERCENT * (1 - end) for end in (ratio.value, ratio.high, ratio.low)))


def _of(records: Sequence[Record], policy: str, key: str) -> FloatArray:
    return np.array([r[key] for r in records if r["policy"] == policy], dtype=float)


def _per_repetition(records: Sequence[Record], method: str, metric: str) -> FloatArray:
    """The mean over sizes and sample sizes, one number per repetition."""
    values: dict[int, list[float]] = {}
    for record in records:
        if record["method"] == method:
            values.setdefault(record["repetition"], []).append(record[metric])
    return np.array([np.mean(values[repetition]) for repetition in sorted(values)])
