"""The numbers the paper states, each next to ours.

"agrees" means: the paper's value lies within our 95 % interval or within the stated tolerance of
our value. Ratios are ratios of means over systems, resampled in pairs; medians stand next to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from causalarms.arrays import FloatArray
from causalarms.paper import sample_complexity
from causalarms.paper.settings import Settings
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


def graph_headlines(records: Sequence[Record]) -> list[Headline]:
    """Averages over sizes and sample sizes (Sec. VI-A)."""
    found = []
    for metric, tolerance, stated in (
        ("recall", 3.0, {"GOLEM": 92.7, "DAGMA": 93.8, "CSL": 99.6}),
        ("precision", 3.0, {"GOLEM": 93.5, "DAGMA": 90.9, "CSL": 96.7}),
    ):
        for method, value in stated.items():
            found.append(
                Headline(
                    f"{metric} {method}",
                    f"{metric} of {method}, averaged over sizes and T",
                    value,
                    mean(PERCENT * _per_repetition(records, method, metric)),
                    tolerance,
                )
            )
    csl = _per_repetition(records, "CSL", "false_negative")
    for method, value in (("GOLEM", 81.1), ("DAGMA", 86.9)):
        other = _per_repetition(records, method, "false_negative")
        found.append(
            Headline(
                f"graph-FN {method}",
                f"graph-FN rate of CSL below that of {method}",
                value,
                _lower(csl, other),
                8.0,
                beside=f"{csl.mean():.3f} against {other.mean():.3f}, "
                f"{PERCENT * (other.mean() - csl.mean()):.0f} points",
            )
        )
    nw = _per_repetition(records, "CSL-nw", "false_negative")
    found.append(
        Headline("graph-FN CSL-nw", "graph-FN rate of CSL-nw", 100.0, mean(PERCENT * nw), 1)
    )
    return found


def reward_headlines(records: Sequence[Record]) -> list[Headline]:
    """How much lower the error is without false negatives (Sec. VI-B)."""
    errors = np.array([r["error"] for r in records])  # (system, time)
    missing = np.array([r["missing"] for r in records])

    def lower(rows: FloatArray) -> FloatArray:
        index = rows.astype(int)
        e, m = errors[index], missing[index]  # (..., system, time)
        without = np.nanmean(np.where(m, np.nan, e), axis=-2)
        with_fn = np.nanmean(np.where(m, e, np.nan), axis=-2)
        return PERCENT * (1 - np.nanmean(without, axis=-1) / np.nanmean(with_fn, axis=-1))

    interval = bootstrap(lower, np.arange(len(records)))
    n_missing = int(missing.any(axis=1).sum())
    return [
        Headline(
            "reward error",
            "reward error without FN errors below that with them, averaged over time",
            62.8,
            interval,
            10.0,
            beside=f"{n_missing} of {len(records)} systems had an FN error at some time",
        )
    ]


def stationary_headlines(records: Sequence[Record]) -> list[Headline]:
    """Optimal fractions and regret without changes (Sec. VI-B)."""
    stated = {"vanilla UCB": 47.2, "GOLEM-MAB": 71.0, "CSL-UCB": 79.0, "LinSEM-TS": 94.2}
    found = _optimal(records, stated, "final share {}", "optimal share of {} at the end", 8.0)
    regrets = (
        ("CSL-UCB", "vanilla UCB", 91.6, 3.0),
        ("CSL-UCB", "GOLEM-MAB", 86.8, 5.0),
        ("LinSEM-TS", "CSL-UCB", 86.6, 6.0),
    )
    return found + [_regret(records, *row, key="stationary") for row in regrets]


def changing_headlines(records: Sequence[Record], horizon: int) -> list[Headline]:
    """Optimal fractions, regret and detection with changes (Sec. VI-C)."""
    stated = {"vanilla UCB": 7.0, "GOLEM-MAB-CD": 18.3, "LinSEM-TS": 32.6, "CSL-UCB-CD": 63.8}
    what = "optimal share of {}, average over time"
    found = _optimal(records, stated, "average share {}", what, 6.0)
    regrets = (
        ("CSL-UCB-CD", "vanilla UCB", 83.0, 5.0),
        ("CSL-UCB-CD", "GOLEM-MAB-CD", 83.2, 5.0),
        ("CSL-UCB-CD", "LinSEM-TS", 73.5, 8.0),
    )
    found += [_regret(records, *row, key="changing") for row in regrets]
    runs = [detection(r, horizon) for r in records if r["policy"] == "CSL-UCB-CD"]
    played = np.array([d.played for d in runs], dtype=float)
    detected = np.array([d.detected for d in runs], dtype=float)
    delays = np.array([sum(d.delays) for d in runs], dtype=float)
    false_alarms = sum(d.false_alarms for d in runs) / len(runs)
    found += [
        Headline(
            "detected",
            "sub-graph changes detected",
            89.3,
            _scaled(ratio_of_means(detected, played), PERCENT),
            4.0,
            beside=f"{int(detected.sum())} of {int(played.sum())} played; "
            f"{sum(d.unplayed for d in runs)} never played; "
            f"{false_alarms:.2f} false alarms a run",
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
    return found


def sample_headlines(records: Sequence[Record], settings: Settings) -> list[Headline]:
    """Rounds needed for the same graph accuracy (conclusions)."""
    recall = {
        method: np.array([r["recall"] for r in records if r["policy"] == method])
        for method in sample_complexity.METHODS
    }

    def lower(rows: FloatArray) -> FloatArray:
        index = rows.astype(int)
        return PERCENT * sample_complexity.fewer(
            recall["CSL"][index], recall["GOLEM"][index], settings
        )

    at = settings.budgets.index(sample_complexity.REFERENCE)
    best = recall["GOLEM"].mean(axis=0)
    return [
        Headline(
            "samples",
            "rounds CSL needs below those of GOLEM, same recall of both graphs (conclusions)",
            67.0,
            bootstrap(lower, np.arange(len(recall["CSL"]))),
            10.0,
            beside=f"recall of CSL after {settings.budgets[at]} rounds "
            f"{recall['CSL'].mean(axis=0)[at]:.3f}; of GOLEM "
            + ", ".join(f"{b}: {v:.3f}" for b, v in zip(settings.budgets, best, strict=True)),
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
    return [
        Headline(
            "reward gain",
            "regret below the GOLEM-MAB family, mean of both settings (abstract)",
            85.0,
            interval,
            5.0,
        )
    ]


def _optimal(
    records: Sequence[Record], stated: dict[str, float], key: str, what: str, tolerance: float
) -> list[Headline]:
    column = "final_optimal_share" if key.startswith("final") else "optimal_share"
    return [
        Headline(
            key.format(name),
            what.format(name),
            value,
            mean(PERCENT * _of(records, name, column)),
            tolerance,
        )
        for name, value in stated.items()
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
    return Interval(*(PERCENT * (1 - end) for end in (ratio.value, ratio.high, ratio.low)))


def _scaled(interval: Interval, factor: float) -> Interval:
    return Interval(*(factor * end for end in interval))


def _of(records: Sequence[Record], policy: str, key: str) -> FloatArray:
    return np.array([r[key] for r in records if r["policy"] == policy], dtype=float)


def _per_repetition(records: Sequence[Record], method: str, metric: str) -> FloatArray:
    """The mean over sizes and sample sizes, one number per repetition."""
    values: dict[int, list[float]] = {}
    for record in records:
        if record["method"] == method:
            values.setdefault(record["repetition"], []).append(record[metric])
    return np.array([np.mean(values[repetition]) for repetition in sorted(values)])
