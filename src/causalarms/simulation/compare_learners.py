"""Many repetitions of learners, and one row per learner with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from causalarms.errors import ModelError
from causalarms.simulation.engines import refuse_unsendable
from causalarms.simulation.intervals import Interval, bootstrap, mean
from causalarms.simulation.learners import METRICS, LearnerExperiment, run_learner
from causalarms.simulation.monte_carlo import Engine, OnResult, Record, refuse_other, run_units
from causalarms.simulation.store import ResultStore
from causalarms.simulation.summary import plain_row
from causalarms.simulation.worlds import FUNCTIONS

NOTHING = Interval(float("nan"), float("nan"), float("nan"))


class LearnerSummary(NamedTuple):
    """One learner over all repetitions; metrics are of B, over runs that did not fail."""

    learner: str
    runs: int
    failed: int
    false_negative: Interval  # share of systems with a missing edge
    precision: Interval
    recall: Interval
    nshd: Interval
    seconds: Interval  # of processor time of a fit, median
    first_failure: str | None

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values; nan becomes None."""
        return plain_row(self)


def compare_learners(
    experiment: LearnerExperiment,
    *,
    runs: int,
    path: str | Path | None = None,
    engine: str = "local",
    n_jobs: int = -1,
    address: str | None = None,
    on_result: OnResult | None = None,
) -> list[Record]:
    """Records of all units, by learner and repetition; as `monte_carlo` for policies."""
    if runs < 1:
        raise ModelError(f"runs must be at least 1, not {runs}")
    where = Engine(engine, n_jobs, address)
    if where.elsewhere:
        parts = {name: getattr(experiment, name) for name in FUNCTIONS}
        refuse_unsendable(**parts, **{f"learner {c.name!r}": c for c in experiment.learners})
    for contestant in experiment.learners:  # refuse wrong settings before the first unit
        made = contestant.make()
        if hasattr(made, "check_settings"):
            made.check_settings()
    store = ResultStore(path, experiment.common_settings())
    refuse_other(store, {c.name: c.told() for c in experiment.learners})
    units = [
        ((contestant.name, repetition), (experiment, contestant, repetition))
        for repetition in range(runs)
        for contestant in experiment.learners
    ]
    run_units(run_learner, units, store=store, engine=where, on_result=on_result)
    return [r for r in store.in_order(experiment.names) if r["repetition"] < runs]


def summarise_learners(
    names: Sequence[str], records: Sequence[dict[str, Any]]
) -> list[LearnerSummary]:
    """One row per learner, in the order of the names."""
    rows = []
    for name in names:
        units = [record for record in records if record["policy"] == name]
        if not units:
            continue
        good = [unit for unit in units if unit["failed"] is None]
        failures = [unit["failed"] for unit in units if unit["failed"] is not None]
        metrics = {m: mean([u[m] for u in good]) if good else NOTHING for m in METRICS}
        seconds = _median([u["seconds"] for u in good]) if good else NOTHING
        first = failures[0] if failures else None
        rows.append(
            LearnerSummary(
                learner=name,
                runs=len(units),
                failed=len(failures),
                seconds=seconds,
                first_failure=first,
                **metrics,
            )
        )
    return rows


def _median(sample: list[float]) -> Interval:
    """The first fit of a process compiles; a mean would be of that."""
    return bootstrap(lambda x: np.median(x, axis=-1), sample)
