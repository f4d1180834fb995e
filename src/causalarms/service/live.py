"""Server-sent events: every viewer hears at most four times a second how far the log is.

The id of a message is the number of the newest event, so that a browser that comes back says what
it has seen. A viewer has one slot, not a queue: a slow viewer misses numbers, never the newest one.
A viewer that does not read at all is disconnected, and resumes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Container, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from causalarms.service.operation import RefusedError

Found = TypeVar("Found")
SEND_SECONDS = 10.0  # until a viewer that does not read is disconnected
INTERVAL_SECONDS = 0.25  # between two messages to one viewer
PING_SECONDS = 15.0
RETRY_MILLISECONDS = 1000


class Hello(msgspec.Struct):
    """The first message. If `first_hash` differs from before, it is another study."""

    head: int
    as_of: int
    first_hash: str
    reset: bool  # the viewer has seen events that this log does not have


class Head(msgspec.Struct, frozen=True):
    head: int
    as_of: int  # of the views
    checked: int = 0  # of the model checks, which come last


class Viewers:
    def __init__(self, most: int) -> None:
        self.most = most
        self._waiting: dict[asyncio.Event, str] = {}  # -> hash of the token or session
        self._closing = False
        self.newest = Head(0, 0)

    def __len__(self) -> int:
        return len(self._waiting)

    def show(self, newest: Head) -> None:
        if newest != self.newest:
            self.newest = newest
            self._wake()

    def close(self) -> None:
        self._closing = True
        self._wake()

    def _wake(self) -> None:
        for event in self._waiting:
            event.set()

    def keep(self, credentials: Container[str]) -> None:
        """End the streams of all others."""
        for event, credential in list(self._waiting.items()):
            if credential not in credentials:
                del self._waiting[event]
                event.set()

    def check_room(self) -> None:
        if len(self) >= self.most:
            raise RefusedError(
                503, "too-many-viewers", "Too many viewers",
                f"{self.most} pages are open already; close some, or start the server with a "
                "larger --viewers", {"Retry-After": "10"},
            )  # fmt: skip

    async def messages(
        self, first_hash: str, last_seen: int | None, credential: str = ""
    ) -> AsyncIterator[bytes]:
        """For one viewer, until it goes away, its token is revoked or the service ends."""
        changed = asyncio.Event()
        self._waiting[changed] = credential
        try:
            newest = self.newest
            reset = last_seen is not None and last_seen > newest.head
            hello = Hello(newest.head, newest.as_of, first_hash, reset)
            yield f"retry: {RETRY_MILLISECONDS}\n".encode()
            yield message("reset" if reset else "hello", newest.head, hello)
            # `keep` takes a viewer out of `_waiting` when its token is revoked.
            while changed in self._waiting and not self._closing:
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), PING_SECONDS)
                if not changed.is_set():
                    # Proxies close connections that are silent for a minute or less.
                    yield b": ping\n\n"
                    continue
                if self._closing or changed not in self._waiting:
                    return
                # Cleared before reading, so that news during the send sets it again.
                changed.clear()
                newest = self.newest
                yield message("head", newest.head, newest)
                await asyncio.sleep(INTERVAL_SECONDS)
        finally:
            self._waiting.pop(changed, None)


def message(kind: str, number: int, data: msgspec.Struct) -> bytes:
    """
    >>> message("head", 812, Head(812, 805))
    b'id: 812\\nevent: head\\ndata: {"head":812,"as_of":805,"checked":0}\\n\\n'
    """
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, kind.encode(), msgspec.json.encode(data))


class EventStream(Response):
    """Sends until the viewer goes away, or does not read."""

    media_type = "text/event-stream"

    def __init__(self, messages: AsyncIterator[bytes]) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"})
        # A stream has no length; Starlette sets the one of an empty body.
        del self.headers["content-length"]
        self._messages = messages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        with suppress(TimeoutError):  # it does not read
            await while_connected(receive, self._send(send))

    async def _send(self, send: Send) -> None:
        messages = self._messages
        try:
            async for body in messages:
                part = {"type": "http.response.body", "body": body, "more_body": True}
                # A viewer that stops reading would keep its place and its buffer for ever.
                await asyncio.wait_for(send(part), SEND_SECONDS)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await messages.aclose()  # type: ignore[attr-defined]


async def while_connected(receive: Receive, work: Coroutine[Any, Any, Found]) -> Found:
    """The result of the work; if the client hangs up, the work is cancelled (ClientDisconnect).

    Call it after the body was read: `receive` also delivers the parts of the body.
    """
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_left(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # Also on success: the other task still waits and must not outlive the request.
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
    if working.cancelled():
        raise ClientDisconnect
    return working.result()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
