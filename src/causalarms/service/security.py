"""Checks of every request before its operation runs, and headers of every answer."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Scope, Send

from causalarms.service.operation import Answer, Call, RefusedError
from causalarms.service.records import Caller
from causalarms.service.tokens import SESSION_SECONDS

if TYPE_CHECKING:
    from causalarms.service.app import Service

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


async def begin_session(service: Service, call: Call) -> Answer | Response:
    token = service.tokens.find(call.body.token)
    if token is None:
        raise refuse_token("the token is not known to this study")
    # Writing the file may wait for the lock of a command: not on the event loop.
    session = await asyncio.to_thread(service.tokens.begin_session, token, service.cookie)
    answer = _answer(Caller(token.role, token.name, True))
    answer.set_cookie(
        service.cookie,
        session,
        max_age=SESSION_SECONDS,
        path=service.root_path + "/",
        # Not always True: a browser would drop the cookie on plain http.
        secure=_is_secure(call.request),
        httponly=True,
        samesite="strict",
    )
    return answer


async def end_session(service: Service, call: Call) -> Answer | Response:
    session = call.request.cookies.get(service.cookie, "")
    await asyncio.to_thread(service.tokens.end_session, session, service.cookie)
    answer = _answer(call.caller)
    answer.delete_cookie(
        service.cookie, path=service.root_path + "/", httponly=True, samesite="strict"
    )
    return answer


def _answer(caller: Caller) -> Response:
    return Response(msgspec.json.encode(caller), media_type="application/json")


def _is_secure(request: Request) -> bool:
    """Also if a proxy before the service speaks TLS: the browser says so."""
    origin = request.headers.get("origin", "")
    return request.url.scheme == "https" or origin.startswith("https://")
