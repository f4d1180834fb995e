"""How long a tell waits while somebody else asks for many trials, or imports many rounds.

python benchmarks/study_waits.py --nodes 14 --asked 1000
python benchmarks/study_waits.py --nodes 10 --imported 100000 --through service
Another process, another thread of the same study object, or another client of one service tells a
result every 50 ms until the asking or importing has ended.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
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
from causalarms.sem.linear_sem import LinearSEM
from causalarms.service.remote import RemoteStudy
from causalarms.study.ledger import Trial
from serve_load import served

PAUSE_SECONDS = 0.05
KNOWN_ROUNDS = 100
TOLD = 1000  # trials that wait for a result before anything is measured


def open_study(place: str) -> Study:
    return RemoteStudy(place) if place.startswith("http") else Study.open(place)


def create(path: Path, sem: LinearSEM) -> None:
    """A study with some results, and many pending trials of the one who tells."""
    names: dict[str, Any] = {"nodes": sem.nodes, "reward": sem.nodes[sem.reward], "seed": 1}
    usual = Study.create(None, **names).settings
    with Study.create(path, policy="random", **names) as study:
        study.add_observations(past_rounds(sem, KNOWN_ROUNDS))
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
        study.add_observations(given)
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


def main() -> None:
    parser = argparse.ArgumentParser()
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


if __name__ == "__main__":
    main()
