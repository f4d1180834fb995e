"""The log as it grows: one thread reads what any process wrote, and viewers hear how far it is.

Trials, events and counts are answered from the follower's snapshots, so no request waits for
learning. The follower folds the log itself instead of reading the writing study's ledger: that one
is locked for as long as a write waits for another process, and requests that read must go on
meanwhile.

Server-sent events tell every viewer at most four times a second how far the log is. The id of a
message is the number of the newest event, so that a browser that comes back says what it has seen.
A viewer has one slot, not a queue: a slow viewer misses numbers, never the newest one. A viewer
that does not read at all is disconnected, and resumes.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Container, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from causalarms.errors import StudyError
from causalarms.sem.factor import Level
from causalarms.service.request import RefusedError
from causalarms.service.threads import OneThread
from causalarms.study import log as kinds
from causalarms.study.ledger import Ledger, Record
from causalarms.study.log import Event, Log
from causalarms.study.settings import Settings
from causalarms.study.sqlite import SqliteStore
from causalarms.study.store import Entry

POLL_SECONDS = 0.1  # until what other processes wrote is noticed
EVENTS_THAT_CHANGE_THE_BELIEF = (
    kinds.CREATED, kinds.TOLD, kinds.IMPORTED, kinds.CORRECTED, kinds.CHANGED, kinds.LOST,
    kinds.RECOVERED, kinds.FAILED,
)  # fmt: skip
Found = TypeVar("Found")
SEND_SECONDS = 10.0  # until a viewer that does not read is disconnected
INTERVAL_SECONDS = 0.25  # between two messages to one viewer
PING_SECONDS = 15.0
RETRY_MILLISECONDS = 1000


class Correction(NamedTuple):
    event: Event
    before: Record  # the trial as it was
    levels: dict[str, Level]  # that were executed, as they were told


Corrections = dict[int, tuple[Correction, ...]]  # by trial


@dataclass(frozen=True)
class LogSnapshot:
    """Everything that the log says up to event `number`; later events do not change it."""

    number: int
    hash: str
    ledger: Ledger
    first: Event
    first_hash: str
    learned: int  # newest event that changes the belief
    corrections: Corrections = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        return self.ledger.settings

    @cached_property
    def counts(self) -> dict[str, int]:
        return self.ledger.counts()

    @cached_property
    def notes_of(self) -> Counter[int | None]:
        return Counter(note.trial for note in self.ledger.notes)


class LogFollower:
    """`snapshot` is the newest; `announce` is called in the follower's thread when it is new."""

    def __init__(self, path: Path) -> None:
        self.store = SqliteStore(path, read_only=True)
        self.trouble: StudyError | None = None  # why the log cannot be read any more
        self._ledger = Ledger()
        self._corrections: Corrections = {}
        self._learned = 0
        self._first: Event | None = None
        self._log = Log(self.store, self._apply)
        self._log.catch_up()
        # The hash of event 1 names the study: a client that finds another one forgets what it has.
        self._first_hash = self.store.entries(0, 1)[0].hash.hex()
        self.snapshot = self._snapshot_now()
        self._announce: Callable[[], None] = lambda: None
        self._wake, self._stop = threading.Event(), False
        self._reading = OneThread("log reader")
        self._thread = threading.Thread(target=self._follow, name="log follower", daemon=True)

    def start(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._thread.start()

    def wake(self) -> None:
        """Look now: this process has just written something."""
        self._wake.set()

    async def entries(self, after: int, limit: int) -> list[Entry]:
        """Events as they are stored, read in a thread that does nothing else."""
        return await self._reading.run(lambda: self.store.entries(after, limit))

    def close(self) -> None:
        self._stop = True
        self.wake()
        self._reading.close(0.0)
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _follow(self) -> None:
        while not self._stop:
            # Other processes cannot wake this thread, so it also looks by itself.
            self._wake.wait(POLL_SECONDS)
            self._wake.clear()
            try:
                self._log.catch_up()
                self.trouble = None
            except StudyError as error:
                # Not fatal: the file may come back. Until then requests are refused.
                self.trouble = error
                continue
            if self._log.number != self.snapshot.number:
                self.snapshot = self._snapshot_now()
                self._announce()

    def _snapshot_now(self) -> LogSnapshot:
        assert self._first is not None
        return LogSnapshot(
            self._log.number,
            self._log.hash.hex(),
            # Handlers read it while this thread applies the next events, so it must not change.
            self._ledger.copy(),
            self._first,
            self._first_hash,
            self._learned,
            self._corrections.copy(),
        )

    def _apply(self, event: Event) -> None:
        if event.kind == kinds.CORRECTED:
            number = event.data["trial"]
            # The ledger only keeps the corrected trial; the page also shows what it was.
            before = self._ledger.trial(number)
            self._ledger.apply(event)
            known = self._corrections.get(number, ())
            levels = self._ledger.settings.named.levels(before.intervention)
            self._corrections[number] = (*known, Correction(event, before, levels))
        else:
            self._ledger.apply(event)
        if event.kind in EVENTS_THAT_CHANGE_THE_BELIEF:
            self._learned = event.number
        if self._first is None:
            self._first = event


# -- viewers ---------------------------------------------------------------------------------------


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
