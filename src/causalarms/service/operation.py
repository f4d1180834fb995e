"""One operation of the API: what it takes, answers and refuses. Routes and OpenAPI come from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from causalarms.service.records import Caller
from causalarms.service.tokens import Role

if TYPE_CHECKING:
    from causalarms.service.app import Service
import asyncio
import json
import math

import msgspec

from causalarms.service.records import Problem
from causalarms.service.wire import STUDY_KINDS, URN, Kind

MB = 2**20
PART_SECONDS = 10.0  # until the next part of a body
WHOLE_SECONDS = 60.0
LARGE_BYTES = 2**20  # larger bodies are decoded in a thread: the event loop must not stop
KINDS: dict[type[Exception], Kind] = STUDY_KINDS | {
    RecursionError: Kind(400, "no-json", "The body is not JSON"),
    msgspec.ValidationError: Kind(422, "wrong-body", "The body is not what is expected"),
    msgspec.DecodeError: Kind(400, "no-json", "The body is not JSON"),
    UnicodeDecodeError: Kind(400, "no-json", "The body is not JSON"),
}
RANKS: dict[Role, int] = {"read": 0, "worker": 1, "operator": 2}


class Parameter(NamedTuple):
    """A query parameter: a number, or one of some words."""

    name: str
    about: str
    kind: type = int
    least: float | None = 0
    most: float | None = None
    default: Any = None
    words: tuple[str, ...] = ()


class Call(NamedTuple):
    """A request that passed all checks."""

    caller: Caller
    credential: str  # hash of the token or session that let the caller in
    number: int  # in the path, of a trial or an alarm
    query: Mapping[str, Any]
    body: Any
    key: str | None
    request: Request


class Answer(NamedTuple):
    body: Struct
    status: int = 200
    unmarked: tuple[str, ...] = ()  # fields that do not change the ETag


Handler = Callable[["Service", Call], Awaitable[Answer | Response]]


@dataclass(frozen=True)
class Operation:
    method: str
    path: str  # below /api/v1
    summary: str
    handler: Handler
    answers: dict[int, type[Struct]]
    takes: type[Struct] | None = None
    query: tuple[Parameter, ...] = ()
    role: Role | None = "read"  # the lowest that is allowed; None: no token needed
    needs_key: bool = False
    refusals: tuple[int, ...] = ()
    most_bytes: int = MB
    streams: bool = field(default=False)

    @property
    def unsafe(self) -> bool:
        return self.method not in ("GET", "HEAD")

    def allows(self, caller: Caller) -> bool:
        return self.role is None or RANKS[caller.role] >= RANKS[self.role]


# -- refusals: RFC 9457 problems, chosen by the class of the error, never by its words -------------


class RefusedError(Exception):
    """Refused by the service itself, not by the study."""

    def __init__(
        self,
        status: int,
        slug: str,
        title: str,
        detail: str,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem(URN + slug, title, status, detail)
        self.headers = headers or {}


def problem_of(error: Exception) -> Problem | None:
    """None for an unexpected error."""
    if isinstance(error, RefusedError):
        return error.problem
    # The nearest ancestor decides, so that subclasses need no entry of their own.
    for kind in type(error).__mro__:
        if kind in KINDS:
            status, slug, title = KINDS[kind]
            return Problem(
                URN + slug,
                title,
                status,
                _sentence(error),
                getattr(error, "trial", None),
                getattr(error, "node", None),
                getattr(error, "state", None) or None,
                getattr(error, "alarm", None),
            )
    return None


def _sentence(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the body is nested too deeply"
    return str(error)


def too_large(most: int) -> RefusedError:
    size = f"{most / 2**20:.0f} MiB"
    return RefusedError(
        413, "too-large", "The body is too large", f"a body may have at most {size}"
    )


# -- bodies ----------------------------------------------------------------------------------------


async def read_body(request: Request, most: int) -> bytes:
    """RefusedError if it is too large (413) or comes too slowly (408)."""
    # Refuse by the header if possible: nothing of a large body is read then.
    length = request.headers.get("content-length", "")
    if length.isascii() and length.isdecimal() and int(length) > most:
        raise too_large(most)
    parts: list[bytes] = []
    size = 0
    until = asyncio.get_running_loop().time() + WHOLE_SECONDS
    stream = request.stream()
    try:
        while True:
            # Two limits: a byte every nine seconds must not hold a place for hours.
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
    # Handing over to a thread costs more than decoding a small body.
    if len(text) <= LARGE_BYTES:
        return _decode(decoder, text)
    return await asyncio.to_thread(_decode, decoder, text)


def _decode(decoder: msgspec.json.Decoder[Any], text: bytes) -> Any:
    """Decode, and refuse repeated names: msgspec silently takes the last of them.

    The second reading leaves numbers as text, which takes half the time.
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


# -- numbers and words in addresses ----------------------------------------------------------------


def path_number(parameters: Mapping[str, Any]) -> int:
    """The number of a trial or alarm; -1 if the path has none."""
    if "number" not in parameters:
        return -1
    text = str(parameters["number"])
    # Below 2^53: clients in JavaScript have no larger integers.
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise _wrong(f"{text!r:.80} is not the number of a trial or an alarm")
    return int(text)


def read_query(wanted: tuple[Parameter, ...], request: Request) -> dict[str, Any]:
    given = request.query_params
    found: dict[str, Any] = {}
    for parameter in wanted:
        texts = given.getlist(parameter.name)
        if len(texts) > 1:
            raise _wrong(f"{parameter.name} is given {len(texts)} times")
        found[parameter.name] = _value(parameter, texts[0]) if texts else parameter.default
    return found


def _value(parameter: Parameter, text: str) -> Any:
    name, least, most = parameter.name, parameter.least, parameter.most
    if parameter.kind is str:
        if text not in parameter.words:
            raise _wrong(f"{name} is {text!r:.80}; there are {', '.join(parameter.words)}")
        return text
    try:
        number = parameter.kind(text)
        # Python's int() and float() also read digits of other scripts and `1_000`.
        wrong = not text.isascii() or "_" in text or not math.isfinite(number)
    except (ValueError, OverflowError):
        wrong, number = True, 0
    if wrong or (least is not None and number < least) or (most is not None and number > most):
        limits = f"from {least}" if most is None else f"from {least} to {most}"
        kind = "an integer" if parameter.kind is int else "a number"
        raise _wrong(f"{name} is {text!r:.80}; it is {kind} {limits}")
    return number


def _wrong(words: str) -> RefusedError:
    return RefusedError(422, "wrong-address", "The address is not what is expected", words)
