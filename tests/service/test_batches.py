"""Requests that wait for one thread are served together, and none is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from causalarms.service.threads import MAX_BATCH_SIZE, Batches, NotYet, OneThread


class Clerk:
    """Odd numbers are refused, and everybody beside a negative one."""

    def __init__(self, *long: int) -> None:
        self.served: list[list[int]] = []
        self.long = set(long)  # served at the second turn

    def __call__(self, numbers: Sequence[int]) -> list[int | Exception | NotYet]:
        if min(numbers) < 0:
            raise ValueError(f"{len(numbers)} of them")
        self.served.append(list(numbers))
        first, self.long = self.long, self.long - set(numbers)
        return [NotYet() if n in first else KeyError(n) if n % 2 else 10 * n for n in numbers]


def outcomes(numbers: Sequence[int], clerk: Clerk, gone: Sequence[int] = ()) -> list[object]:
    """Of requests that all came while the thread was busy."""

    async def run() -> list[object]:
        thread, busy = OneThread("clerk"), threading.Event()
        thread.submit(lambda: busy.wait(10))
        batches = Batches(thread, clerk, lambda n: n % 100 or n)
        tasks = [asyncio.create_task(batches.run(n)) for n in numbers]
        await asyncio.sleep(0)
        for i in gone:
            tasks[i].cancel()
        await asyncio.sleep(0)
        busy.set()
        found = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
        thread.close(5.0)
        return list(found)

    with ThreadPoolExecutor(1) as apart:  # this thread may have a loop of its own
        return apart.submit(lambda: asyncio.run(run())).result()


def test_who_waits_is_served_together_and_refused_alone() -> None:
    clerk = Clerk()
    found = outcomes([2, 4, 5, 6], clerk)
    assert (found[0], found[1], found[3]) == (20, 40, 60)
    assert isinstance(found[2], KeyError)
    assert clerk.served == [[2, 4, 5, 6]]


def test_two_of_one_name_are_served_one_after_the_other() -> None:
    clerk = Clerk()
    assert outcomes([2, 4, 6, 104, 8], clerk) == [20, 40, 60, 1040, 80]
    assert clerk.served == [[2, 4, 6], [104, 8]]


def test_what_takes_long_goes_on_after_those_who_wait() -> None:
    clerk = Clerk(2, 6)
    assert outcomes([2, 4, 6, 104], clerk) == [20, 40, 60, 1040]
    assert clerk.served == [[2, 4, 6], [104, 2, 6]]


def test_an_error_of_all_is_that_of_one() -> None:
    clerk = Clerk()
    found = outcomes([2, 4, -6, 8], clerk)
    assert [found[0], found[1], found[3]] == [20, 40, 80]
    assert isinstance(found[2], ValueError)
    assert str(found[2]) == "1 of them"


def test_who_has_gone_is_not_served() -> None:
    clerk = Clerk()
    found = outcomes([2, 4, 6], clerk, gone=[1])
    assert isinstance(found[1], asyncio.CancelledError)
    assert clerk.served == [[2, 6]]


def test_a_transaction_has_an_end() -> None:
    clerk = Clerk()
    numbers = [1000 * n for n in range(MAX_BATCH_SIZE + 1)]
    assert outcomes(numbers, clerk) == [10 * n for n in numbers]
    assert list(map(len, clerk.served)) == [MAX_BATCH_SIZE, 1]
