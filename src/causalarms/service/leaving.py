"""Clients that hang up: nothing is begun for those who will not hear the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

Found = TypeVar("Found")


async def while_connected(receive: Receive, work: Coroutine[Any, Any, Found]) -> Found:
    """What the work gives; ClientDisconnect, and the work is cancelled, if the client goes first.

    The body of the request must have been read: its parts come by the same way as the news that the
    client has gone.
    """
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_left(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
    if working.cancelled():
        raise ClientDisconnect
    return working.result()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
