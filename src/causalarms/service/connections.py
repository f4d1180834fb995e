"""How long a connection may wait, and who has to go when there are too many.

A connection that sends a request's first lines too slowly is closed. When all places are taken, a
new client gets the place of the connection that has been idle longest. If none is idle, the client
is told to come back later.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from causalarms.service import security
from causalarms.service.app import refusal
from causalarms.service.problems import RefusedError

HEADER_SECONDS = 10.0
REFUSED_CONNECTIONS = 20  # that may be open until they have heard why


class PatientProtocol(H11Protocol):
    """uvicorn's, with a limit on the time from the first byte of a request to its last header.

    `limit_concurrency` is the number of places. uvicorn itself answers in plain text once it is
    reached, and lets idle connections keep everybody else out.
    """

    _timer: asyncio.TimerHandle | None = None
    _idle_since = 0.0
    _refused = _evicted = False

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        assert self.limit_concurrency is not None
        self._places, self.limit_concurrency = self.limit_concurrency, None
        self._admitted_app, self.app = self.app, self._serve

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._refused = not self._find_place()
        self._begin()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._end()
        elif self._timer is None and self.conn.trailing_data[0]:
            self._begin()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _find_place(self) -> bool:
        """Whether there is one, or somebody idle has to give theirs up."""
        ours = [c for c in self.connections if isinstance(c, PatientProtocol)]  # all are
        others = [c for c in ours if c is not self and not c._evicted]
        admitted = [c for c in others if not c._refused]
        if len(admitted) < self._places or _evict_one(admitted):
            return True
        if len(others) - len(admitted) >= REFUSED_CONNECTIONS:
            _evict_one([c for c in others if c._refused])
        return False

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        # tasks of clients that have gone are not connections any more
        if self._refused or len(self.tasks) > self._places:
            await _full(self._places)(scope, receive, security.with_headers(send))
        else:
            await self._admitted_app(scope, receive, send)

    def _begin(self) -> None:
        self._timer = self.loop.call_later(HEADER_SECONDS, self._too_slow)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()


def _evict_one(connections: list[PatientProtocol]) -> bool:
    """Of those with no request under way the oldest; those who still have to read come last."""
    idle = [c for c in connections if c.cycle is None or c.cycle.response_complete]
    if not idle:
        return False
    chosen = min(idle, key=lambda c: (c.transport.get_write_buffer_size() > 0, c._idle_since))
    chosen._evicted = True
    chosen.transport.abort()  # closing it would wait until the client has read everything
    return True


def _full(places: int) -> Response:
    return refusal(
        RefusedError(
            503, "too-many-connections", "Too many connections",
            f"all {places} connections of the service are in use: try again in a few seconds",
            {"Retry-After": "5", "Connection": "close"},
        )
    )  # fmt: skip
