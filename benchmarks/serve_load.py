"""A service under load: rounds per second with viewers, and memory over time.

`python benchmarks/serve_load.py load|soak [options]`; each has --help.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from causalarms.rng import stream
from causalarms.sem import random_sem
from causalarms.service.remote import RemoteStudy
from causalarms.study import Study
from shared import run_part, switches_of, table

SEM = random_sem(10, seed=3)
WORKERS = 4

OPTUNA = """
import multiprocessing, sys, threading, time
import optuna
from optuna.storages import GrpcStorageProxy, run_grpc_proxy_server
optuna.logging.set_verbosity(optuna.logging.ERROR)
def serve(url):
    run_grpc_proxy_server(optuna.storages.get_storage(url), host="localhost", port=13000)
def work(seconds, queue):
    told = 0
    storage = GrpcStorageProxy(host="localhost", port=13000)
    study = optuna.load_study(
        study_name="s", storage=storage, sampler=optuna.samplers.RandomSampler()
    )
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        trial = study.ask()
        values = [trial.suggest_categorical(f"x{i}", [0, 1]) for i in range(10)]
        study.tell(trial, float(sum(values)))
        told += 1
    queue.put(told)
if __name__ == "__main__":
    url, seconds, workers = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    optuna.create_study(study_name="s", storage=url)
    server = multiprocessing.Process(target=serve, args=(url,), daemon=True)
    server.start()
    time.sleep(5)
    queue = multiprocessing.Queue()
    jobs = [multiprocessing.Process(target=work, args=(seconds, queue)) for _ in range(workers)]
    [job.start() for job in jobs]
    print(*(queue.get() for _ in jobs))
    server.terminate()
"""


@contextmanager
def served(path: Path, *options: str) -> Iterator[str]:
    with served_process(path, *options) as (url, _):
        yield url


@contextmanager
def served_process(path: Path, *options: str) -> Iterator[tuple[str, int]]:
    """The address of a service in a process of its own, and the process."""
    program = "from causalarms.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "serve", str(path), "--port", "0", *options],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if found := re.search(r"http://\S+", line):
                break
        else:
            raise SystemExit(f"the service does not start: {said}")
        yield found[0], process.pid
    finally:
        process.terminate()
        process.wait(10)


def work(place: str, worker: str, seconds: float, begin: Any, queue: Any) -> None:
    remote = place.startswith("http")
    with RemoteStudy(place) if remote else Study.open(place) as study:
        study.ask(worker=worker)
        begin.wait()
        told, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            trial = study.ask(worker=worker)
            a = np.array([list(trial.intervention.values())], dtype=np.uint8)
            study.tell(trial, SEM.sample(a, stream(7, "noise", trial.number))[0])
            told += 1
    queue.put(told)


def rounds(place: str, seconds: float) -> list[int]:
    """How many rounds each worker made."""
    queue: Any = multiprocessing.Queue()
    begin = multiprocessing.Barrier(WORKERS)
    jobs = [
        multiprocessing.Process(target=work, args=(place, f"worker {i}", seconds, begin, queue))
        for i in range(WORKERS)
    ]
    for job in jobs:
        job.start()
    told = [queue.get(timeout=10 * seconds + 120) for _ in jobs]
    for job in jobs:
        job.join()
    return told


def speed(told: list[int], seconds: float) -> dict[str, float]:
    total = sum(told)
    return {
        "rounds_per_second": round(total / seconds, 1),
        "slowest_share": round(min(told) * len(told) / max(total, 1), 2),
    }


async def view(host: str, port: int, heard: list[tuple[float, int]]) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    head = f"GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n"
    writer.write(head.encode())
    try:
        while line := await reader.readline():
            if line.startswith(b"data: "):
                heard.append((time.time(), json.loads(line[6:])["head"]))
    finally:
        writer.close()


def watch(url: str, viewers: int, begin: Any, queue: Any) -> None:
    """In a process of its own: when each viewer heard of which event."""
    host, _, port = url.removeprefix("http://").strip("/").partition(":")

    async def all_of_them() -> list[list[tuple[float, int]]]:
        heard: list[list[tuple[float, int]]] = [[] for _ in range(viewers)]
        tasks = [asyncio.create_task(view(host, int(port), one)) for one in heard]
        while not all(heard):
            await asyncio.sleep(0.05)
        begin.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        return heard

    queue.put(asyncio.run(all_of_them()))


def with_viewers(path: Path, seconds: float, viewers: int) -> dict[str, Any]:
    begin = multiprocessing.Event()
    queue: Any = multiprocessing.Queue()
    with served(path) as url:
        watcher = multiprocessing.Process(target=watch, args=(url, viewers, begin, queue))
        watcher.start()
        if not begin.wait(60):
            raise SystemExit("the viewers did not get in")
        told = rounds(url, seconds)
    heard = queue.get(timeout=60)
    watcher.join()
    with Study.open(path, read_only=True) as study:
        at = {
            e.number: datetime.fromisoformat(json.loads(e.text)["at"]).timestamp()
            for e in study.store.entries()
        }
        newest = study.seen
    lags = sorted(when - at[head] for one in heard for when, head in one[1:])
    rates = [len(one) / (one[-1][0] - one[0][0]) for one in heard if len(one) > 2]
    return speed(told, seconds) | {
        "viewers": viewers,
        "lag_p50_seconds": round(lags[len(lags) // 2], 3),
        "lag_p99_seconds": round(lags[int(0.99 * (len(lags) - 1))], 3),
        "messages_per_second": round(max(rates), 2),
        "behind_at_the_end": max(newest - one[-1][1] for one in heard),
    }


def optuna(python: str, seconds: float, folder: Path) -> dict[str, Any]:
    program = folder / "optuna_workers.py"
    program.write_text(OPTUNA)
    url = f"sqlite:///{folder / 'optuna.db'}"
    found = subprocess.run(
        [python, str(program), url, str(seconds), str(WORKERS)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode:
        raise SystemExit(found.stderr[-2000:])
    return speed([int(n) for n in found.stdout.split()], seconds)


def large(folder: Path, trials: int) -> dict[str, Any]:
    """What the page of a large study loads."""
    path, rng = folder / "large.db", stream(5, "noise")
    regimes = rng.integers(0, 2, (trials, 10)).astype(np.uint8)
    values = SEM.sample(regimes, rng)
    frame = {node: values[:, i].tolist() for i, node in enumerate(SEM.nodes)}
    frame |= {f"do:{node}": regimes[:, i].tolist() for i, node in enumerate(SEM.nodes)}
    with Study.create(path, **switches_of(SEM), seed=1) as study:
        study.import_rounds(frame)
        study.ask()
    began = time.perf_counter()
    with served(path) as url:
        started = time.perf_counter() - began
        host, _, port = url.removeprefix("http://").strip("/").partition(":")
        connection = http.client.HTTPConnection(host, int(port))
        size, began = 0, time.perf_counter()
        for part in (
            "study", "best", "graph", "alarms", "rewards", "checks", "trials?state=asked",
            f"trials?after={trials - 50}&limit=50",
        ):  # fmt: skip
            connection.request("GET", f"/api/v1/{part}", headers={"Accept-Encoding": "gzip"})
            size += len(connection.getresponse().read())
        seconds = time.perf_counter() - began
        connection.close()
    return {
        "trials": trials,
        "start_seconds": round(started, 1),
        "answers_seconds": round(seconds, 3),
        "answers_kb_gz": round(size / 1000, 1),
    }


def new(folder: Path, name: str, policy: str | None) -> Path:
    path = folder / name
    Study.create(path, **switches_of(SEM), policy=policy, horizon=5000, seed=1).close()
    return path


def together(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of every number."""
    return {name: float(np.median([run[name] for run in runs])) for name in runs[0]}


def main_load() -> None:
    """The service under load: workers over the network, next to the same on the file and Optuna.

    Four workers ask and tell a study of ten nodes for some seconds: on its file, over `causalarms
    serve`, and over the service with a hundred pages open. Optuna does the same over its gRPC proxy
    to an SQLite storage. Then a study of 10,000 trials is served, and what its page loads is timed.

    python benchmarks/serve_load.py load --seconds 20 --optuna-python PYTHON_WITH_OPTUNA_AND_GRPCIO
    """
    parser = argparse.ArgumentParser(
        description=main_load.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--repeats", type=int, default=3, help="of all, in turn")
    parser.add_argument("--viewers", type=int, default=100)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--policy", help="random: learns nothing, as Optuna's sampler here")
    parser.add_argument("--optuna-python", help="a Python with optuna and grpcio")
    given = parser.parse_args()
    seconds, found = given.seconds, dict[str, list[dict[str, Any]]]()
    for _ in range(given.repeats):
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            told = rounds(str(new(folder, "file.db", given.policy)), seconds)
            found.setdefault("file", []).append(speed(told, seconds))
            with served(new(folder, "served.db", given.policy)) as url:
                told = rounds(url, seconds)
            found.setdefault("served", []).append(speed(told, seconds))
            viewed = with_viewers(new(folder, "viewed.db", given.policy), seconds, given.viewers)
            found.setdefault("viewed", []).append(viewed)
            if given.optuna_python:
                told_there = optuna(given.optuna_python, seconds, folder)
                found.setdefault("optuna", []).append(told_there)
        print({name: runs[-1] for name, runs in found.items()}, flush=True)
    with tempfile.TemporaryDirectory() as made:
        page = large(Path(made), given.trials)
    report = {name: together(runs) for name, runs in found.items()} | {"large": page}
    print(json.dumps(report, indent=1))


SHOWN = ("study", "best", "rewards", "graph", "alarms", "trials?state=asked")
TICKS = 100  # of processor time in a second, as Linux counts


def work_soak(url: str, worker: str, until: float, pause: float) -> None:
    with RemoteStudy(url) as study:
        while time.time() < until:
            trial = study.ask(worker=worker)
            a = np.array([list(trial.intervention.values())], dtype=np.uint8)
            time.sleep(pause)
            study.tell(trial, SEM.sample(a, stream(7, "noise", trial.number))[0])


class Page:
    """What an open page does: listen, and fetch what is new."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.tags: dict[str, str] = {}
        self.fetched = self.size = self.unchanged = 0

    async def watch(self) -> None:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        writer.write(self._request("events", "Accept: text/event-stream\r\n"))
        news = asyncio.Event()
        asyncio.get_running_loop().create_task(self._fetch_whenever(news))
        while line := await reader.readline():
            if line.startswith(b"data: "):
                news.set()

    async def _fetch_whenever(self, news: asyncio.Event) -> None:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        while True:
            await news.wait()
            news.clear()
            for path in SHOWN:
                known = self.tags.get(path)
                tag = f"If-None-Match: {known}\r\n" if known else ""
                writer.write(self._request(path, f"Accept-Encoding: gzip\r\n{tag}"))
                await self._take(reader, path)

    async def _take(self, reader: asyncio.StreamReader, path: str) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
        length = int(fields.get("content-length", 0))
        await reader.readexactly(length)
        self.fetched += 1
        self.size += length
        self.unchanged += " 304 " in head[0]
        self.tags[path] = fields.get("etag", "")

    def _request(self, path: str, more: str) -> bytes:
        return f"GET /api/v1/{path} HTTP/1.1\r\nHost: {self.host}\r\n{more}\r\n".encode()


def watch_soak(url: str, viewers: int, seconds: float, queue: Any) -> None:
    host, _, port = url.removeprefix("http://").strip("/").partition(":")

    async def all_of_them() -> list[Page]:
        pages = [Page(host, int(port)) for _ in range(viewers)]
        tasks = [asyncio.create_task(page.watch()) for page in pages]
        await asyncio.sleep(seconds)
        if broken := [task for task in tasks if task.done()]:
            raise SystemExit(f"{len(broken)} pages lost their connection: {broken[0]}")
        for task in tasks:
            task.cancel()
        return pages

    pages = asyncio.run(all_of_them())
    queue.put({name: sum(getattr(p, name) for p in pages) for name in ("fetched", "unchanged")}
              | {"mega_bytes": round(sum(p.size for p in pages) / 1e6, 1)})  # fmt: skip


def memory(pid: int) -> float:
    """Resident, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line) / 1024


def processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main_soak() -> None:
    """A service over half an hour: four workers at their pace, twenty pages open; memory and time.

    `python benchmarks/serve_load.py soak [--minutes 30] [--pause 1.0] [--viewers 20]`. Every worker
    asks, waits and tells. A viewer listens to events and then fetches what a page shows, unless it
    has not changed. Every minute: rounds so far, memory of the server, its fraction of one
    processor.
    """
    parser = argparse.ArgumentParser(
        description=main_soak.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds an experiment takes")
    parser.add_argument("--viewers", type=int, default=20)
    given = parser.parse_args()
    seconds = 60 * given.minutes
    made = table("", "minute", "rounds", "memory, MiB", "fraction of a processor")
    with (
        tempfile.TemporaryDirectory() as folder,
        served_process(new(Path(folder), "soak.db", None)) as (url, pid),
    ):
        queue: Any = multiprocessing.Queue()
        watcher = multiprocessing.Process(
            target=watch_soak, args=(url, given.viewers, seconds, queue)
        )
        until = time.time() + seconds
        workers = [
            multiprocessing.Process(target=work_soak, args=(url, f"worker {i}", until, given.pause))
            for i in range(WORKERS)
        ]
        for process in (watcher, *workers):
            process.start()
        before, step = processor(pid), max(seconds / 30, 1.0)
        with RemoteStudy(url) as study:
            for number in range(1, int(seconds / step) + 1):
                time.sleep(max(0.0, until - seconds + number * step - time.time()))
                used = processor(pid)
                told = sum(record.state == "told" for record in study.ledger().trials)
                row = [f"{number * step / 60:.1f}", str(told), f"{memory(pid):.0f}"]
                made.add_row(*row, f"{(used - before) / step:.2f}")
                print(json.dumps([*row, round((used - before) / step, 2)]), flush=True)
                before = used
        pages = queue.get(timeout=60)
        for process in (watcher, *workers):
            process.join(60)
    console = Console(width=120)
    console.print(made)
    console.print(f"{given.viewers} pages: {pages}")


def main() -> None:
    run_part(__doc__, {"load": main_load, "soak": main_soak})


if __name__ == "__main__":
    main()
