"""Run the service on a port until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import shlex
import socket
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from causalarms.errors import StudyError
from causalarms.service.app import Options, Service, make_app, refusal
from causalarms.service.request import RefusedError, is_loopback, with_headers
from causalarms.service.threads import Waiting
from causalarms.service.tokens import TokenFile, real_path

HEADER_SECONDS = 10.0  # from the first byte of a request to its last header
REFUSED_CONNECTIONS = 20  # kept open until they have read why
GRACE_SECONDS = 2  # for requests under way when the service ends
MAX_CONNECTIONS = 1000
OTHER_FILES = 64  # open files that are not connections, and refused connections


class Server(uvicorn.Server):
    """Ends the event streams of viewers on shutdown, which would otherwise never end."""

    service: Service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn waits for running responses, and an event stream runs for ever.
        self.service.viewers.close()
        await super().shutdown(sockets)


def listen(options: Options) -> socket.socket:
    """The port, bound but not listening yet."""
    try:
        found = socket.getaddrinfo(
            options.host or None, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise StudyError(f"the host {options.host!r} is not known: {error.strerror}") from error
    family, kind, protocol, _, address = found[0]
    taken = socket.socket(family, kind, protocol)
    try:
        # A restarted service takes its port at once: old connections may linger.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
    except OSError as error:
        taken.close()
        raise StudyError(
            f"port {options.port} of {options.host} cannot be used ({error.strerror}): choose "
            "another with --port"
        ) from error
    return taken


def address_of(taken: socket.socket, options: Options) -> str:
    """The address that a person opens."""
    port = taken.getsockname()[1]
    host = options.host if options.host not in ("", "0.0.0.0", "::") else socket.gethostname()
    scheme = "http" if options.tls_cert is None else "https"
    shown = f"[{host}]" if ":" in host else host
    root = options.root_path.strip("/")
    return f"{scheme}://{shown}:{port}/" + (f"{root}/" if root else "")


def check_options(options: Options, study: Path) -> str | None:
    """A warning for the terminal; StudyError if the service must not start like this."""
    if (options.tls_cert is None) != (options.tls_key is None):
        raise StudyError("--tls-cert and --tls-key go together")
    for file in (options.tls_cert, options.tls_key):
        if file is not None and not file.is_file():
            raise StudyError(f"there is no file {file}")
    if options.why_token is not None and not TokenFile(study).all():
        raise StudyError(
            f"{options.why_token}, so a token is needed: "
            f"causalarms serve-token {shlex.quote(str(study))} operator NAME"
        )
    if not is_loopback(options.host) and options.tls_cert is None:
        return (
            "tokens and results travel unencrypted: give --tls-cert and --tls-key, or put a "
            "reverse proxy with TLS before it"
        )
    return None


def most_connections() -> int:
    """As many as the operating system allows: past that, nobody could even be refused."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MAX_CONNECTIONS
    # Every connection is an open file; accepting fails without a word when there are no more.
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(1, min(MAX_CONNECTIONS, files - OTHER_FILES))


def make_server(service: Service, options: Options, connections: int | None = None) -> Server:
    """`connections`: how many may be open at once."""
    config = uvicorn.Config(
        make_app(service),
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        limit_concurrency=connections or most_connections(),
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
    )
    try:
        config.load()
    except (OSError, ValueError) as error:
        raise StudyError(f"the TLS certificate or key cannot be used: {error}") from error
    server = Server(config)
    server.service = service
    return server


def serve(
    path: Path,
    options: Options,
    say: Callable[[str], None],
    begin: Callable[[str], None] = lambda address: None,
    waiting: Waiting = nullcontext,
) -> None:
    """Until SIGINT or SIGTERM; what was answered is on the disk. `begin` is given the address.

    `waiting` is given words about what takes long, and entered while it does.
    """
    taken = listen(options)
    try:
        study = real_path(path)
        if not study.is_file():
            raise StudyError(f"there is no study {path}")
        # Before the model is compiled, which takes half a minute.
        warning = check_options(options, study)
        if warning is not None:
            say(f"warning: {warning}")
        service = Service(study, options, waiting)
        server = make_server(service, options)

        async def run() -> None:
            task = asyncio.create_task(server.serve([taken]))
            # uvicorn has no callback for "the port is open".
            while not server.started and not task.done():
                await asyncio.sleep(0.01)
            if server.started:
                address = address_of(taken, options)
                say(f"{path.name} is served at {address} (Ctrl+C ends it)")
                begin(address)
            await task

        asyncio.run(run())
    finally:
        taken.close()


# -- connections: how long one may wait, and which one is closed if there are too many -------------


class PatientProtocol(H11Protocol):
    """uvicorn's protocol, with a time limit for the header of a request and with places.

    A client that sends its header too slowly is disconnected. If all places (`limit_concurrency`)
    are taken, a new client gets the place of the connection that has been idle longest. If none is
    idle, the client is told to come back later. uvicorn itself would answer in plain text, and let
    idle connections keep everybody else out.
    """

    _timer: asyncio.TimerHandle | None = None
    _idle_since = 0.0
    _refused = _evicted = False

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        assert self.limit_concurrency is not None
        # None switches off uvicorn's own limit, which this class replaces.
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
        # The first bytes of the next request on a connection that was kept alive.
        elif self._timer is None and self.conn.trailing_data[0]:
            self._begin()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _find_place(self) -> bool:
        """Whether there is a free place, or an idle connection could be closed for it."""
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
            await _full(self._places)(scope, receive, with_headers(send))
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
    """The longest idle one; those with an answer still to be read come last."""
    idle = [c for c in connections if c.cycle is None or c.cycle.response_complete]
    if not idle:
        return False
    # An answer in the buffer is still being read, so its client is the last to lose its place.
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
