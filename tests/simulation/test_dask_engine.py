"""A real Dask cluster of worker processes on the loopback: the same bits, whatever dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from distributed import LocalCluster
from small_experiment import N_UNITS, OWN, RUNS, SMALL, reference, text

from causalarms.errors import CausalArmsError
from causalarms.simulation.monte_carlo import monte_carlo


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two worker processes, each watched by a nanny that starts it again when it dies."""
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        host="127.0.0.1",
    ) as running:
        yield running


def worker_pids(cluster: LocalCluster) -> list[int]:
    return [nanny.pid for nanny in cluster.workers.values()]


def test_two_worker_processes_give_the_bits_of_one(cluster: LocalCluster) -> None:
    pids = worker_pids(cluster)
    assert len({*pids, os.getpid()}) == 3
    records = monte_carlo(SMALL, runs=RUNS, engine="dask", address=cluster.scheduler_address)
    assert text(records) == text(reference())


def test_own_systems_noise_and_policies_reach_the_workers(cluster: LocalCluster) -> None:
    records = monte_carlo(OWN, runs=2, engine="dask", address=cluster.scheduler_address)
    assert text(records) == text(monte_carlo(OWN, runs=2, n_jobs=1))


def test_a_killed_worker_loses_nothing(cluster: LocalCluster) -> None:
    victim = worker_pids(cluster)[0]
    done: list[int] = []

    def kill_after_the_first_results(n: int, total: int, record: Any) -> None:
        done.append(n)
        if n == 3:
            os.kill(victim, signal.SIGKILL)

    records = monte_carlo(
        SMALL,
        runs=RUNS,
        engine="dask",
        address=cluster.scheduler_address,
        on_result=kill_after_the_first_results,
    )
    assert done == list(range(N_UNITS + 1))
    assert text(records) == text(reference())
    deadline = time.monotonic() + 15
    while victim in worker_pids(cluster):  # until its nanny has noticed
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_cluster_of_its_own_gives_the_same_bits_and_leaves_no_trace() -> None:
    before = os.environ.get("OMP_NUM_THREADS")
    records = monte_carlo(SMALL, runs=2, engine="dask", n_jobs=2)
    assert text(records) == text([r for r in reference() if r["repetition"] < 2])
    assert os.environ.get("OMP_NUM_THREADS") == before


def test_a_scheduler_that_does_not_answer_is_named_soon() -> None:
    start = time.monotonic()
    with pytest.raises(CausalArmsError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        monte_carlo(SMALL, runs=1, engine="dask", address="tcp://127.0.0.1:1")
    assert time.monotonic() - start < 15


def test_a_cluster_without_workers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    engines = import_module("causalarms.simulation.monte_carlo")  # the package has the function
    monkeypatch.setattr(engines, "WAIT_FOR_WORKERS", 1.0)
    with (
        LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", host="127.0.0.1") as empty,
        pytest.raises(CausalArmsError, match="no Dask worker has come to"),
    ):
        monte_carlo(SMALL, runs=1, engine="dask", address=empty.scheduler_address)
