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

WAIT_SECONDS = 30.0  # for the other thread, which needs milliseconds


def interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def run(path: Path, interrupts: int) -> None:
    study = Study.create(path, nodes=["a", "b"], reward="b", policy="random", seed=1)
    stop, looks = threading.Event(), [0]

    def look() -> None:
        with Study.open(path) as other:
            while not stop.is_set():
                study.ledger()
                other.ask(worker="other")
                looks[0] += 1

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    chance, told, kept = random.Random(0), list[int](), list[BaseException]()
    for _ in range(interrupts):
        before = looks[0]
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0005, 0.01))
            while True:
                trial = study.ask()
                study.tell(trial, [1.0, 2.0])
                told.append(trial.number)
        except KeyboardInterrupt as error:
            kept = [error]  # as a shell does: nothing may depend on the end of its traceback
        deadline = time.monotonic() + WAIT_SECONDS
        while looks[0] == before:
            if time.monotonic() > deadline:
                sys.exit(f"another thread waits for ever after {kept!r}")
            time.sleep(0.0005)
    stop.set()
    thread.join()
    verdict = study.verify()
    assert verdict.ok, verdict
    states = [record.state for record in study.ledger().trials]
    assert all(states[number] == "told" for number in told)


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, interrupt)
    run(Path(sys.argv[1]), int(sys.argv[2]))
