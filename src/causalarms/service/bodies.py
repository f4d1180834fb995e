"""Bodies of requests: not too large, not too slowly, and no name twice."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
from starlette.requests import Request

from causalarms.service.problems import RefusedError, too_large

PART_SECONDS = 10.0  # until the next part of a body
WHOLE_SECONDS = 60.0
LARGE_BYTES = 2**20  # more is decoded in a thread, so that others need not wait


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


async def decode_body(decoder: msgspec.json.Decoder[Any], text: bytes) -> Any:
    if len(text) <= LARGE_BYTES:
        return _decode(decoder, text)
    return await asyncio.to_thread(_decode, decoder, text)


def _decode(decoder: msgspec.json.Decoder[Any], text: bytes) -> Any:
    """msgspec silently takes the last of several values of one name, so names are read again.

    Numbers stay text there: nobody needs them, and it takes half the time.
    """
    found = decoder.decode(text)
    json.loads(text, object_pairs_hook=_refuse_repeated, parse_int=str, parse_float=str)
    return found


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) == len(pairs):
        return
    names = [name for name, _ in pairs]
    repeated = next(name for name in names if names.count(name) > 1)
    raise RefusedError(
        400, "repeated-name", "A name is given twice",
        f"{repeated!r:.100} is given {names.count(repeated)} times in one object of the body: "
        "give it once",
    )  # fmt: skip
