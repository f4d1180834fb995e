"""Kill a study before each of its writes, syncs, renames and removals, and see what is left.

python tools/crash_points.py            every point of every operation
python tools/crash_points.py --link     the same through symbolic links
python tools/crash_points.py --every 5  a quick look

A small library put before the C library (LD_PRELOAD) counts the calls that change files and kills
the process before the n-th. For every operation and every n a forked child does the operation on a
fresh copy; then the study is opened and compared with what was there before. Exit code 1 if
anything acknowledged is lost or anything half written is left.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from causalarms import Study
from causalarms.errors import StudyError, StudyFileError
from causalarms.study.repair import backup, recover, verify

KILLER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>
static long left;  /* calls until the kill; 0: none */
void crash_before(long n) { left = n; }
static void step(void) { if (left && !--left) kill(getpid(), SIGKILL); }
#define WRAP(type, name, takes, gives) type name takes { \
  static type (*real) takes; if (!real) real = dlsym(RTLD_NEXT, #name); \
  step(); return real gives; }
WRAP(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n))
WRAP(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at))
WRAP(ssize_t, pwrite64, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at))
WRAP(int, ftruncate, (int fd, off_t n), (fd, n))
WRAP(int, ftruncate64, (int fd, off_t n), (fd, n))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, fdatasync, (int fd), (fd))
WRAP(int, unlink, (const char *path), (path))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, link, (const char *from, const char *to), (from, to))
"""
SETTINGS: dict[str, Any] = {
    "nodes": ["a", "b", "c"], "reward": "c", "policy": "random", "seed": 1,
    "intervenable": ["a", "b", "c"],
}  # fmt: skip
PAST = {"a": [1.0] * 300, "b": [2.0] * 300, "c": [3.0] * 300}  # several pages
PENDING = 3  # the trial that is told


class Place(NamedTuple):
    """Where an operation works: the names that it is given may be links."""

    study: Path
    other: Path  # a file that the operation makes


Operation = Callable[[Place], object]


def _open(work: Callable[[Study], object]) -> Operation:
    def operation(place: Place) -> None:
        with Study.open(place.study) as study:
            work(study)

    return operation


OPERATIONS: dict[str, Operation] = {
    "create": lambda place: Study.create(place.other, **SETTINGS).close(),
    "ask": _open(lambda study: study.ask(worker="another")),
    "tell": _open(lambda study: study.tell(PENDING, [1.0, 2.0, 3.0])),
    "import": _open(lambda study: study.import_rounds(PAST)),
    "correct": _open(lambda study: study.correct(1, [4.0, 5.0, 6.0])),
    "backup": lambda place: backup(place.study, place.other),
    "recover": lambda place: recover(place.study, place.other),
}
MAKING = ("create", "backup", "recover")  # a new file, and leave the study alone


def texts(path: Path) -> list[str]:
    """All events, once the study has passed `verify`."""
    verdict = verify(path)
    assert verdict.ok, verdict.message
    with Study.open(path) as study:
        return [entry.text for entry in study.store.entries()]


def prepare(folder: Path) -> tuple[Path, Path]:
    """A study with three results and a pending trial, and the same one damaged."""
    whole, damaged = folder / "whole.db", folder / "damaged.db"
    with Study.create(whole, **SETTINGS) as study:
        for number in range(PENDING):
            study.tell(study.ask(), [float(number), 1.0, 2.0])
        study.ask()
        event = study.store.entries()[4].text.encode()
    content = whole.read_bytes()
    at = content.index(event) + len(event) // 2
    damaged.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    return whole, damaged


def in_child(operation: Operation, place: Place, point: int) -> bool:
    """Whether the operation ended well before the kill."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            crash_before = ctypes.CDLL(None).crash_before
            crash_before(ctypes.c_long(point))
            operation(place)
            crash_before(ctypes.c_long(0))
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, -signal.SIGKILL):
        raise SystemExit(f"the operation failed by itself, at point {point}")
    return code == 0


def outcome(name: str, real: Place, given: Place, before: Sequence[str], done: bool) -> str:
    """What is left: "nothing" of the operation, "all" of it, or what is wrong."""
    try:
        if name in MAKING:
            found = _made(name, real, before)
        else:
            after = texts(given.study)
            if after[: len(before)] != before:
                return "LOST: events that were there before"
            found = "all" if len(after) > len(before) else "nothing"
            if texts(real.study) != after:
                return "LOST: another study under its real name"
        if done and found != "all":
            return "LOST: what was acknowledged"
        with Study.open(real.study if name not in MAKING else real.other) as study:
            study.tell(study.ask(worker="afterwards"), [0.0, 0.0, 0.0])
        left = {p.name for p in real.study.parent.iterdir()} - {"s.db", "new.db"}
        strange = [n for n in left if not n.lstrip(".").startswith("new.db.events.jsonl")]
        return f"LEFT: {strange}" if strange else found
    except (AssertionError, StudyError) as error:
        return f"BROKEN: {error}"


def _made(name: str, real: Place, before: Sequence[str]) -> str:
    """A file that was to be made: not there, empty or whole. It can be made in the next try."""
    content = real.study.read_bytes()
    found = "all"
    try:
        events = texts(real.other) if real.other.exists() else []
    except StudyFileError:
        assert real.other.stat().st_size == 0
        events = []
    if not events:
        found = "nothing"
        for left in (real.other, Path(f"{real.other}-journal")):
            left.unlink(missing_ok=True)
        OPERATIONS[name](real)
        events = texts(real.other)
    if name == "backup":
        assert events == before, "the copy is another study"
    if name == "recover":
        saved = Path(f"{real.other}.events.jsonl").read_text().splitlines()
        assert saved == [*before[:4], *before[5:]], "not every whole event was saved"
    assert real.study.read_bytes() == content, "the study was changed"
    return found


def run(every: int, *, link: bool) -> list[dict[str, Any]]:
    """All points of all operations; one record for each operation."""
    records = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        whole, damaged = prepare(folder)
        before = texts(whole)
        for operation, act in OPERATIONS.items():
            found: Counter[str] = Counter()
            point, done = 1, False
            while not done:
                disk = folder / "disk"
                shutil.rmtree(disk, ignore_errors=True)
                disk.mkdir()
                real = Place(disk / "s.db", disk / "new.db")
                shutil.copy(damaged if operation == "recover" else whole, real.study)
                given = _linked(folder / "links", real) if link else real
                done = in_child(act, given, point)
                found[outcome(operation, real, given, before, done)] += 1
                point += every
            records.append(
                {
                    "operation": operation,
                    "points": found.total(),
                    "nothing": found.pop("nothing", 0),
                    "all": found.pop("all", 0),
                    "wrong": dict(found),
                }
            )
    return records


def _linked(links: Path, real: Place) -> Place:
    """Other names: a link to the study, and a link to the folder of what is made."""
    shutil.rmtree(links, ignore_errors=True)
    links.mkdir()
    (links / "study.db").symlink_to(real.study)
    (links / "folder").symlink_to(real.other.parent)
    return Place(links / "study.db", links / "folder" / real.other.name)


def preload() -> None:
    """Start this program again with the killer before the C library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("a C compiler (cc) is needed")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "killer.c"), Path(folder, "killer.so")
        source.write_text(KILLER)
        build = [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", library, source, "-ldl"]
        subprocess.run(build, check=True)
        done = subprocess.run(
            [sys.executable, *sys.argv], env=os.environ | {"LD_PRELOAD": str(library)}, check=False
        )
    raise SystemExit(done.returncode)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1, help="only each n-th point")
    parser.add_argument("--link", action="store_true", help="through symbolic links")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not hasattr(ctypes.CDLL(None), "crash_before"):
        preload()
    records = run(options.every, link=options.link)
    if options.json:
        for record in records:
            print(json.dumps(record))
    else:
        print(f"{'operation':<10} {'points':>6} {'nothing':>8} {'all':>6} {'wrong':>6}")
        for record in records:
            *numbers, wrong = record.values()
            print("{:<10} {:>6} {:>8} {:>6}".format(*numbers), f"{sum(wrong.values()):>6}")
            for what, times in wrong.items():
                print(f"{times} x {what}")
    raise SystemExit(any(record["wrong"] for record in records))


if __name__ == "__main__":
    main()
