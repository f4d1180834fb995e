"""A service over half an hour: four workers at their pace, twenty pages open; memory and time.

`python benchmarks/serve_soak.py [--minutes 30] [--pause 1.0] [--viewers 20]`. Every worker asks,
waits and tells. A viewer listens to events and then fetches what a page shows, unless it has not
changed. Every minute: rounds so far, memory of the server, its share of one processor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from causalarms.rng import stream
from causalarms.service.remote import RemoteStudy
from posterior_policy import table
from serve_load import SEM, WORKERS, new, served_process

SHOWN = ("study", "best", "rewards", "graph", "alarms", "trials?state=asked")
TICKS = 100  # of processor time in a second, as Linux counts


def work(url: str, worker: str, until: float, pause: float) -> None:
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


def watch(url: str, viewers: int, seconds: float, queue: Any) -> None:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds an experiment takes")
    parser.add_argument("--viewers", type=int, default=20)
    given = parser.parse_args()
    seconds = 60 * given.minutes
    made = table("", "minute", "rounds", "memory, MiB", "share of a processor")
    with (
        tempfile.TemporaryDirectory() as folder,
        served_process(new(Path(folder), "soak.db", None)) as (url, pid),
    ):
        queue: Any = multiprocessing.Queue()
        watcher = multiprocessing.Process(target=watch, args=(url, given.viewers, seconds, queue))
        until = time.time() + seconds
        workers = [
            multiprocessing.Process(target=work, args=(url, f"worker {i}", until, given.pause))
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


if __name__ == "__main__":
    main()
