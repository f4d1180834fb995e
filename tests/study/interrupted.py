"""Ctrl+C at random instants of asking and telling, next to a thread that shares the study.

python tests/study/interrupted.py FILE INTERRUPTS
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from pathlib import Path

from causalarms import Study

path, interrupts = Path(sys.argv[1]), int(sys.argv[2])
study = Study.create(path, nodes=["a", "b"], reward="b", policy="random", seed=1)
stop, looks = threading.Event(), [0]


def look() -> None:
    with Study.open(path) as other:
        while not stop.is_set():
            study.ledger()
            other.ask(worker="other")
            looks[0] += 1


def interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


signal.signal(signal.SIGALRM, interrupt)
thread = threading.Thread(target=look, daemon=True)
thread.start()
chance, told = random.Random(0), list[int]()
kept: BaseException | None = None
for _ in range(interrupts):
    before = looks[0]
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0005, 0.01))
        while True:
            trial = study.ask()
            study.tell(trial, [1.0, 2.0])
            told.append(trial.number)
    except KeyboardInterrupt as error:
        kept = error  # as a shell does: nothing may depend on the end of its traceback
    deadline = time.monotonic() + 30
    while looks[0] == before:
        if time.monotonic() > deadline:
            sys.exit("another thread waits for ever")
        time.sleep(0.0005)
stop.set()
thread.join()
verdict = study.verify()
assert verdict.ok, verdict
states = [record.state for record in study.ledger().trials]
assert all(states[number] == "told" for number in told)
print(interrupts, "interrupts,", len(told), "told")
