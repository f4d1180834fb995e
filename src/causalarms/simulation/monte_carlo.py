"""Many repetitions of an experiment: streamed to disk, resumable, on any engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causalarms.errors import DataError, ModelError
from causalarms.simulation.engines import refuse_unsendable, run_dask, run_local
from causalarms.simulation.experiment import Experiment, run_unit
from causalarms.simulation.store import ResultStore
from causalarms.simulation.worlds import FUNCTIONS

ENGINES = ("local", "dask")

Record = dict[str, Any]
OnResult = Callable[[int, int, Record | None], None]


@dataclass(frozen=True)
class Engine:
    """Where units run."""

    name: str = "local"
    n_jobs: int = -1
    address: str | None = None

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise ModelError(f"unknown engine {self.name!r}; there are {', '.join(ENGINES)}")

    @property
    def elsewhere(self) -> bool:
        """Whether units leave this process."""
        return self.name != "local" or self.n_jobs != 1

    def run(self, function: Callable[..., Any], work: Sequence[tuple[Any, ...]]) -> Any:
        """Results as they finish, in any order."""
        if self.name == "local":
            return run_local(function, work, n_jobs=self.n_jobs)
        n_workers = self.n_jobs if self.n_jobs > 0 else os.cpu_count() or 1
        return run_dask(function, work, address=self.address, n_workers=n_workers)


def run_units(
    function: Callable[..., Record],
    units: Sequence[tuple[tuple[str, int], tuple[Any, ...]]],
    *,
    store: ResultStore,
    engine: Engine,
    on_result: OnResult | None = None,
) -> None:
    """Run the units, given as (key, arguments), that the store does not hold yet."""
    work = [arguments for key, arguments in units if key not in store]
    done = len(units) - len(work)
    if on_result is not None:
        on_result(done, len(units), None)
    if not work:
        return
    for record in engine.run(function, work):
        store.add(record)
        done += 1
        if on_result is not None:
            on_result(done, len(units), record)


def monte_carlo(
    experiment: Experiment,
    *,
    runs: int,
    path: str | Path | None = None,
    engine: str = "local",
    n_jobs: int = -1,
    address: str | None = None,
    on_result: OnResult | None = None,
) -> list[Record]:
    """Records of all units, by policy and repetition.

    With `path`, finished units are kept there and not run again; policies and runs may be added
    later. `on_result(done, total, record)`
    is called at the start (record None) and after every unit.
    """
    if runs < 1:
        raise ModelError(f"runs must be at least 1, not {runs}")
    where = Engine(engine, n_jobs, address)
    if where.elsewhere:
        parts = {name: getattr(experiment, name) for name in FUNCTIONS}
        refuse_unsendable(**parts, **{f"policy {c.name!r}": c for c in experiment.contestants})
    first = experiment.world(0)
    for contestant in experiment.contestants:  # refuse wrong settings before the first unit
        experiment.policy(contestant, first)
    store = ResultStore(path, experiment.common_settings())
    refuse_other(store, {c.name: c.told() for c in experiment.contestants})
    units = [
        ((contestant.name, repetition), (experiment, contestant, repetition))
        for repetition in range(runs)
        for contestant in experiment.contestants
    ]
    run_units(run_unit, units, store=store, engine=where, on_result=on_result)
    return [r for r in store.in_order(experiment.names) if r["repetition"] < runs]


def refuse_other(store: ResultStore, told: dict[str, Record]) -> None:
    """A label that stands for something else, or for other settings, in the file is refused."""
    for record in store.records.values():
        name = record["policy"]
        if name in told and record["told"] != told[name]:
            raise DataError(
                f"{store.path} holds results of other settings for {name!r}; "
                "give this one another label, or choose another file"
            )
