"""kill -9 at random instants: of processes that share a study, and of its service.

`python benchmarks/kills.py study|service [options]`; each has --help.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import multiprocessing
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from causalarms import Study, random_sem
from causalarms.rng import stream
from causalarms.service.app import Options
from causalarms.service.remote import RemoteStudy
from causalarms.service.server import serve
from causalarms.service.threads import warm_up as warm_up_service
from causalarms.study.log import Event, chain, encode
from causalarms.study.records import Trial
from causalarms.study.store import ROOT
from shared import run_part, switches_of

SEM = random_sem(4, seed=3)
SETTINGS: dict[str, Any] = {
    **switches_of(SEM),
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
    command = [sys.executable, __file__, "study", "--worker", worker, "--path", str(path)]
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
        ledger = study.ledger()
        trials = ledger.trials
        told = {r.number for r in trials if r.state == "told"}
        wrong = sum(
            list(r.values or ()) != result(ledger.as_trial(r)) for r in trials if r.state == "told"
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


def main_study() -> None:
    """kill -9 at random instants of processes that ask and tell in a loop, and what is left.

    python benchmarks/kills.py study --kills 500 --workers 1 4 --start fork
    A child sends the number of a trial only after `tell` has returned. Started by `fork`, children
    come from a parent that has everything imported *and the study open*, and that closes it while
    they run; kills fall into asking, telling, committing and opening, not into the start of Python.
    Started by `spawn` they are new processes, killed some time after their first tell.
    """
    parser = argparse.ArgumentParser(
        description=main_study.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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


WORKERS = 4
PATIENCE = 3600.0  # a worker may meet a dead service many times in a row


def work(url: str, worker: str, acknowledged: Path, stop: Any) -> None:
    with (
        RemoteStudy(url, patience=PATIENCE) as study,
        acknowledged.open("a", encoding="utf-8") as out,
    ):
        while not stop.is_set():
            trial = study.ask(worker=worker)
            study.tell(trial, result(trial))
            noted = trial.number % 5 == 0
            if noted:
                study.note(f"note of {trial.number}", trial)
            out.write(json.dumps([trial.number, noted]) + "\n")
            out.flush()


def follow(host: str, port: int, stop: Any, queue: Any) -> None:
    """All events of the log, as a viewer who is cut off again and again gets them."""
    last, hash_, breaks, odd = 0, ROOT, 0, []
    first_hash = ""
    while not stop.is_set():
        try:
            line = socket.create_connection((host, port), timeout=5)
            with line, line.makefile("rb") as file:
                head = f"GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\nLast-Event-ID: {last}\r\n"
                line.sendall((head + "Accept: text/event-stream\r\n\r\n").encode())
                while not stop.is_set():
                    text = file.readline()
                    if not text:
                        raise ConnectionError
                    if text.startswith(b"event: reset"):
                        odd.append(f"reset after {last}")
                    if not text.startswith(b"data: "):
                        continue
                    data = json.loads(text[6:])
                    if first_hash not in ("", data.get("first_hash", first_hash)):
                        odd.append("another study")
                    first_hash = data.get("first_hash", first_hash)
                    if data["head"] < last:
                        odd.append(f"head {data['head']} after {last}")
                    last, hash_ = fetch(host, port, last, hash_, odd)
        except (OSError, http.client.HTTPException, ValueError):
            breaks += 1
            time.sleep(0.05)
    queue.put((last, hash_.hex(), breaks, odd))


def fetch(host: str, port: int, last: int, hash_: bytes, odd: list[str]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        while True:
            connection.request("GET", f"/api/v1/events?after={last}&limit=1000")
            page = json.loads(connection.getresponse().read())
            for record in page["events"]:
                event = Event(record["number"], record["kind"], record["at"], record["data"])
                hash_ = chain(hash_, encode(event))
                if event.number != last + 1 or hash_.hex() != record["hash"]:
                    odd.append(f"event {event.number} after {last}")
                last = event.number
            if page["next"] is None:
                return last, hash_
    finally:
        connection.close()


def start(path: Path, port: int) -> int:
    """The service in a forked child."""
    process = os.fork()
    if process:
        return process
    with suppress(BaseException):
        serve(path, Options(port=port), lambda line: None)
    os._exit(1)


def answers(port: int, process: int) -> bool:
    """Whether the service answers, within its time to start; it may have been killed before."""
    for _ in range(3000):
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/api/v1/healthz")
            found = connection.getresponse().status == 200
            connection.close()
            return found
        if os.waitpid(process, os.WNOHANG)[0]:
            return False
        time.sleep(0.01)
    return False


def judge(path: Path, folder: Path, followed: Any) -> dict[str, Any]:
    last, hash_, breaks, odd = followed
    with Study.open(path, read_only=True) as study:
        ledger, verdict = study.ledger(), study.verify()
        head = study.store.head()
        entries = study.store.entries()
    notes: dict[int | None, int] = {}
    for note in ledger.notes:
        notes[note.trial] = notes.get(note.trial, 0) + 1
    lost, wrong, doubled, seen = [], [], [], set()
    for worker in range(WORKERS):
        for line in (folder / f"{worker}.acknowledged").read_text().splitlines():
            number, noted = json.loads(line)
            record = ledger.trials[number]
            if record.state != "told" or (noted and notes.get(number, 0) < 1):
                lost.append(number)
            elif record.values != tuple(_values(record.intervention, number)):
                wrong.append(number)
            if number in seen or record.worker != f"w{worker}":
                doubled.append(number)
            seen.add(number)
    doubled += [n for n, count in notes.items() if count > 1]
    told = [json.loads(e.text)["data"]["trial"] for e in entries if '"kind":"told"' in e.text]
    doubled += [n for n in set(told) if told.count(n) > 1]
    if (last, hash_) != (head[0], head[1].hex()):
        odd.append(f"the follower ends at {last}, the log at {head[0]}")
    return {
        "acknowledged": len(seen), "events": head[0], "lost": lost, "wrong": wrong,
        "doubled": doubled, "pending": len(ledger.pending), "intact": verdict.ok,
        "breaks_of_the_follower": breaks, "odd": odd,
    }  # fmt: skip


def _values(intervention: tuple[int, ...], number: int) -> list[float]:
    a = np.array([intervention], dtype=np.uint8)
    values: list[float] = SEM.sample(a, stream(7, "noise", number))[0].tolist()
    return values


def main_service() -> None:
    """kill -9 of the service at random instants under four workers and a follower.

    python benchmarks/kills.py service --kills 500
    The service is forked from a parent that has everything compiled, so that kills fall into
    answering, writing and opening, not into the start of Python. Workers ask and tell over the
    network, write down every result that was acknowledged, and now and then send a note with a key.
    The follower hears the live events, comes back with Last-Event-ID, and fetches the log without a
    gap.
    """
    parser = argparse.ArgumentParser(
        description=main_service.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--longest", type=float, default=1.0, help="seconds until a kill")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    choice = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path = folder / "s.db"
        with Study.create(path, **switches_of(SEM), seed=1) as study:
            warm_up_service(study)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        url, stop = f"http://127.0.0.1:{port}/", multiprocessing.Event()
        queue: Any = multiprocessing.Queue()
        process = start(path, port)
        if not answers(port, process):
            sys.exit("the service does not start")
        jobs = [
            multiprocessing.Process(
                target=work, args=(url, f"w{i}", folder / f"{i}.acknowledged", stop)
            )
            for i in range(WORKERS)
        ]
        jobs.append(multiprocessing.Process(target=follow, args=("127.0.0.1", port, stop, queue)))
        for job in jobs:
            job.start()
        began, kills, while_starting = time.time(), 0, 0
        for kills in range(1, given.kills + 1):
            if choice.random() < 0.2:
                while_starting += 1
                time.sleep(choice.random() * 0.2)
            elif answers(port, process):
                time.sleep(choice.random() * given.longest)
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(process, 0)
            process = start(path, port)
            if kills % 50 == 0:
                print(f"{kills} kills, {time.time() - began:.0f} s", flush=True)
        if not answers(port, process):
            sys.exit("the service does not start again")
        time.sleep(2)
        stop.set()
        for job in jobs[:-1]:
            job.join()
        os.kill(process, signal.SIGKILL)  # once more, with everything acknowledged
        os.waitpid(process, 0)
        process = start(path, port)
        answers(port, process)
        followed = queue.get(timeout=60)
        jobs[-1].join()
        with socket.create_connection(("127.0.0.1", port)):
            last, hash_, breaks, odd = followed
            last, end = fetch("127.0.0.1", port, last, bytes.fromhex(hash_), odd)
        os.kill(process, signal.SIGTERM)
        os.waitpid(process, 0)
        found = judge(path, folder, (last, end.hex(), breaks, odd))
        print(json.dumps({"kills": kills, "while_starting": while_starting} | found, indent=1))
        bad = found["lost"] or found["wrong"] or found["doubled"] or found["odd"]
        sys.exit(1 if bad or not found["intact"] or found["pending"] > WORKERS else 0)


def main() -> None:
    run_part(__doc__, {"study": main_study, "service": main_service})


if __name__ == "__main__":
    main()
