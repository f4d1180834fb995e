"""Run the service on a port until it is told to end."""

from __future__ import annotations

import asyncio
import shlex
import socket
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import FrameType

import uvicorn

from causalarms.errors import StudyError
from causalarms.service.app import make_app
from causalarms.service.connections import PatientProtocol
from causalarms.service.desk import Waiting
from causalarms.service.security import is_loopback
from causalarms.service.service import Options, Service

GRACE_SECONDS = 2  # for requests under way when the service ends
MOST_CONNECTIONS = 1000
OTHER_FILES = 64  # that the process has open, and connections that are being refused


class Server(uvicorn.Server):
    """Lets viewers go when it is told to end."""

    service: Service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.service.viewers.close()
        await super().shutdown(sockets)


def listen(options: Options) -> socket.socket:
    """The port, taken but not open yet."""
    try:
        found = socket.getaddrinfo(
            options.host or None, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise StudyError(f"the host {options.host!r} is not known: {error.strerror}") from error
    family, kind, protocol, _, address = found[0]
    taken = socket.socket(family, kind, protocol)
    try:
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
    """What a person opens."""
    port = taken.getsockname()[1]
    host = options.host if options.host not in ("", "0.0.0.0", "::") else socket.gethostname()
    scheme = "http" if options.tls_cert is None else "https"
    shown = f"[{host}]" if ":" in host else host
    root = options.root_path.strip("/")
    return f"{scheme}://{shown}:{port}/" + (f"{root}/" if root else "")


def check_options(options: Options, service: Service) -> str | None:
    """A warning for the terminal; StudyError where the service must not start like this."""
    if (options.tls_cert is None) != (options.tls_key is None):
        raise StudyError("--tls-cert and --tls-key go together")
    for file in (options.tls_cert, options.tls_key):
        if file is not None and not file.is_file():
            raise StudyError(f"there is no file {file}")
    if options.why_token is not None and not service.tokens.all():
        raise StudyError(
            f"{options.why_token}, so a token is needed: "
            f"causalarms serve-token {shlex.quote(str(service.path))} operator NAME"
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
        return MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(1, min(MOST_CONNECTIONS, files - OTHER_FILES))


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
        service = Service(path, options, waiting)
        warning = check_options(options, service)
        if warning is not None:
            say(f"warning: {warning}")
        server = make_server(service, options)

        async def run() -> None:
            task = asyncio.create_task(server.serve([taken]))
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
