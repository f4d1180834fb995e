"""A thread that does one thing after the other, for callers on the event loop."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

Found = TypeVar("Found")


class OneThread:
    """Ends with the process: what it does may take long, and stopping must not wait for it."""

    def __init__(self, name: str) -> None:
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._queue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, function: Callable[[], Found]) -> Future[Found]:
        future: Future[Found] = Future()
        self._queue.put((future, function))
        return future

    async def run(self, function: Callable[[], Found]) -> Found:
        return await asyncio.wrap_future(self.submit(function))

    def close(self, patience: float) -> None:
        """Finish what is under way, if that does not take too long."""
        self._queue.put(None)
        self._thread.join(patience)

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            future, function = task
            if not future.set_running_or_notify_cancel():
                continue  # whoever asked has gone before it began
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
