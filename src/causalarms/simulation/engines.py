"""Where units run: this process, local processes, or a Dask cluster, both by joblib.

Every engine yields results as they finish, in any order, each the same bits as any other engine's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from causalarms.errors import CausalArmsError
from causalarms.extras import require_extra

Work = tuple[Any, ...]

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
WAIT_FOR_WORKERS = 60.0  # seconds; clusters on demand take some to start one


def run_local(
    function: Callable[..., Any], work: Sequence[Work], *, n_jobs: int = -1
) -> Iterator[Any]:
    """Local processes with one BLAS thread each; one job stays in this process."""
    from joblib import parallel_config

    if n_jobs == 1 or len(work) == 1:
        yield from (function(*arguments) for arguments in work)
        return
    with parallel_config(backend="loky", inner_max_num_threads=1):
        yield from _as_they_finish(function, work, n_jobs=n_jobs)


def run_dask(
    function: Callable[..., Any],
    work: Sequence[Work],
    *,
    address: str | None = None,
    n_workers: int = 2,
) -> Iterator[Any]:
    """A Dask cluster at `address`, or one of local worker processes that lives as long as the run.

    Units of a worker that dies are run again by another.
    """
    require_extra("dask", "a Dask cluster")
    from joblib import parallel_config

    with _dask_client(address, n_workers), parallel_config(backend="dask"):
        yield from _as_they_finish(function, work, n_jobs=-1)


def refuse_unsendable(**parts: Any) -> None:
    """CausalArmsError where other processes cannot be handed one of the parts, by its name."""
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


def _as_they_finish(
    function: Callable[..., Any], work: Sequence[Work], *, n_jobs: int
) -> Iterator[Any]:
    """By the backend that is set; all is handed over at once, so that more workers may join."""
    from joblib import Parallel, delayed

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
