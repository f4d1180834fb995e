"""One request: which operation it names, what it must pass before that runs, and how it is refused.

Host and site are checked of every request; caller, address and body of those to the API. Routes and
the OpenAPI document are made of the same operations.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Scope, Send

from causalarms.service.records import Caller, Problem
from causalarms.service.tokens import Role
from causalarms.service.wire import STUDY_KINDS, URN, Kind

if TYPE_CHECKING:
    from causalarms.service.app import Service

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
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types lit-html"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LOOPBACK = ("localhost", "127.0.0.1", "::1")
ANY = ("0.0.0.0", "::", "")
NOBODY = Caller("read", "", True)
FORWARDED = ("forwarded", "via", "x-forwarded-", "x-real-ip")  # prefixes of header names
HOW = (
    "send it as `Authorization: Bearer TOKEN`, or open the page with #token=TOKEN at the end of "
    "its address; `causalarms serve-token` makes one"
)


class Parameter(NamedTuple):
    """A query parameter: a number within limits, one of some words, or a JSON object."""

    name: str
    about: str
    kind: Any  # a type that msgspec checks and describes
    default: Any = None

    @property
    def schema(self) -> dict[str, Any]:
        found = msgspec.json.schema(self.kind)
        # msgspec sorts words by their letters; as declared, states follow the life of a trial.
        return found | {"type": "string", "enum": get_args(self.kind)} if "enum" in found else found

    @property
    def is_object(self) -> bool:
        return get_origin(self.kind) is dict


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
    streams: bool = False

    @property
    def unsafe(self) -> bool:
        return self.method not in ("GET", "HEAD")

    def allows(self, caller: Caller) -> bool:
        return self.role is None or RANKS[caller.role] >= RANKS[self.role]


# -- refusals: RFC 9457 problems, chosen by the class of the error, never by its words -------------


class RefusedError(Exception):
    """Refused by the service itself, not by the study."""

    def __init__(
        self, status: int, slug: str, title: str, detail: str, headers: dict[str, str] | None = None
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
    if parameter.is_object:
        return _object(parameter, text)
    try:
        # Not strict: what an address holds is text.
        return msgspec.convert(text, parameter.kind, strict=False)
    except msgspec.ValidationError:
        schema = parameter.schema
        if "enum" in schema:
            allowed = f"there are {', '.join(schema['enum'])}"
        else:
            kind = "an integer" if schema["type"] == "integer" else "a number"
            allowed = f"it is {kind} from {schema['minimum']} to {schema['maximum']}"
        raise _wrong(f"{parameter.name} is {text!r:.80}; {allowed}") from None


def _object(parameter: Parameter, text: str) -> Any:
    try:
        return _decode(msgspec.json.Decoder(parameter.kind), text.encode())
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise _wrong(
            f"{parameter.name} is {text!r:.80}; it is a JSON object: {parameter.about}"
        ) from None


def _wrong(words: str) -> RefusedError:
    return RefusedError(422, "wrong-address", "The address is not what is expected", words)


# -- hosts and sites, and headers of every answer --------------------------------------------------


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("localhost"), is_loopback("127.0.0.5"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(host: str, more: Iterable[str] = ()) -> frozenset[str]:
    """Names under which the service may be addressed; with or without a port."""
    names = {*LOOPBACK, *more}
    if host not in ANY:
        names.add(host)
    if not is_loopback(host):
        names.add(socket.gethostname())
    return frozenset(name.strip("[]").lower().rstrip(".") for name in names)


def host_of(header: str) -> str | None:
    """The host of a Host header or of an origin's netloc, without port; None if it is malformed.

    >>> host_of("Example.org:80"), host_of("[::1]:8000"), host_of("a@b"), host_of("x:y")
    ('example.org', '::1', None, None)
    """
    if "@" in header or "/" in header or not header.isprintable():
        return None
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
    except ValueError:
        return None
    return None if parts.hostname is None else parts.hostname.rstrip(".")


def check_host(scope: Scope, headers: Headers, allowed: frozenset[str]) -> None:
    """Refuse unknown host names: a rebinding attack reaches this service under its own name."""
    given = headers.getlist("host")
    host = host_of(given[0]) if len(given) == 1 else None
    # The address that the client connected to is always known: no name was needed for it.
    own = scope.get("server") or ("",)
    if host is not None and (host in allowed or host == own[0]):
        return
    shown = given[0] if given else ""
    raise RefusedError(
        421, "host", "The service is not known by this name",
        f"the host {shown!r:.100} is not one of this service; if it should be, start it with "
        f"--allow-host {host or 'NAME'}",
    )  # fmt: skip


def check_site(headers: Headers) -> None:
    """Refuse requests that a browser makes for the page of another site."""
    for site in headers.getlist("sec-fetch-site"):
        if site not in ("same-origin", "none"):
            raise _cross_site(f"Sec-Fetch-Site is {site!r:.40}")


def check_unsafe(request: Request) -> None:
    """The same for browsers that send no Sec-Fetch-Site, and only JSON: a form cannot send it."""
    headers = request.headers
    # Browsers send Sec-Fetch-Site to https and localhost only; plain http on a LAN has Origin.
    if "sec-fetch-site" not in headers:
        for origin in headers.getlist("origin"):
            if not _same_origin(origin, headers.get("host", "")):
                raise _cross_site(f"its Origin {origin!r:.100} is another host")
    if request.method == "DELETE" and headers.get("content-length", "0") == "0":
        return
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    # Pages of other sites can send forms and text/plain without asking, but not JSON.
    if kind != "application/json":
        raise RefusedError(
            415, "no-json", "The body must be JSON",
            f"the content type is {kind or 'missing'!r:.80}: say Content-Type: application/json",
        )  # fmt: skip


def _same_origin(origin: str, host: str) -> bool:
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


def _cross_site(words: str) -> RefusedError:
    return RefusedError(
        403, "cross-site", "Another site may not use this",
        f"the request comes from another site ({words}); only this service's own page and "
        "programs may use its API",
    )  # fmt: skip


def with_headers(send: Send) -> Send:
    """Add the security headers to every answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            # "no-cache": keep it, but ask with the ETag every time.
            headers.setdefault("Cache-Control", "no-cache")
        await send(message)

    return sending


# -- who sends the request: the token of a header, or the cookie of a session of the page ----------


def caller_of(service: Service, request: Request) -> tuple[Caller, str]:
    """The caller and the hash that let it in.

    RefusedError (401) if a token is needed and none, or a wrong one, came.
    """
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    token = text.strip() if kind.lower() == "bearer" else ""
    session = request.cookies.get(service.cookie, "")
    access = service.tokens.look(token, session, service.cookie)
    if access.token is not None:
        return Caller(access.token.role, access.token.name, True), access.credential
    if access.is_open and service.options.why_token is None:
        # To the service, everybody who comes through a proxy comes from this machine.
        forwarded = [header for header in request.headers if header.startswith(FORWARDED)]
        if not forwarded:
            return Caller("operator", "", False), ""
        raise refuse_token(
            f"the request was forwarded by a proxy ({forwarded[0]}), so it may come from "
            "anywhere: make a token with `causalarms serve-token`"
        )
    if token:
        raise refuse_token("the token is not known to this study")
    raise refuse_token("the session has ended" if session else "this study needs a token")


def refuse_token(words: str) -> RefusedError:
    return RefusedError(
        401, "token", "A token is needed", f"{words}: {HOW}", {"WWW-Authenticate": "Bearer"}
    )
