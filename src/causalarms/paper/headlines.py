"""The numbers the paper states, each next to ours, and what the defaults of this package do.

Ratios are ratios of means over systems, resampled in pairs; medians stand next to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from causalarms.arrays import FloatArray
from causalarms.paper.experiments import COMPARED_BY_ROUNDS, REFERENCE, fewer
from causalarms.paper.settings import OUR_LEARNER, OUR_POLICY, OUR_POLICY_CD, STATED, Settings
from causalarms.simulation.results import Record
from causalarms.simulation.summary import Interval, bootstrap, detection, mean, ratio_of_means

PERCENT = 100.0
INSIDE, NEAR, OUTSIDE = "inside the interval", "near", "outside"
WIDE, FEW = "interval too wide to say", "too few systems to say"
FEWEST_RUNS = 10  # resamples of fewer systems are no interval
NEAR_ENOUGH = 0.25  # of the room of the paper's value: farther from the interval is outside


class Headline(NamedTuple):
    """One number; what the paper says of it, if it does."""

    key: str
    what: str
    paper: float | None
    measured: Interval
    unit: str = "%"
    second_reading: str = ""  # medians, percentage points

    @property
    def is_measured(self) -> bool:
        """Whether there is a number and an interval: few runs may have none."""
        return all(map(isfinite, self.measured))

    @property
    def room(self) -> float:
        """What a difference is measured by: how far the paper's value is from 0, or from 100 %.

        Six points are much at 7 % and at 94 %, and not at 50 %. At 99.6 % a point is the least.
        """
        assert self.paper is not None
        return max(min(self.paper, PERCENT - self.paper), 1.0) if self.unit == "%" else self.paper

    @property
    def distance(self) -> float:
        """From the paper's value to our interval; 0 inside of it."""
        assert self.paper is not None
        return max(self.measured.low - self.paper, self.paper - self.measured.high, 0.0)

    def verdict(self, runs: int) -> str:
        """Where the paper's value is; empty if there is nothing to compare.

        An interval wider than the room holds almost every value: to lie inside says nothing then.
        """
        if self.paper is None or not self.is_measured:
            return ""
        if runs < FEWEST_RUNS:
            return FEW
        if self.distance > NEAR_ENOUGH * self.room:
            return OUTSIDE
        if self.measured.high - self.measured.low > self.room:
            return WIDE
        return NEAR if self.distance else INSIDE


def graph_headlines(settings: Settings, records: Sequence[Record]) -> list[Headline]:
    """Averages over sizes and sample sizes (Sec. VI-A)."""
    found = [
        Headline(
            f"{metric} {method}",
            f"{metric} of {method}, averaged over sizes and T",
            value,
            mean(PERCENT * _per_repetition(records, method, metric)),
        )
        for metric in ("recall", "precision")
        for method, value in [*STATED[metric].items(), (OUR_LEARNER, None)]
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
                second_reading=f"{csl.mean():.3f} against {other.mean():.3f}, {points:.0f} points",
            )
        )
    return found + [
        Headline(
            f"graph-FN {method}",
            f"graph-FN rate of {method}",
            STATED["false_negative"].get(method),
            mean(PERCENT * _per_repetition(records, method, "false_negative")),
        )
        for method in ("CSL-nw", OUR_LEARNER)
    ]


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
            second_reading=f"{n_missing} of {len(records)} systems had an FN error at some time",
        )
    ]


def stationary_headlines(settings: Settings, records: Sequence[Record]) -> list[Headline]:
    """Optimal fractions and regret without changes (Sec. VI-B)."""
    what = "optimal share of {} at the end"
    return [
        *_optimal(records, "final_optimal_share", OUR_POLICY, "final share {}", what),
        _regret(records, "CSL-UCB", "vanilla UCB", 91.6, key="stationary"),
        _regret(records, "CSL-UCB", "GOLEM-MAB", 86.8, key="stationary"),
        _regret(records, "LinSEM-TS", "CSL-UCB", 86.6, key="stationary"),
        _regret(records, OUR_POLICY, "CSL-UCB", None, key="stationary"),
    ]


def changing_headlines(settings: Settings, records: Sequence[Record]) -> list[Headline]:
    """Optimal fractions, regret and detection with changes (Sec. VI-C)."""
    what = "optimal share of {}, average over time"
    name = "CSL-UCB-CD"
    return [
        *_optimal(records, "optimal_share", OUR_POLICY_CD, "average share {}", what),
        _regret(records, name, "vanilla UCB", 83.0, key="changing"),
        _regret(records, name, "GOLEM-MAB-CD", 83.2, key="changing"),
        _regret(records, name, "LinSEM-TS", 73.5, key="changing"),
        _regret(records, OUR_POLICY_CD, name, None, key="changing"),
        *_detection(settings, records, name, 89.3, 13.1),
        *_detection(settings, records, OUR_POLICY_CD),
    ]


def _detection(
    settings: Settings,
    records: Sequence[Record],
    name: str,
    share: float | None = None,
    delay: float | None = None,
) -> list[Headline]:
    runs = [detection(r, settings.changing_horizon) for r in records if r["policy"] == name]
    played = np.array([d.played for d in runs], dtype=float)
    detected = np.array([d.detected for d in runs], dtype=float)
    delays = np.array([sum(d.delays) for d in runs], dtype=float)
    # of all mechanisms together: runs in which few changed must not weigh more
    found = ratio_of_means(detected, played)
    return [
        Headline(
            f"detected {name}",
            f"sub-graph changes detected by {name}",
            share,
            Interval(*(PERCENT * end for end in found)),
            second_reading=f"{int(detected.sum())} of {int(played.sum())} played; "
            f"{sum(d.unplayed for d in runs)} never played; "
            f"{sum(d.false_alarms for d in runs) / len(runs):.2f} false alarms a run",
        ),
        Headline(
            f"delay {name}",
            f"mean delay of detection by {name}",
            delay,
            ratio_of_means(delays, detected),
            "rounds",
            second_reading=f"median {np.median([d for run in runs for d in run.delays]):.0f}"
            if detected.any()
            else "",
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
            second_reading=f"recall of CSL after {REFERENCE} rounds "
            f"{csl.mean(axis=0)[at]:.3f}; of GOLEM "
            + ", ".join(f"{budget}: {recall:.3f}" for budget, recall in best),
        )
    ]


def abstract_headlines(headlines: Sequence[Headline]) -> list[Headline]:
    """The 85 % of the abstract: the mean of the two numbers against the GOLEM-MAB family."""
    by_key = {h.key: h for h in headlines}
    keys = ("stationary regret CSL-UCB GOLEM-MAB", "changing regret CSL-UCB-CD GOLEM-MAB-CD")
    if not all(key in by_key for key in keys):
        return []
    parts = [by_key[key].measured for key in keys]
    interval = Interval(*(float(np.mean(ends)) for ends in zip(*parts, strict=True)))
    what = "regret below the GOLEM-MAB family, mean of both settings (abstract)"
    return [Headline("reward gain", what, 85.0, interval)]


def _optimal(
    records: Sequence[Record], column: str, ours: str, key: str, what: str
) -> list[Headline]:
    return [
        Headline(
            key.format(name), what.format(name), value, mean(PERCENT * _of(records, name, column))
        )
        for name, value in [*STATED[column].items(), (ours, None)]
    ]


def _regret(
    records: Sequence[Record], name: str, other: str, paper: float | None, *, key: str
) -> Headline:
    ours, theirs = _of(records, name, "regret"), _of(records, other, "regret")
    medians = PERCENT * (1 - np.median(ours) / np.median(theirs))
    return Headline(
        f"{key} regret {name} {other}",
        f"regret of {name} below that of {other}" + (" (changing)" if key == "changing" else ""),
        paper,
        _lower(ours, theirs),
        second_reading=f"means {ours.mean():.0f} and {theirs.mean():.0f}; medians: {medians:.1f} %",
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
