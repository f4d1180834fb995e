"""Many repetitions of an experiment: streamed to disk, resumable, on any engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from causalarms.errors import ModelError
from causalarms.simulation.engines import run_dask, run_local
from causalarms.simulation.experiment import Experiment, run_unit
from causalarms.simulation.store import ResultStore

ENGINES = ("local", "dask")


def monte_carlo(
    experiment: Experiment,
    *,
    runs: int,
    path: str | Path | None = None,
    engine: str = "local",
    n_jobs: int = -1,
    address: str | None = None,
    on_result: Callable[[int, int, dict[str, Any] | None], None] | None = None,
) -> list[dict[str, Any]]:
    """Records of all units, by policy and repetition.

    With `path`, finished units are kept there and not run again. `on_result(done, total, record)`
    is called at the start (record None) and after every unit.
    """
    if runs < 1:
        raise ModelError(f"runs must be at least 1, not {runs}")
    if engine not in ENGINES:
        raise ModelError(f"unknown engine {engine!r}; there are {', '.join(ENGINES)}")
    for contestant in experiment.contestants:  # refuse wrong settings before the first unit
        experiment.policy(contestant, experiment.world(0))
    store = ResultStore(path, experiment.settings())
    work = [
        (experiment, contestant, repetition)
        for repetition in range(runs)
        for contestant in experiment.contestants
        if (contestant.name, repetition) not in store
    ]
    total = runs * len(experiment.contestants)
    done = total - len(work)
    if on_result is not None:
        on_result(done, total, None)
    if work:
        results = (
            run_local(run_unit, work, n_jobs=n_jobs)
            if engine == "local"
            else run_dask(run_unit, work, address=address, n_workers=max(n_jobs, 1))
        )
        for record in results:
            store.add(record)
            done += 1
            if on_result is not None:
                on_result(done, total, record)
    names = [c.name for c in experiment.contestants]
    return [r for r in store.in_order(names) if r["repetition"] < runs]
