"""Bits flipped, files cut, first bytes changed: is it noticed, and what does `recover` save?

python benchmarks/study_damage.py --rounds 1000 --flips 250
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from causalarms.errors import StudyError
from causalarms.study import Study
from causalarms.study.repair import recover, verify_file
from causalarms.study.sqlite import SqliteStore
from power_loss import Disk, outcome, record

Results = dict[int, Any]


def played(folder: Path, rounds: int) -> bytes:
    """A study of so many rounds, made in memory and stored at once."""
    study = Study.create(None, nodes=["a", "b", "c"], reward="c", policy="random", seed=1)
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
        verdict = verify_file(path)
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


def main() -> None:
    parser = argparse.ArgumentParser()
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


if __name__ == "__main__":
    main()
