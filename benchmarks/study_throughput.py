"""Several processes asking and telling at once, and the same loop on Optuna's SQLite storage.

Optuna commits each of the ten parameters of a trial by itself; a study commits twice per round.

python benchmarks/study_throughput.py --seconds 60 --optuna-python PYTHON_WITH_OPTUNA
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from causalarms import Study, random_sem
from causalarms.rng import stream

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
    Study.create(path, nodes=SEM.nodes, reward=SEM.nodes[SEM.reward], horizon=5000, seed=1).close()
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


def main() -> None:
    parser = argparse.ArgumentParser()
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


if __name__ == "__main__":
    main()
