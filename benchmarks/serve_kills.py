"""kill -9 of the service at random instants under four workers and a follower, and what is left.

python benchmarks/serve_kills.py --kills 500
The service is forked from a parent that has everything compiled, so that kills fall into answering,
writing and opening, not into the start of Python. Workers ask and tell over the network, write down
every result that was acknowledged, and now and then send a note with a key. The follower hears the
live events, comes back with Last-Event-ID, and fetches the log without a gap.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import random
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from causalarms.rng import stream
from causalarms.sem import random_sem
from causalarms.service.desk import practise
from causalarms.service.remote import RemoteStudy
from causalarms.service.server import serve
from causalarms.service.service import Options
from causalarms.study import Study
from causalarms.study.ledger import Trial
from causalarms.study.log import ROOT, Event, chain, encode

SEM = random_sem(4, seed=3)
WORKERS = 4
PATIENCE = 3600.0  # a worker may meet a dead service many times in a row


def result(trial: Trial) -> list[float]:
    """What the system gives in a trial, whoever carries it out."""
    a = np.array([list(trial.intervention.values())], dtype=np.uint8)
    values: list[float] = SEM.sample(a, stream(7, "noise", trial.number))[0].tolist()
    return values


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
    notes: dict[int, int] = {}
    for note in ledger.notes:
        notes[note["trial"]] = notes.get(note["trial"], 0) + 1
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--longest", type=float, default=1.0, help="seconds until a kill")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    choice = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path = folder / "s.db"
        with Study.create(path, SEM.nodes, SEM.nodes[SEM.reward], seed=1) as study:
            practise(study)
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


if __name__ == "__main__":
    main()
