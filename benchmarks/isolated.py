"""Cases run one after another in a process of their own, which may crash or hang."""

from __future__ import annotations

import multiprocessing as mp
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from causalarms.errors import CausalArmsError

Case = TypeVar("Case")

ANSWER, CRASH, HANG = "answer", "crash", "hang"
FIRST_SECONDS = 300.0


class _Worker:
    def __init__(self, work: Callable[[Any], None]) -> None:
        context = mp.get_context("fork")
        self.here, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(work, there), daemon=True)
        self.process.start()
        there.close()

    def end(self) -> None:
        self.process.kill()
        self.process.join()


def _serve(work: Callable[[Any], None], pipe: Connection) -> None:
    warnings.simplefilter("ignore")
    while True:
        case = pipe.recv()
        try:
            work(case)
        except CausalArmsError as error:
            pipe.send((f"refused: {type(error).__name__}", str(error)))
        except Exception as error:
            pipe.send((f"{CRASH}: {type(error).__name__}", str(error)))
        else:
            pipe.send((ANSWER, ""))


def outcomes(
    work: Callable[[Case], None], cases: Iterable[Case], *, seconds: float
) -> Iterator[tuple[Case, str, str]]:
    """Case, what became of it, and the message; a case that takes longer than `seconds` hangs.

    The first case of a process may have to compile and has more time.
    """
    worker, limit = _Worker(work), FIRST_SECONDS
    for case in cases:
        worker.here.send(case)
        outcome, message = HANG, f"no answer within {limit:g} s"
        try:
            if worker.here.poll(limit):
                outcome, message = worker.here.recv()
        except EOFError:
            worker.process.join()
            outcome, message = CRASH, f"exit code {worker.process.exitcode}"
        if outcome in (CRASH, HANG):
            worker.end()
            worker, limit = _Worker(work), FIRST_SECONDS
        else:
            limit = seconds
        yield case, outcome, message
    worker.end()
