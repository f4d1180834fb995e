"""Where units run: this process, local processes (joblib), or a Dask cluster.

Every engine yields results as they finish, in any order, each the same bits as any other engine's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from causalarms.errors import CausalArmsError

Work = tuple[Any, ...]

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def run_local(
    function: Callable[..., Any], work: Sequence[Work], *, n_jobs: int = -1
) -> Iterator[Any]:
    """Local processes with one BLAS thread each; one job stays in this process."""
    from joblib import Parallel, delayed, parallel_config

    if n_jobs == 1 or len(work) == 1:
        yield from (function(*arguments) for arguments in work)
        return
    with parallel_config(backend="loky", inner_max_num_threads=1):
        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(
            delayed(function)(*arguments) for arguments in work
        )


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
    try:
        from distributed import as_completed
    except ImportError as error:
        raise CausalArmsError("Dask is not installed: pip install 'causalarms[dask]'") from error
    with _dask_client(address, n_workers) as client:
        futures = client.map(lambda arguments: function(*arguments), list(work), pure=False)
        for _, result in as_completed(futures, with_results=True):
            yield result


@contextmanager
def _dask_client(address: str | None, n_workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    if address is not None:
        try:
            client = Client(address, timeout="10s")
        except (OSError, TimeoutError, ValueError) as error:
            raise CausalArmsError(
                f"no Dask scheduler answers at {address}: {error or 'timed out'}"
            ) from error
        with client:
            yield client
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
            Client(cluster) as client,
        ):
            yield client
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
