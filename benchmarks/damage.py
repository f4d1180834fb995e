"""A study's file after power losses, flipped bits and cuts.

`python benchmarks/damage.py power-loss|bytes [options]`; each has --help.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from causalarms.errors import StudyError
from causalarms.study import Study
from causalarms.study.repair import recover, verify
from causalarms.study.sqlite import SqliteStore
from shared import run_part

SECTOR = 512
HEADER = struct.Struct("=cqqq")  # kind, file, offset or length, length of what follows

RECORDER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static int record = -1;
static char of[65536];  /* 1: a file in the folder, 2: the folder */
static void put(char kind, int64_t fd, int64_t at, const void *data, int64_t length) {
  char head[25]; head[0] = kind;
  memcpy(head + 1, &fd, 8); memcpy(head + 9, &at, 8); memcpy(head + 17, &length, 8);
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = dlsym(RTLD_NEXT, "write");
  real(record, head, 25); if (length) real(record, data, length);
}
static int ours(const char *path) {
  const char *folder = getenv("RECORD_FOLDER");
  if (!folder || !path) return 0;
  size_t n = strlen(folder);
  if (strncmp(path, folder, n)) return 0;
  if (record < 0) { static int (*real)(const char *, int, ...);
    real = dlsym(RTLD_NEXT, "open");
    record = real(getenv("RECORD_FILE"), O_WRONLY | O_CREAT | O_APPEND, 0644); }
  return path[n] == 0 ? 2 : path[n] == '/' ? 1 : 0;
}
static int opened(int fd, const char *path) {
  int kind = fd >= 0 && fd < 65536 ? ours(path) : 0;
  if (fd >= 0 && fd < 65536) of[fd] = kind;
  if (kind) put('o', fd, 0, path, strlen(path));
  return fd;
}
#define OPEN(name) int name(const char *path, int flags, ...) { \
  va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more); \
  static int (*real)(const char *, int, ...); if (!real) real = dlsym(RTLD_NEXT, #name); \
  return opened(real(path, flags, mode), path); }
OPEN(open)
OPEN(open64)
#define PWRITE(name) ssize_t name(int fd, const void *data, size_t n, off_t at) { \
  static ssize_t (*real)(int, const void *, size_t, off_t); \
  if (!real) real = dlsym(RTLD_NEXT, #name); \
  ssize_t done = real(fd, data, n, at); \
  if (done > 0 && of[fd] == 1) put('w', fd, at, data, done); return done; }
PWRITE(pwrite)
PWRITE(pwrite64)
ssize_t write(int fd, const void *data, size_t n) {
  static ssize_t (*real)(int, const void *, size_t); if (!real) real = dlsym(RTLD_NEXT, "write");
  if (fd >= 0 && fd < 65536 && of[fd] == 1) {
    off_t at = lseek(fd, 0, SEEK_CUR); ssize_t done = real(fd, data, n);
    if (done > 0) put('w', fd, at, data, done); return done; }
  return real(fd, data, n);
}
#define TRUNCATE(name) int name(int fd, off_t n) { \
  static int (*real)(int, off_t); if (!real) real = dlsym(RTLD_NEXT, #name); \
  int done = real(fd, n); if (!done && of[fd] == 1) put('t', fd, n, 0, 0); return done; }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)
#define SYNC(name) int name(int fd) { \
  static int (*real)(int); if (!real) real = dlsym(RTLD_NEXT, #name); \
  int done = real(fd); if (!done && of[fd]) put(of[fd] == 2 ? 'd' : 's', fd, 0, 0, 0); \
  return done; }
SYNC(fsync)
SYNC(fdatasync)
int unlink(const char *path) {
  static int (*real)(const char *); if (!real) real = dlsym(RTLD_NEXT, "unlink");
  int done = real(path); if (!done && ours(path) == 1) put('u', 0, 0, path, strlen(path));
  return done;
}
int link(const char *from, const char *to) {
  static int (*real)(const char *, const char *); if (!real) real = dlsym(RTLD_NEXT, "link");
  int done = real(from, to);
  if (!done && ours(to) == 1) { char both[8192]; size_t n = strlen(from), m = strlen(to);
    memcpy(both, from, n); both[n] = '\n'; memcpy(both + n + 1, to, m);
    put('l', 0, 0, both, n + m + 1); }
  return done;
}
int close(int fd) {
  static int (*real)(int); if (!real) real = dlsym(RTLD_NEXT, "close");
  if (fd >= 0 && fd < 65536) of[fd] = 0; return real(fd);
}
void acknowledge(long number) { if (record >= 0) put('a', 0, number, 0, 0); }
"""

WORKER = """
import ctypes, sys
from pathlib import Path
from causalarms import Study
acknowledge = ctypes.CDLL(None).acknowledge
acknowledge.argtypes = [ctypes.c_long]
path, rounds = Path(sys.argv[1]), int(sys.argv[2])
nodes = ["a", "b", "c"]
study = Study.create(path, nodes, "c", policy="random", seed=1, intervenable=nodes)
acknowledge(-1)
for number in range(rounds):
    trial = study.ask()
    study.tell(trial, [float(number), 1.0, 2.0])
    acknowledge(trial.number)
"""


class Step(NamedTuple):
    kind: str
    file: int
    at: int
    data: bytes


@dataclass
class File:
    """Contents that are sure, and what was written since the last sync."""

    synced: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  # None: cut to a length

    def after(self, chance: random.Random, how: str) -> bytes:
        content = bytearray(self.synced)
        for at, data in self.pending:
            if data is None:
                if how == "all" or (how == "some" and chance.random() < 0.5):
                    _cut(content, at)
                continue
            for start in range(0, len(data), SECTOR):
                if how == "all" or (how == "some" and chance.random() < 0.5):
                    _put(content, at + start, data[start : start + SECTOR])
        return bytes(content)

    def sync(self) -> None:
        self.synced = bytearray(self.after(random.Random(0), "all"))
        self.pending = []


class Disk:
    """A folder as the steps so far leave it, and as a power cut would."""

    def __init__(self) -> None:
        self.names: dict[str, File] = {}  # as the process sees them
        self.sure: dict[str, File] = {}  # as they are after a cut
        self.open: dict[int, File | None] = {}
        self.moves: list[tuple[str, File | None]] = []  # names not yet sure

    def take(self, step: Step) -> None:
        if step.kind == "o":
            name = Path(step.data.decode()).name
            if name not in self.names and step.data and not step.data.endswith(b"/"):
                self.names[name] = File()
                self.moves.append((name, self.names[name]))
            self.open[step.file] = self.names.get(name)
        elif step.kind in "wts":
            file = self.open.get(step.file)
            assert file is not None, step
            if step.kind == "s":
                file.sync()
            else:
                file.pending.append((step.at, step.data if step.kind == "w" else None))
        elif step.kind == "d":
            for name, target in self.moves:
                self._move(self.sure, name, target)
            self.moves = []
        elif step.kind == "u":
            name = Path(step.data.decode()).name
            self.names.pop(name, None)
            self.moves.append((name, None))
        elif step.kind == "l":
            source, target_name = (Path(p).name for p in step.data.decode().split("\n"))
            self.names[target_name] = self.names[source]
            self.moves.append((target_name, self.names[source]))

    def cut(self, chance: random.Random, how: str) -> dict[str, bytes]:
        names = dict(self.sure)
        for name, target in self.moves:
            if how == "all" or (how == "some" and chance.random() < 0.5):
                self._move(names, name, target)
        return {name: file.after(chance, how) for name, file in names.items()}

    @staticmethod
    def _move(names: dict[str, File], name: str, target: File | None) -> None:
        if target is None:
            names.pop(name, None)
        else:
            names[name] = target


def _put(content: bytearray, at: int, data: bytes) -> None:
    if len(content) < at:
        content.extend(bytes(at - len(content)))
    content[at : at + len(data)] = data


def _cut(content: bytearray, length: int) -> None:
    del content[length:]
    content.extend(bytes(length - len(content)))


def record(folder: Path, rounds: int) -> list[Step]:
    """Play a study under the recorder."""
    source, library, log = folder / "recorder.c", folder / "recorder.so", folder / "record"
    source.write_text(RECORDER)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("a C compiler (cc) is needed to record writes")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", library, source, "-ldl"], check=True
    )
    place = folder / "disk"
    place.mkdir()
    environment = os.environ | {
        "LD_PRELOAD": str(library), "RECORD_FOLDER": str(place), "RECORD_FILE": str(log),
    }  # fmt: skip
    subprocess.run(
        [sys.executable, "-c", WORKER, str(place / "s.db"), str(rounds)],
        check=True,
        env=environment,
    )
    return list(_steps(log.read_bytes()))


def _steps(content: bytes) -> Iterator[Step]:
    place = 0
    while place < len(content):
        kind, file, at, length = HEADER.unpack_from(content, place)
        place += HEADER.size
        yield Step(kind.decode(), file, at, content[place : place + length])
        place += length


def outcome(folder: Path, files: dict[str, bytes], acknowledged: int) -> str:
    """Open what a cut left; acknowledged is the last told trial, -1: created, -2: nothing yet."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    path = folder / "s.db"
    if not path.exists():
        return "ok" if acknowledged < -1 else "the file is gone"
    try:
        with Study.open(path) as study:
            told = {r.number for r in study.ledger().trials if r.state == "told"}
            if not study.verify().ok:
                return "verify fails"
            if not set(range(acknowledged + 1)) <= told:
                return "an acknowledged tell is lost"
            trial = study.ask(worker="after the cut")
            study.tell(trial, [0.0, 0.0, 0.0])
    except StudyError as error:
        if acknowledged < -1 and path.stat().st_size == 0:
            return "ok"  # creation was cut off
        return f"cannot be opened: {error}"[:70]
    return "ok"


def run(rounds: int, cuts: int, seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        steps = record(folder, rounds)
        wanted = len(steps) * 3 if cuts == 0 else cuts
        fraction = min(1.0, wanted / (3 * len(steps)))
        disk, acknowledged, tried = Disk(), -2, 0
        for step in steps:
            if step.kind == "a":
                acknowledged = step.at
            else:
                disk.take(step)
            for how in ("none", "all", "some"):
                if chance.random() < fraction:
                    left = disk.cut(chance, how)
                    found[outcome(folder / "after", left, acknowledged)] += 1
                    tried += 1
    return {"steps": len(steps), "cuts": tried, "acknowledged": acknowledged + 1} | {
        "outcomes": dict(found)
    }


def main_power_loss() -> None:
    """Power cuts: every write, sync, cut, link and removal of a study recorded, then lost again.

    python benchmarks/damage.py power-loss --rounds 30 --cuts 2000

    A small library put before the C library (LD_PRELOAD) writes down what the process asks the
    system to do, together with the moments in which a tell was acknowledged. A power cut is then a
    prefix of that record of which everything synced is kept and, of the rest, nothing, everything,
    or a random part in sectors of 512 bytes. Names in the folder count as written when the folder
    or the file that was made was synced. Each remainder is opened, verified and compared with what
    was acknowledged.
    """
    parser = argparse.ArgumentParser(
        description=main_power_loss.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--cuts", type=int, default=0, help="0: all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(json.dumps(run(options.rounds, options.cuts, options.seed)), flush=True)


Results = dict[int, Any]


def played(folder: Path, rounds: int) -> bytes:
    """A study of so many rounds, made in memory and stored at once."""
    nodes = ["a", "b", "c"]
    study = Study.create(None, nodes, "c", policy="random", seed=1, intervenable=nodes)
    chance = random.Random(7)
    for _ in range(rounds):
        study.tell(study.ask(), [chance.gauss(0, 1) for _ in range(3)])
    SqliteStore.create(folder / "whole.db", study.store.entries())
    return (folder / "whole.db").read_bytes()


def results(path: Path) -> Results:
    with Study.open(path, read_only=True) as study:
        return {r.number: r.values for r in study.ledger().trials if r.values is not None}


def judge(folder: Path, content: bytes, right: Results, events: int) -> tuple[str, int]:
    """What is said of a damaged file, and how many events are saved."""
    path, saved = folder / "damaged.db", folder / "saved.db"
    path.write_bytes(content)
    saved.unlink(missing_ok=True)
    try:
        verdict = verify(path)
        if verdict.ok:
            return ("harmless" if results(path) == right else "SILENT LOSS"), events
    except StudyError:
        pass
    try:
        rescue = recover(path, saved)
    except StudyError:
        return "found", 0
    kept = results(saved)
    if any(right[trial] != values for trial, values in kept.items()):
        return "WRONG VALUES", rescue.kept
    named = {*rescue.lost_trials, *rescue.maybe_told}
    behind = set(range(rescue.verdict.trials, len(right)))
    unnamed = set(right) - set(kept) - named - behind
    return ("GONE WITHOUT A WORD" if unnamed else "found"), rescue.kept


def table(name: str, cases: list[tuple[str, int]], events: int) -> dict[str, Any]:
    saved = sorted(kept for what, kept in cases if what == "found")
    return {
        "damage": name,
        "cases": len(cases),
        **{what: sum(w == what for w, _ in cases) for what in sorted({w for w, _ in cases})},
        "events": events,
        "saved_where_found": {"least": saved[0], "median": saved[len(saved) // 2]} if saved else {},
    }


def flipped(content: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(content)
    damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def journals(folder: Path, flips: int, chance: random.Random) -> dict[str, Any]:
    """Flips in the journal of a write that was cut off: what was acknowledged before is there."""
    disk, acknowledged, found = Disk(), -2, list[tuple[str, int]]()
    left: list[tuple[dict[str, bytes], int]] = []
    for step in record(folder, 8):
        if step.kind == "a":
            acknowledged = step.at
            continue
        disk.take(step)
        files = disk.cut(chance, "all")
        if acknowledged >= 0 and files.get("s.db-journal"):
            left.append((files, acknowledged))
    for _ in range(flips):
        files, known = chance.choice(left)
        damaged = files | {"s.db-journal": flipped(files["s.db-journal"], chance)}
        what = outcome(folder / "after", damaged, known)
        if what == "an acknowledged tell is lost":
            found.append(("SILENT LOSS", 0))
        else:
            found.append(("harmless" if what == "ok" else "found", 0))
    return table("one bit of a hot journal", found, 0)


def main_bytes() -> None:
    """Bits flipped, files cut, first bytes changed: is it noticed, and what does `recover` save?

    python benchmarks/damage.py bytes --rounds 1000 --flips 250
    """
    parser = argparse.ArgumentParser(
        description=main_bytes.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--flips", type=int, default=250)
    options = parser.parse_args()
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        content = played(folder, options.rounds)
        right, events = results(folder / "whole.db"), 2 * options.rounds + 1
        kinds: dict[str, list[bytes]] = {
            "one bit of the file": [flipped(content, chance) for _ in range(options.flips)],
            "cut to i/50 of its length": [content[: len(content) * i // 50] for i in range(1, 50)],
            "cut to 49/50": [content[: len(content) * 49 // 50]],
            "one of the first 16 bytes": [
                content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :] for i in range(16)
            ],
            "one page of zeros": [
                content[:at] + bytes(4096) + content[at + 4096 :]
                for at in range(0, len(content), 4096 * max(1, len(content) // 4096 // 60))
            ],
        }
        for kind, files in kinds.items():
            cases = [judge(folder, damaged, right, events) for damaged in files]
            print(json.dumps(table(kind, cases, events)), flush=True)
        print(json.dumps(journals(folder, options.flips, chance)), flush=True)


def main() -> None:
    run_part(__doc__, {"power-loss": main_power_loss, "bytes": main_bytes})


if __name__ == "__main__":
    main()
