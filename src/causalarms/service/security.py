"""What every request must be before anybody looks at it, and what every answer says to browsers."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import Message, Scope, Send

from causalarms.service.problems import RefusedError

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
    """The host of a Host header or of an origin's netloc, without port; None if it is none.

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
    """Against DNS rebinding: another site's name that leads here is refused."""
    given = headers.getlist("host")
    host = host_of(given[0]) if len(given) == 1 else None
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
    """Against other sites whose pages make a visitor's browser read, compute or write here."""
    for site in headers.getlist("sec-fetch-site"):
        if site not in ("same-origin", "none"):
            raise _cross_site(f"Sec-Fetch-Site is {site!r:.40}")


def check_unsafe(request: Request) -> None:
    """Against other sites that write in a visitor's name; not all browsers name the site."""
    headers = request.headers
    if "sec-fetch-site" not in headers:
        for origin in headers.getlist("origin"):
            if not _same_origin(origin, headers.get("host", "")):
                raise _cross_site(f"its Origin {origin!r:.100} is another host")
    if request.method == "DELETE" and headers.get("content-length", "0") == "0":
        return
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
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
    """Answers that say how a browser must treat them."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-cache")
        await send(message)

    return sending
