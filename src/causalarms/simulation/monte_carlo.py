"""Many repetitions of an experiment: streamed to disk, resumable, on any engine.

Units run in this process, in local processes, or on a Dask cluster, the last two by joblib. Every
engine yields results as they finish, in any order, each the same bits as any other engine's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causalarms.checks import choice, integer
from causalarms.errors import CausalArmsError, DataError
from causalarms.extras import require_extra
from causalarms.simulation.experiment import Comparison, Unit, run_unit
from causalarms.simulation.results import Record, ResultStore
from causalarms.simulation.worlds import FUNCTIONS

OnResult = Callable[[int, int, Record | None], None]

ENGINES = ("local", "dask")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
WAIT_FOR_WORKERS = 60.0  # seconds; clusters on demand take some to start one


def monte_carlo(
    experiment: Comparison,
    *,
    runs: int,
    path: str | Path | None = None,
    engine: str = "local",
    n_jobs: int = -1,
    address: str | None = None,
    on_result: OnResult | None = None,
) -> list[Record]:
    """Records of all units, by policy (or learner) and repetition.

    experiment   an `Experiment` or a `LearnerExperiment`
    runs         repetitions
    path         finished units are kept in this file and not run again; policies and runs may be
                 added later
    engine       `local` or `dask`
    n_jobs       worker processes; -1: one per core, 1: none but this process
    address      of a Dask scheduler; None starts a cluster for as long as the run
    on_result    `on_result(done, total, record)` is called at the start (record None) and after
                 every unit
    """
    integer("runs", runs, minimum=1)
    where = Engine(engine, n_jobs, address)
    if where.elsewhere:
        # one by one: the error of a worker would not say which part it is
        parts = {name: getattr(experiment, name) for name in FUNCTIONS}
        parts |= {f"{entry.kind} {entry.name!r}": entry for entry in experiment.entries}
        refuse_unsendable(parts)
    # before the file is made: a wrong setting leaves nothing behind
    experiment.check_entries()
    store = ResultStore(path, experiment.common_settings())
    _refuse_other_settings(store, experiment)
    units = experiment.units(runs)
    run_units(run_unit, units, store=store, engine=where, on_result=on_result)
    return store.in_order(experiment.names, runs)


compare_learners = monte_carlo  # of a `LearnerExperiment`


@dataclass(frozen=True)
class Engine:
    """Where units run.

    name      `local` or `dask`
    n_jobs    worker processes; -1: one per core, 1 of `local`: none but this process
    address   of a Dask scheduler; None starts a cluster for as long as the run
    """

    name: str = "local"
    n_jobs: int = -1
    address: str | None = None

    def __post_init__(self) -> None:
        choice("engine", self.name, ENGINES)

    @property
    def elsewhere(self) -> bool:
        """Whether units leave this process."""
        return self.name != "local" or self.n_jobs != 1

    def run(self, function: Callable[..., Any], work: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Results as they finish, in any order.

        function   what is called for every unit
        work       the arguments of every call
        """
        if self.name == "dask":
            yield from self._on_dask(function, work)
        elif self.n_jobs == 1 or len(work) == 1:
            yield from (function(*arguments) for arguments in work)
        else:
            from joblib import parallel_config

            # one BLAS thread each: the processes already take all cores
            with parallel_config(backend="loky", inner_max_num_threads=1):
                yield from _as_they_finish(function, work, n_jobs=self.n_jobs)

    def _on_dask(
        self, function: Callable[..., Any], work: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Units of a worker that dies are run again by another."""
        require_extra("dask", "a Dask cluster")
        from joblib import parallel_config

        n_workers = self.n_jobs if self.n_jobs > 0 else os.cpu_count() or 1
        with _dask_client(self.address, n_workers), parallel_config(backend="dask"):
            yield from _as_they_finish(function, work, n_jobs=-1)


def run_units(
    function: Callable[..., Record],
    units: Sequence[Unit],
    *,
    store: ResultStore,
    engine: Engine,
    on_result: OnResult | None = None,
) -> None:
    """Run the units that the store does not hold yet.

    function    makes the record of a unit
    units       key and arguments of each
    store       keeps the records
    engine      where they run
    on_result   `on_result(done, total, record)`, as in `monte_carlo`
    """
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


def refuse_unsendable(parts: dict[str, Any]) -> None:
    """CausalArmsError if one of the parts cannot be handed to other processes."""
    from joblib.externals.loky.backend.reduction import dumps  # as the engines send it

    for name, part in parts.items():
        try:
            dumps(part)
        except Exception as error:
            raise CausalArmsError(
                f"{name} cannot be sent to other processes ({type(error).__name__}: {error}): "
                "define it at the top of a module without open files or locks, or use one process "
                "(n_jobs=1)"
            ) from error


def _refuse_other_settings(store: ResultStore, experiment: Comparison) -> None:
    """DataError if a label stands for something else, or for other settings, in the file."""
    told = {entry.name: entry.told() for entry in experiment.entries}
    for record in store.records.values():
        name = record["policy"]
        if name in told and record["told"] != told[name]:
            raise DataError(
                f"{store.path} holds results of other settings for {name!r}; "
                "give this one another label, or choose another file"
            )


def _as_they_finish(
    function: Callable[..., Any], work: Sequence[tuple[Any, ...]], *, n_jobs: int
) -> Iterator[Any]:
    """By the backend that is set; all is handed over at once, so that more workers may join."""
    from joblib import Parallel, delayed

    # one unit per task: each is on disk as soon as it is done
    parallel = Parallel(
        n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="all"
    )
    yield from parallel(delayed(function)(*arguments) for arguments in work)


@contextmanager
def _dask_client(address: str | None, n_workers: int) -> Iterator[None]:
    """The client that joblib finds while this lasts."""
    from distributed import Client, LocalCluster

    if address is not None:
        try:
            client = Client(address, timeout="10s")
        except (OSError, TimeoutError, ValueError) as error:
            raise CausalArmsError(
                f"no Dask scheduler answers at {address}: {error or 'timed out'}"
            ) from error
        with client:
            try:
                client.wait_for_workers(1, timeout=WAIT_FOR_WORKERS)
            except TimeoutError as error:
                raise CausalArmsError(f"no Dask worker has come to {address}") from error
            yield
        return
    # workers are started with the environment of this process
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        with (
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",  # None takes port 8787
                host="127.0.0.1",
            ) as cluster,
            Client(cluster),
        ):
            yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
