"""Work that many may ask for at once: done once, by one thread, and only so much of it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

from causalarms.service.one_thread import OneThread
from causalarms.service.problems import RefusedError

Found = TypeVar("Found")


class _UnderWay(Generic[Found]):
    def __init__(self, future: Future[Found]) -> None:
        self.future = future
        self.waiting = 0  # requests


class SharedWork(Generic[Found]):
    """All methods are called on the event loop.

    Requests with equal keys share one piece of work. What is queued is taken back when the last of
    them has gone; what has begun is finished. The newest `kept` answers are kept.
    """

    def __init__(self, thread: OneThread, what: str, most_waiting: int, kept: int = 0) -> None:
        self._thread, self._what = thread, what
        self._most_waiting, self._most_kept = most_waiting, kept
        self._under_way: dict[Hashable, _UnderWay[Found]] = {}
        self._kept: dict[Hashable, Found] = {}  # oldest first

    async def run(self, key: Hashable, function: Callable[[], Found]) -> Found:
        """RefusedError (503) if too much waits already."""
        if key in self._kept:
            return self._keep(key, self._kept.pop(key))
        work = self._under_way.get(key) or self._begin(key, function)
        work.waiting += 1
        try:
            return await asyncio.shield(asyncio.wrap_future(work.future))
        finally:
            work.waiting -= 1
            if not work.waiting and work.future.cancel():  # False if it has begun
                self._end(key, work)

    def _begin(self, key: Hashable, function: Callable[[], Found]) -> _UnderWay[Found]:
        if len(self._under_way) > self._most_waiting:  # one of them is being done
            raise RefusedError(
                503, "too-much-work", "Too much is being computed",
                f"{len(self._under_way)} {self._what} are being computed or wait for it, and no "
                "more may wait: try again in a few seconds", {"Retry-After": "5"},
            )  # fmt: skip
        loop = asyncio.get_running_loop()
        work = self._under_way[key] = _UnderWay(self._thread.submit(function))

        def done(future: Future[Found]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(self._end, key, work)

        work.future.add_done_callback(done)
        return work

    def _end(self, key: Hashable, work: _UnderWay[Found]) -> None:
        if self._under_way.get(key) is not work:
            return
        del self._under_way[key]
        if not work.future.cancelled() and work.future.exception() is None:
            self._keep(key, work.future.result())

    def _keep(self, key: Hashable, found: Found) -> Found:
        self._kept[key] = found
        while len(self._kept) > self._most_kept:
            del self._kept[next(iter(self._kept))]
        return found
