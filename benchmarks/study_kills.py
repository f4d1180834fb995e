"""kill -9 at random instants of processes that ask and tell in a loop, and what is left.

python benchmarks/study_kills.py --kills 500 --workers 1 4 --start fork
A child sends the number of a trial only after `tell` has returned. Started by `fork`, children come
from a parent that has everything imported *and the study open*, and that closes it while they run;
kills fall into asking, telling, committing and opening, not into the start of Python. Started by
`spawn` they are new processes, killed some time after their first tell.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from causalarms import Study, random_sem
from causalarms.rng import stream
from causalarms.study.ledger import Trial

SEM = random_sem(4, seed=3)
SETTINGS: dict[str, Any] = {
    "nodes": list(SEM.nodes),
    "reward": SEM.nodes[SEM.reward],
    "horizon": 2000,
    "seed": 1,
}
NUMBER = struct.Struct("<q")


def result(trial: Trial) -> list[float]:
    """What the system gives in a trial, whoever carries it out."""
    a = np.array([list(trial.intervention.values())], dtype=np.uint8)
    values: list[float] = SEM.sample(a, stream(7, "noise", trial.number))[0].tolist()
    return values


def loop(path: Path, worker: str, acknowledge: int) -> None:
    """Ask and tell until killed."""
    study = Study.open(path)
    while True:
        trial = study.ask(worker=worker)
        study.tell(trial, result(trial))
        os.write(acknowledge, NUMBER.pack(trial.number))


class Child(NamedTuple):
    process: int
    receive: int
    handle: subprocess.Popen[bytes] | None


def fork(path: Path, worker: str) -> Child:
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(receive)
            loop(path, worker, send)
        except BaseException as error:
            print(f"{worker}: {error!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    os.close(send)
    return Child(child, receive, None)


def spawn(path: Path, worker: str) -> Child:
    command = [sys.executable, __file__, "--worker", worker, "--path", str(path)]
    handle = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert handle.stdout is not None
    return Child(handle.pid, os.dup(handle.stdout.fileno()), handle)


def finish(child: Child) -> tuple[list[int], bool]:
    """Kill; what it had acknowledged, and whether it was alive until then."""
    os.kill(child.process, signal.SIGKILL)
    if child.handle is None:
        killed = os.WIFSIGNALED(os.waitpid(child.process, 0)[1])
    else:
        killed = child.handle.wait() < 0
        assert child.handle.stdout is not None
        child.handle.stdout.close()
    content = b""
    while chunk := os.read(child.receive, 65536):
        content += chunk
    os.close(child.receive)
    whole = len(content) // NUMBER.size * NUMBER.size
    return [n for (n,) in NUMBER.iter_unpack(content[:whole])], killed


def run(kills: int, workers: int, method: str, seed: int, folder: Path) -> dict[str, Any]:
    """`kills` kills in groups of `workers` processes at once."""
    path = folder / f"kills-{method}-{workers}.db"
    Study.create(path, **SETTINGS).close()
    chance = random.Random(seed)
    acknowledged: list[int] = []
    own_errors = 0
    for _ in range(-(-kills // workers)):
        parent = Study.open(path)
        start = fork if method == "fork" else spawn
        children = [start(path, f"worker {i}") for i in range(workers)]
        if method == "spawn":
            select.select([child.receive for child in children], [], [], 60)  # one has begun
        time.sleep(chance.uniform(0.0, 0.05))
        parent.close()
        for child in children:
            time.sleep(chance.uniform(0.0, 0.3 / workers + 0.05))
            done, killed = finish(child)
            acknowledged += done
            own_errors += not killed
    return {"kills": kills, "workers": workers, "start": method, "own_errors": own_errors} | check(
        path, acknowledged, workers
    )


def check(path: Path, acknowledged: list[int], workers: int) -> dict[str, Any]:
    """Compare what is in the file with what was acknowledged and with an uninterrupted run."""
    with Study.open(path) as study:
        trials = study.ledger().trials
        told = {r.number for r in trials if r.state == "told"}
        wrong = sum(
            list(r.values or ()) != result(study._trial(r)) for r in trials if r.state == "told"
        )
        verdict = study.verify(replay=True)
        following = study.ask(worker="worker 0")
        uninterrupted = Study.create(None, **SETTINGS)
        same = True
        if workers == 1:
            for record in trials:
                trial = uninterrupted.ask(worker="worker 0")
                same &= tuple(trial.intervention.values()) == record.intervention
                if record.state == "told":
                    uninterrupted.tell(trial, result(trial))
            same &= uninterrupted.ask(worker="worker 0") == following
    return {
        "acknowledged": len(acknowledged),
        "lost": len(set(acknowledged) - told),
        "acknowledged_twice": len(acknowledged) - len(set(acknowledged)),
        "told_in_file": len(told),
        "wrong_values": wrong,
        "verify_with_replay": verdict.ok,
        "same_as_uninterrupted": same if workers == 1 else verdict.ok,
    }


def warm_up() -> None:
    """Load compiled code before forking."""
    study = Study.create(None, **(SETTINGS | {"horizon": 200}))
    for _ in range(80):
        trial = study.ask()
        study.tell(trial, result(trial))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--start", choices=["fork", "spawn"], nargs="+", default=["fork"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", help="be a worker with this name")
    parser.add_argument("--path", type=Path, help="of the worker's study")
    options = parser.parse_args()
    if options.worker:
        loop(options.path, options.worker, sys.stdout.fileno())
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        for workers, method in itertools.product(options.workers, options.start):
            began = time.perf_counter()
            record = run(options.kills, workers, method, options.seed, Path(folder))
            record["seconds"] = round(time.perf_counter() - began, 1)
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
