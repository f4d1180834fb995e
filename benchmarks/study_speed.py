"""How fast a study is, and how large: throughput, latency, waits, memory, what reading back costs.

`python benchmarks/study_speed.py throughput|latency|rounds|waits|size|read-back [options]`; each
has --help.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from causalarms import Study, random_sem
from causalarms.errors import StudyError
from causalarms.rng import stream
from causalarms.sem import random_shifted_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.service.remote import RemoteStudy
from causalarms.study import log
from causalarms.study.records import Trial
from causalarms.study.sqlite import FileLocks, SqliteStore
from causalarms.study.store import Entry
from serve_load import served, served_process
from shared import run_part, switches_of

SEM = random_sem(10, seed=3)

OPTUNA = """
import multiprocessing, sys, time
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
def work(url, seconds, queue):
    errors = told = 0
    sampler = optuna.samplers.RandomSampler()
    study = optuna.load_study(study_name="s", storage=url, sampler=sampler)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        try:
            trial = study.ask()
            values = [trial.suggest_categorical(f"x{i}", [0, 1]) for i in range(10)]
            study.tell(trial, float(sum(values)))
            told += 1
        except Exception as error:
            errors += 1
    queue.put((told, errors))
if __name__ == "__main__":
    url, seconds, workers = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    optuna.create_study(study_name="s", storage=url)
    queue = multiprocessing.Queue()
    job = lambda: multiprocessing.Process(target=work, args=(url, seconds, queue))
    jobs = [job() for _ in range(workers)]
    [job.start() for job in jobs]
    results = [queue.get() for _ in jobs]
    [job.join() for job in jobs]
    print(optuna.__version__, sum(t for t, _ in results), sum(e for _, e in results))
"""


def work(path: Path, worker: str, seconds: float, queue: Any) -> None:
    told, errors = 0, []
    study = Study.open(path)
    study.ask(worker=worker)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        try:
            trial = study.ask(worker=worker)
            a = np.array([list(trial.intervention.values())], dtype=np.uint8)
            study.tell(trial, SEM.sample(a, stream(7, "noise", trial.number))[0])
            told += 1
        except Exception as error:
            errors.append(repr(error))
    queue.put((told, errors))


def measure(workers: int, seconds: float, folder: Path) -> dict[str, Any]:
    path = folder / f"{workers}.db"
    Study.create(path, **switches_of(SEM), horizon=5000, seed=1).close()
    queue: Any = multiprocessing.Queue()
    jobs = [
        multiprocessing.Process(target=work, args=(path, f"worker {i}", seconds, queue))
        for i in range(workers)
    ]
    for job in jobs:
        job.start()
    results = [queue.get() for _ in jobs]
    for job in jobs:
        job.join()
    with Study.open(path) as study:
        verdict = study.verify()
    acknowledged, errors = sum(t for t, _ in results), [e for _, es in results for e in es]
    return {
        "workers": workers,
        "rounds_per_second": round(acknowledged / seconds, 1),
        "acknowledged": acknowledged,
        "told_in_file": verdict.told,
        "verify": verdict.ok,
        "errors": errors[:3],
        "least_of_a_worker": min(t for t, _ in results),
    }


def measure_optuna(python: str, workers: int, seconds: float, folder: Path) -> dict[str, Any]:
    script = folder / "optuna_loop.py"
    script.write_text(OPTUNA)
    arguments = [python, str(script), f"sqlite:///{folder}/optuna.db", str(seconds), str(workers)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"optuna": "not measured", "why": done.stderr.strip().splitlines()[-1:]}
    version, told, errors = done.stdout.split()[-3:]
    return {
        "optuna": version,
        "workers": workers,
        "rounds_per_second": round(int(told) / seconds, 1),
        "told": int(told),
        "errors": int(errors),
    }


def fsync_ms(folder: Path, times: int = 100) -> float:
    """Median of the disk's own time to make a page durable: all commits wait for it."""
    took = []
    with (folder / "probe").open("ab") as file:
        for _ in range(times):
            file.write(bytes(4096))
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    return round(1e3 * float(np.median(took)), 2)


def compare(python: str, seconds: float, repeats: int) -> None:
    """Both with 4 workers in turns: the speed of a shared disk changes from minute to minute."""
    for _ in range(repeats):
        for ours in (True, False):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                before = fsync_ms(folder)
                record = (
                    measure(4, seconds, folder)
                    if ours
                    else measure_optuna(python, 4, seconds, folder)
                )
                probe = {"fsync_ms_before": before, "fsync_ms_after": fsync_ms(folder)}
                print(json.dumps(record | probe), flush=True)


def main_throughput() -> None:
    """Several processes asking and telling at once, and the same loop on Optuna's SQLite storage.

    Optuna commits each of the ten parameters of a trial by itself; a study commits twice per round.

    python benchmarks/study_speed.py throughput --seconds 60 --optuna-python PYTHON_WITH_OPTUNA
    """
    parser = argparse.ArgumentParser(
        description=main_throughput.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--optuna-python", default=sys.executable)
    parser.add_argument("--no-optuna", action="store_true")
    parser.add_argument("--repeats", type=int, default=3, help="of the comparison, in turns")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for workers in options.workers:
            print(json.dumps(measure(workers, options.seconds, folder)), flush=True)
    if not options.no_optuna:
        compare(options.optuna_python, options.seconds, options.repeats)


ASKS = 20  # measured at each age: one refresh of the default policy falls into them


def ask_and_tell(study: Study, sem: LinearSEM) -> float:
    """One round; how long asking took."""
    began = time.perf_counter()
    trial = study.ask()
    took = time.perf_counter() - began
    a = np.array([list(trial.intervention.values())], dtype=np.uint8)
    study.tell(trial, sem.sample(a, stream(7, "noise", trial.number))[0])
    return took


def fill(study: Study, sem: LinearSEM, until: int, by_asking: bool) -> None:
    """Rounds up to number `until`: asked one by one, or imported where that would take hours."""
    missing = until - len(study.ledger().trials)
    if by_asking:
        for _ in range(missing):
            ask_and_tell(study, sem)
    else:
        rng = stream(5, "past", until)
        a = rng.integers(0, 2, (missing, sem.n_nodes), dtype=np.uint8)
        x = sem.sample(a, rng)
        columns = {node: x[:, i].tolist() for i, node in enumerate(sem.nodes)}
        flags = {f"do:{node}": a[:, i].tolist() for i, node in enumerate(sem.nodes)}
        study.import_rounds(columns | flags)


def measure_latency(
    n_nodes: int, ages: list[int], folder: Path, by_asking: bool
) -> list[dict[str, Any]]:
    sem = random_sem(n_nodes, seed=3)
    path = folder / f"{n_nodes}.db"
    records = []
    study = Study.create(path, **switches_of(sem), horizon=ages[-1] + 100, seed=1)
    for age in ages:
        fill(study, sem, age - ASKS, by_asking)
        for _ in range(2):  # the pending trial, then one that learns what was imported
            ask_and_tell(study, sem)
        times = np.array([ask_and_tell(study, sem) for _ in range(ASKS)])
        study.close()
        began = time.perf_counter()
        study = Study.open(path)
        opening = time.perf_counter() - began
        began = time.perf_counter()
        study.ask()
        first = time.perf_counter() - began
        records.append(
            {
                "nodes": n_nodes,
                "round": age,
                "rounds_were": "asked" if by_asking else "imported",
                "ask_median_ms": round(1e3 * float(np.median(times)), 2),
                "ask_worst_ms": round(1e3 * float(times.max()), 1),
                "open_s": round(opening, 3),
                "first_ask_after_open_s": round(first, 3),
                "bytes_per_round": round(path.stat().st_size / age),
            }
        )
        print(json.dumps(records[-1]), flush=True)
    study.close()
    return records


def main_latency() -> None:
    """Latency of asking late in a study, time to open it, and bytes per round.

    python benchmarks/study_speed.py latency --rounds 10000 --nodes 10 20
    Rounds before the measured ones are imported in blocks, so that the file is as long as a study
    of that age; the policy learns from all of them.
    """
    parser = argparse.ArgumentParser(
        description=main_latency.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--rounds", type=int, default=10_000)
    options = parser.parse_args()
    ages = [age for age in (100, 1000, 10_000) if age <= options.rounds] or [options.rounds]
    with tempfile.TemporaryDirectory() as folder:
        for n_nodes in options.nodes:
            measure_latency(n_nodes, ages, Path(folder), by_asking=n_nodes < 15)


PAUSE_SECONDS = 0.05
KNOWN_ROUNDS = 100
TOLD = 1000  # trials that wait for a result before anything is measured


def open_study(place: str) -> Study:
    return RemoteStudy(place) if place.startswith("http") else Study.open(place)


def create(path: Path, sem: LinearSEM) -> None:
    """A study with some results, and many pending trials of the one who tells."""
    names: dict[str, Any] = {**switches_of(sem), "seed": 1}
    usual = Study.create(None, **names).settings
    with Study.create(path, policy="random", **names) as study:
        study.import_rounds(past_rounds(sem, KNOWN_ROUNDS))
        study.ask(TOLD, worker="teller")
        study.change_settings(policy=usual.policy, policy_settings=usual.policy_settings)


def past_rounds(sem: LinearSEM, count: int) -> dict[str, list[Any]]:
    rng = stream(5, "past", count)
    a = rng.integers(0, 2, (count, sem.n_nodes), dtype=np.uint8)
    x = sem.sample(a, rng)
    columns = {node: x[:, i].tolist() for i, node in enumerate(sem.nodes)}
    return columns | {f"do:{node}": a[:, i].tolist() for i, node in enumerate(sem.nodes)}


def keep_telling(
    study: Study, trials: list[Trial], sem: LinearSEM, stopped: Callable[[], bool]
) -> dict[str, Any]:
    """The longest waits of tells until it is stopped; an error counts with its time."""
    waits, errors = list[float](), 0
    for trial in trials:
        if stopped():
            break
        a = np.array([list(trial.intervention.values())], dtype=np.uint8)
        values = sem.sample(a, stream(7, "noise", trial.number))[0]
        began = time.perf_counter()
        try:
            study.tell(trial, values)
        except StudyError:
            errors += 1
        waits.append(time.perf_counter() - began)
        time.sleep(PAUSE_SECONDS)
    longest = [round(wait, 3) for wait in sorted(waits, reverse=True)[:3]]
    return {"tells": len(waits), "errors": errors, "longest_waits_s": longest}


def tell_apart(place: str, n_nodes: int, ready: Any, stop: Any, queue: Any) -> None:
    with open_study(place) as study:
        trials = study.ask(TOLD, worker="teller")
        ready.set()
        queue.put(keep_telling(study, trials, random_sem(n_nodes, seed=3), stop.is_set))


def be_busy(study: Study, sem: LinearSEM, options: argparse.Namespace) -> float:
    given = past_rounds(sem, options.imported) if options.imported else {}
    began = time.perf_counter()
    if given:
        study.import_rounds(given)
    else:
        study.ask(options.asked, worker="asker")
    return time.perf_counter() - began


def in_processes(place: str, sem: LinearSEM, options: argparse.Namespace) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    ready, stop, queue = context.Event(), context.Event(), context.Queue()
    arguments = (place, sem.n_nodes, ready, stop, queue)
    teller = context.Process(target=tell_apart, args=arguments, daemon=True)
    teller.start()
    with open_study(place) as study:
        study.ask(worker="asker")  # compiled and learned
        ready.wait()
        took = be_busy(study, sem, options)
    stop.set()
    found: dict[str, Any] = queue.get()
    teller.join()
    return found | {"busy_s": round(took, 1)}


def in_threads(place: str, sem: LinearSEM, options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with open_study(place) as study:
        study.ask(worker="asker")
        trials = study.ask(TOLD, worker="teller")
        stop = threading.Event()
        teller = threading.Thread(
            target=lambda: found.update(keep_telling(study, trials, sem, stop.is_set)), daemon=True
        )
        teller.start()
        took = be_busy(study, sem, options)
        stop.set()
        teller.join()
    return found | {"busy_s": round(took, 1)}


def main_waits() -> None:
    """How long a tell waits while somebody else asks for many trials, or imports many rounds.

    python benchmarks/study_speed.py waits --nodes 14 --asked 1000
    python benchmarks/study_speed.py waits --nodes 10 --imported 100000 --through service
    Another process, another thread of the same study object, or another client of one service tells
    a result every 50 ms until the asking or importing has ended.
    """
    parser = argparse.ArgumentParser(
        description=main_waits.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=14)
    parser.add_argument("--asked", type=int, default=1000)
    parser.add_argument("--imported", type=int, default=0, help="rounds, instead of asking")
    parser.add_argument("--through", choices=("processes", "threads", "service"), nargs="+",
                        default=["processes", "threads", "service"])  # fmt: skip
    options = parser.parse_args()
    sem = random_sem(options.nodes, seed=3)
    for through in options.through:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            path = Path(folder) / "s.db"
            create(path, sem)
            place = stack.enter_context(served(path)) if through == "service" else str(path)
            measure = in_threads if through == "threads" else in_processes
            found = measure(place, sem, options)
        busy = {"imported": options.imported} if options.imported else {"asked": options.asked}
        print(json.dumps({"nodes": options.nodes, "through": through} | busy | found), flush=True)


PER_TRANSACTION = 500
SETTLING_SECONDS = 5.0  # until a service has computed its views and checks
WHY = "tests whether 'x3' matters: expected to save 0.12 per round, costs 0.04"

OPEN = """
import pathlib, sys, time
from causalarms import Study
def resident():
    return int(pathlib.Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])
with Study.open(sys.argv[1]): pass  # what the program itself needs
before, began = resident(), time.process_time()
study = Study.open(sys.argv[2])
print(time.process_time() - began, resident() - before)
"""


def write_rounds(path: Path, n_nodes: int, rounds: int) -> None:
    """A study whose log looks as if every round had been asked for and told one by one."""
    sem = random_sem(n_nodes, seed=3)
    rng = stream(5, "size")
    names: dict[str, Any] = {**switches_of(sem), "seed": 1}
    with Study.create(path, policy="random", **names) as study, study._lock:
        for first in range(0, rounds, PER_TRANSACTION):
            a = rng.integers(0, 2, (PER_TRANSACTION, n_nodes))
            x = sem.sample(a, rng).tolist()
            numbers = range(first, min(first + PER_TRANSACTION, rounds))
            with study._log.writing():
                for row, number in enumerate(numbers):
                    asked = {
                        "trial": number, "worker": f"rig {number % 4}", "mean": x[row][-1] + 0.1,
                        "intervention": a[row].tolist(), "reason": "explore", "learned": number,
                        "width": 0.7 * abs(x[row][-1]), "why": WHY,
                    }  # fmt: skip
                    study._log.write(log.ASKED, asked)
            with study._log.writing():
                for row, number in enumerate(numbers):
                    study._log.write(log.TOLD, {"trial": number, "values": x[row]})


def served_kb(path: Path) -> int:
    """Resident memory of a service."""
    with served_process(path) as (_, process):
        time.sleep(SETTLING_SECONDS)
        status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def main_size() -> None:
    """Time to open a long study, and memory per round of a study object and of the service.

    python benchmarks/study_speed.py size --rounds 40000
    Linux only: it reads /proc. Suggestions are random, so that making the study takes seconds.
    """
    parser = argparse.ArgumentParser(
        description=main_size.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=40_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.db", Path(folder) / "large.db"
        write_rounds(small, options.nodes, 100)
        write_rounds(large, options.nodes, options.rounds)
        command = [sys.executable, "-c", OPEN, str(small), str(large)]
        found = [
            subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            for _ in range(3)
        ]
        served_more = served_kb(large) - served_kb(small)
    record = {
        "nodes": options.nodes,
        "rounds": options.rounds,
        "open_cpu_s": round(min(float(seconds) for seconds, _ in found), 2),
        "kb_per_round": round(float(found[0][1]) / options.rounds, 2),
        "served_kb_per_round": round(served_more / options.rounds, 2),
    }
    print(json.dumps(record))


READ_BACK = "_read_back"


def without(store: SqliteStore, last: Entry, locks: FileLocks) -> None:
    """Instead of reading back."""


def main_read_back() -> None:
    """What reading back every event through the path costs a `tell`: with and without, in turns.

    python benchmarks/study_speed.py read-back --tells 1000
    """
    parser = argparse.ArgumentParser(
        description=main_read_back.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tells", type=int, default=1000)
    options = parser.parse_args()
    read_back = getattr(SqliteStore, READ_BACK)
    seconds: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        nodes = ["a", "b", "c"]
        study = Study.create(Path(folder) / "s.db", nodes, "c", policy="random", intervenable=nodes)
        for number in range(options.tells):
            trial, checked = study.ask(), number % 2 == 0
            setattr(SqliteStore, READ_BACK, read_back if checked else without)
            began = time.perf_counter()
            study.tell(trial, [0.0, 1.0, float(number)])
            seconds[checked].append(time.perf_counter() - began)
            setattr(SqliteStore, READ_BACK, read_back)
    medians = {checked: statistics.median(s) for checked, s in seconds.items()}
    record = {
        "tells": options.tells,
        "with_ms": round(1e3 * medians[True], 3),
        "without_ms": round(1e3 * medians[False], 3),
        "ratio_of_medians": round(medians[True] / medians[False], 3),
        "ratio_of_means": round(sum(seconds[True]) / sum(seconds[False]), 3),
    }
    print(json.dumps(record))


ROUNDS_TIMED = range(14, 18)


def round_ms(n_nodes: int, n_factors: int) -> float:
    """Processor time of a round in memory: asked, told and learned; the median of a few."""
    factors = {f"factor {k}": {"levels": [1, 2, 3]} for k in range(n_factors)}
    if n_factors:
        sem = random_shifted_sem(n_nodes, factors, seed=stream(n_nodes, "rounds")).sem
    else:  # a switch of every node but the reward
        sem = random_sem(n_nodes, seed=n_nodes, regimes=[2] * (n_nodes - 1) + [1])
    nodes = sem.nodes[:n_nodes]
    study = Study.create(
        None, nodes=nodes, reward=nodes[sem.reward], factors=factors or None, seed=1
    )
    seconds = []
    for number in range(max(ROUNDS_TIMED) + 1):
        began = time.process_time()
        trial = study.ask()
        row = np.array([trial.intervention[node] for node in sem.nodes], dtype=np.uint8)
        values = sem.sample(row[None], stream(number, "noise"))[0, :n_nodes]
        study.tell(trial, values.tolist())
        if number in ROUNDS_TIMED:
            seconds.append(time.process_time() - began)
    return 1000 * statistics.median(seconds)


def main_rounds() -> None:
    """`python benchmarks/study_speed.py rounds [--nodes 6 10 16] [--factors 0 3 6]`

    Milliseconds of a processor that a round of a study takes after 14 others, by the number of
    nodes and of factors of three levels that nobody explains; with no factors nodes have switches.
    """
    parser = argparse.ArgumentParser(
        description=main_rounds.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[6, 10, 16])
    parser.add_argument("--factors", type=int, nargs="+", default=[0, 3, 6])
    options = parser.parse_args()
    round_ms(4, 2)  # compiles what is not cached
    for n in options.nodes:
        found = {f"{k} factors": round(round_ms(n, k), 1) for k in options.factors}
        print(json.dumps({"nodes": n} | found), flush=True)


def main() -> None:
    run_part(
        __doc__,
        {
            "throughput": main_throughput,
            "latency": main_latency,
            "rounds": main_rounds,
            "waits": main_waits,
            "size": main_size,
            "read-back": main_read_back,
        },
    )


if __name__ == "__main__":
    main()
