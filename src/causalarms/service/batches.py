"""Requests that came while a thread was busy are served together, in one transaction.

Who writes waits for the disk. With several workers most requests come in meanwhile, and one wait is
enough for all of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from causalarms.service.one_thread import OneThread

Item = TypeVar("Item")
Found = TypeVar("Found")
MOST = 64  # requests in one transaction


class NotYet:
    """The item needs another turn, after those who have waited meanwhile."""


class Batches(Generic[Item, Found]):
    """`serve` answers several items at once: what was found, an error, or `NotYet`."""

    def __init__(
        self,
        thread: OneThread,
        serve: Callable[[Sequence[Item]], list[Found | Exception | NotYet]],
        name_of: Callable[[Item], object],  # two of one name are served one after the other
    ) -> None:
        self._thread, self._serve, self._name_of = thread, serve, name_of
        self._waiting: deque[tuple[Item, Future[Found]]] = deque()

    async def run(self, item: Item) -> Found:
        future: Future[Found] = Future()
        self._wait(item, future)
        return await asyncio.wrap_future(future)

    def _wait(self, item: Item, future: Future[Found]) -> None:
        self._waiting.append((item, future))
        self._thread.submit(self._next)  # as many turns as items: none is left over

    def _next(self) -> None:
        taken = self._take()
        if not taken:
            return
        found = self._outcomes([item for item, _ in taken])
        for (item, future), outcome in zip(taken, found, strict=True):
            if isinstance(outcome, NotYet):
                self._wait(item, future)
            elif isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    def _take(self) -> list[tuple[Item, Future[Found]]]:
        taken: list[tuple[Item, Future[Found]]] = []
        names: set[object] = set()
        while self._waiting and len(taken) < MOST:
            item, future = self._waiting[0]
            if self._name_of(item) in names:
                break
            self._waiting.popleft()
            if future.running() or future.set_running_or_notify_cancel():  # else nobody waits
                taken.append((item, future))
                names.add(self._name_of(item))
        return taken

    def _outcomes(self, items: Sequence[Item]) -> list[Found | Exception | NotYet]:
        """An error of all may be of one of them: each is tried alone then."""
        try:
            return self._serve(items)
        except Exception as error:
            if len(items) == 1:
                return [error]
        return [outcome for item in items for outcome in self._outcomes([item])]
