"""Bodies of requests: not too large, and not too slowly."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from causalarms.service.problems import RefusedError, too_large

PART_SECONDS = 10.0  # until the next part of a body
WHOLE_SECONDS = 60.0


async def read_body(request: Request, most: int) -> bytes:
    """RefusedError (413, 408) where it is too much or takes too long."""
    length = request.headers.get("content-length", "")
    if length.isascii() and length.isdecimal() and int(length) > most:
        raise too_large(most)
    parts: list[bytes] = []
    size = 0
    until = asyncio.get_running_loop().time() + WHOLE_SECONDS
    stream = request.stream()
    try:
        while True:
            left = until - asyncio.get_running_loop().time()
            part = await asyncio.wait_for(anext(stream), min(PART_SECONDS, max(left, 0.001)))
            size += len(part)
            if size > most:
                raise too_large(most)
            parts.append(part)
    except StopAsyncIteration:
        return b"".join(parts)
    except TimeoutError:
        raise RefusedError(
            408, "slow", "The body comes too slowly",
            f"the body was not complete within {WHOLE_SECONDS:.0f} seconds",
            {"Connection": "close"},
        ) from None  # fmt: skip
