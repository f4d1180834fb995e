"""The service of one study file, and the HTTP application around it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from causalarms.errors import CausalArmsError, StudyBusyError, TokenFileError
from causalarms.service import records
from causalarms.service.api import OPERATIONS, PREFIX, document
from causalarms.service.live import Head, LogFollower, LogSnapshot, Viewers
from causalarms.service.records import Problem
from causalarms.service.request import (
    NOBODY,
    Answer,
    Call,
    Operation,
    RefusedError,
    allowed_hosts,
    caller_of,
    check_host,
    check_site,
    check_unsafe,
    decode_body,
    is_loopback,
    path_number,
    problem_of,
    read_body,
    read_query,
    with_headers,
)
from causalarms.service.threads import ServedStudy, StudyThreads, Waiting
from causalarms.service.tokens import TokenFile, real_path
from causalarms.service.wire import URN
from causalarms.study.records import Alarm

log = logging.getLogger("causalarms.service")
MIN_IDLE_SECONDS = 0.5  # between two computations of the views
REACH_SECONDS = 10.0  # until what was written must be readable
RETRY_SECONDS = 2.0  # after views could not be computed
CHECKS_SECONDS = 10.0  # between two model checks while results come in
TOKEN_CHECK_SECONDS = 1.0  # until the streams of a revoked token end
IDLE_PER_WORK_SECOND = 4.0  # keep 80 % of the processor free for asking
ENCODER = msgspec.json.Encoder()
KEY_HEADER = "idempotency-key"
Endpoint = Callable[[Request], Awaitable[Response]]
PAGE = Path(__file__).parent / "page"
INDEX = "index.html"
CONTENT_TYPES = {  # our own: Windows may call .js text/plain
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Options:
    host: str = "127.0.0.1"
    port: int = 8000
    allow_hosts: tuple[str, ...] = ()
    root_path: str = ""  # where a proxy shows the service, without a slash at the end
    most_viewers: int = 200
    tls_cert: Path | None = None
    tls_key: Path | None = None

    @property
    def why_token(self) -> str | None:
        """Why a token is needed even if the study has none; None if it is not."""
        if not is_loopback(self.host):
            return f"{self.host} can be reached from other machines"
        given = "--root-path" if self.root_path.strip("/") else "--allow-host"
        if self.root_path.strip("/") or self.allow_hosts:
            return f"{given} says that requests of other machines come through a proxy"
        return None


class Service:
    """Opening it compiles and learns; `running` follows the log and keeps the views fresh."""

    def __init__(self, path: Path, options: Options, waiting: Waiting = nullcontext) -> None:
        self.path = real_path(path)
        self.options = options
        self.root_path = _root(options.root_path)
        self.hosts = allowed_hosts(options.host, options.allow_hosts)
        self.tokens = TokenFile(self.path)
        self.tokens.check()
        study = ServedStudy.open(self.path)  # first: its errors say what is wrong with the file
        self.follower = LogFollower(self.path)
        self.threads = StudyThreads(study, self.follower)
        self.viewers = Viewers(options.most_viewers)
        self.views = self.threads.prepare(waiting)
        self.checks = records.Checks(0, "the model is being tested", [], [], "")
        self._checked = -CHECKS_SECONDS  # when: at once after the start
        self._changed = asyncio.Event()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def snapshot(self) -> LogSnapshot:
        """The log as of now; an error if it cannot be read any more."""
        if self.follower.trouble is not None:
            raise self.follower.trouble
        return self.follower.snapshot

    @property
    def cookie(self) -> str:
        """Named after the study: a browser sends cookies to all ports of a machine."""
        return f"causalarms-{self.follower.snapshot.first_hash[:12]}"

    async def reach(self, number: int) -> None:
        """Wait until what was just written can be read."""
        # A client that was told "written" must find its result in the next GET.
        if self.follower.snapshot.number >= number:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((number, done))
        self.follower.wake()
        try:
            await asyncio.wait_for(done, REACH_SECONDS)
        except TimeoutError:
            raise self.follower.trouble or StudyBusyError(
                f"{self.path}: event {number} is written, but cannot be read yet"
            ) from None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def announce() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody listens
                loop.call_soon_threadsafe(self._announce)

        # The follower runs in its own thread; everything below runs on the event loop.
        self.follower.start(announce)
        tasks = [
            asyncio.create_task(self._keep_views_fresh()),
            asyncio.create_task(self._end_refused_streams()),
        ]
        self._announce()
        try:
            yield
        finally:
            self.viewers.close()
            for task in tasks:
                task.cancel()
            self.follower.close()
            self.threads.close()

    def _announce(self) -> None:
        number = self.follower.snapshot.number
        for wanted, done in self._waiting:
            if wanted <= number and not done.done():
                done.set_result(None)
        self._waiting = [(wanted, done) for wanted, done in self._waiting if not done.done()]
        self._changed.set()
        self._show()

    def _show(self) -> None:
        # Viewers compare it with what they show, and fetch only what is behind.
        self.viewers.show(Head(self.follower.snapshot.number, self.views.as_of, self.checks.as_of))

    async def _keep_views_fresh(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._compute_views_and_checks()
            except Exception as error:
                # errors of the study are shown by every request until they are gone
                if not isinstance(error, CausalArmsError):
                    log.exception("the views could not be computed")
                await asyncio.sleep(RETRY_SECONDS)
                self._changed.set()

    async def _end_refused_streams(self) -> None:
        """The token of a stream is checked when it begins, and here while it runs."""
        while True:
            await asyncio.sleep(TOKEN_CHECK_SECONDS)
            if len(self.viewers) == 0:
                continue
            with suppress(StudyBusyError):
                try:
                    valid = self.tokens.credentials()
                except TokenFileError:
                    # Without a readable file nobody gets in, so no stream may go on either.
                    valid = set()
                self.viewers.keep(valid)

    async def _compute_views_and_checks(self) -> None:
        """Views first; model checks if nothing is new, or if they are old."""
        if self.follower.snapshot.learned > self.views.as_of:
            # Asked or failed trials change no belief: the views stay as they are.
            self.views = await self.threads.compute_views(self.views.far)
            self._show()
            await asyncio.sleep(
                max(MIN_IDLE_SECONDS, IDLE_PER_WORK_SECOND * self.threads.views_seconds)
            )
            if self.follower.snapshot.learned > self.views.as_of:
                self._changed.set()
        # While results come in quickly, checks would never have their turn: hence `old`.
        old = time.monotonic() > self._checked + CHECKS_SECONDS
        if self.checks.as_of < self.views.as_of and (old or not self._changed.is_set()):
            self.checks, far = await self.threads.compute_checks(self.views)
            self.views = self.views._replace(far=far)
            self._show()
            self._checked = time.monotonic()

    def alarms(self) -> list[Alarm]:
        """The alarms of the views, with what was acknowledged since."""
        seen = self.snapshot.ledger.acknowledged
        return [
            msgspec.structs.replace(
                alarm, acknowledged=alarm.alarm in seen, note=seen.get(alarm.alarm, "")
            )
            for alarm in self.views.alarms
        ]


def _root(given: str) -> str:
    path = "/" + given.strip("/")
    return "" if path == "/" else path


# -- the application: checks a request, finds its operation, answers or says why not ---------------


def refusing(endpoint: Endpoint) -> Endpoint:
    """Answer errors with problems."""

    async def asked(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ClientDisconnect:
            raise
        except Exception as error:
            return refusal(error)

    return asked


def make_app(service: Service) -> ASGIApp:
    """Routes of all operations, the OpenAPI document and the page."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with service.running():
            yield

    by_path: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    everything = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
    routes = [
        Route(PREFIX + path, refusing(_endpoint(service, found)), methods=everything)
        for path, found in by_path.items()
    ]
    routes.append(Route(PREFIX + "/openapi.json", refusing(_openapi), methods=everything))
    # Last, because it matches every address.
    routes.append(Route("/{path:path}", refusing(_page), methods=everything))
    app = Starlette(
        routes=routes, lifespan=lifespan, middleware=[Middleware(GZipMiddleware, minimum_size=1000)]
    )
    return Guard(app, service)


class Guard:
    """Checks the host and the site of every request, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # there are no websockets here
        sending = with_headers(send)
        try:
            headers = Headers(scope=scope)
            check_host(scope, headers, self._service.hosts)
            answer = self._at_root(scope)
            # Another site may link to the page, but it may not use the API.
            if scope["path"].startswith("/api/"):
                check_site(headers)
        except RefusedError as error:
            await refusal(error)(scope, receive, sending)
            return
        with suppress(ClientDisconnect):
            await (answer or self._app)(scope, receive, sending)

    def _at_root(self, scope: Scope) -> Response | None:
        """Remove the sub-path of a proxy, which may have removed it already."""
        root, path = self._service.root_path, scope["path"]
        scope["root_path"] = ""
        if root and path == root:
            return RedirectResponse(root + "/")
        if root and path.startswith(root + "/"):
            scope["path"] = path[len(root) :]
            scope["raw_path"] = scope["path"].encode()
        return None


def refusal(error: Exception) -> Response:
    """An error as an answer."""
    problem = problem_of(error)
    if problem is None:
        # The client gets the class only: a message may contain what is none of its business.
        log.error("a request failed", exc_info=error)
        words = f"the service failed to answer: {type(error).__name__}; its log says more"
        problem = Problem(URN + "internal", "The service failed", 500, words)
    headers = dict(error.headers) if isinstance(error, RefusedError) else {}
    if problem.status == 503:
        # 503 is always a matter of time here: a lock, a file that comes back.
        headers.setdefault("Retry-After", "1")
    return Response(
        ENCODER.encode(problem), problem.status, headers, media_type="application/problem+json"
    )


def _endpoint(service: Service, operations: dict[str, Operation]) -> Endpoint:
    # A decoder is built once per operation: building one takes longer than using it.
    decoders = {
        method: msgspec.json.Decoder(operation.takes)
        for method, operation in operations.items()
        if operation.takes is not None
    }

    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        operation = operations.get(method)
        if operation is None:
            raise _wrong_method(request, operations)
        if operation.unsafe:
            check_unsafe(request)
        if operation.role is None:
            service.tokens.look()  # raises if the file of tokens cannot be read
            caller, credential = NOBODY, ""
        else:
            caller, credential = caller_of(service, request)
        if not operation.allows(caller):
            raise RefusedError(
                403, "role", "The token does not allow this",
                f"{method} {operation.path} needs the role {operation.role}; this token has the "
                f"role {caller.role}",
            )  # fmt: skip
        number = path_number(request.path_params)
        query = read_query(operation.query, request)
        body = None
        if operation.takes is not None:
            text = await read_body(request, operation.most_bytes)
            body = await decode_body(decoders[method], text)
        call = Call(caller, credential, number, query, body, _key(operation, request), request)
        answer = await operation.handler(service, call)
        return _tagged(request, answer)

    return endpoint


def _tagged(request: Request, answer: Answer | Response) -> Response:
    """The answer with an ETag; 304 if the client has it already."""
    if isinstance(answer, Answer):
        marked = body = ENCODER.encode(answer.body)
        if answer.unmarked:
            # The server's clock in an answer must not make it a new answer every second.
            without = dict.fromkeys(answer.unmarked)
            marked = ENCODER.encode(msgspec.structs.asdict(answer.body) | without)
        response = Response(body, answer.status, media_type="application/json")
    else:
        response, marked = answer, bytes(answer.body)
    if request.method not in ("GET", "HEAD") or response.status_code != 200 or not marked:
        return response
    tag = f'W/"{hashlib.sha256(marked).hexdigest()[:20]}"'
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return response


def _key(operation: Operation, request: Request) -> str | None:
    if not operation.needs_key:
        return None
    key = request.headers.get(KEY_HEADER, "")
    if not 1 <= len(key) <= 200 or not key.isprintable():
        raise RefusedError(
            400, "no-key", "A key is needed",
            "send the header Idempotency-Key with a text of your own, at most 200 characters, and "
            "the same text if you have to send this again",
        )  # fmt: skip
    return key


def _wrong_method(request: Request, operations: Mapping[str, object]) -> RefusedError:
    there = ", ".join(operations)
    return RefusedError(
        405, "method", "There is no such operation",
        f"{request.method} is not possible here; there is {there}", {"Allow": there},
    )  # fmt: skip


async def _openapi(request: Request) -> Response:
    if request.method not in ("GET", "HEAD"):
        raise _wrong_method(request, {"GET": None})
    return _tagged(request, Response(document(), media_type="application/json"))


async def _page(request: Request) -> Response:
    path = request.path_params["path"]
    file = page_files().get(path.lstrip("/")) if request.method in ("GET", "HEAD") else None
    if file is None:
        raise RefusedError(
            404, "not-found", "There is nothing here",
            f"there is nothing at {'/' + path!r:.200}; the API is at {PREFIX}, its description at "
            f"{PREFIX}/openapi.json",
        )  # fmt: skip
    # Read at every request: small files, and an upgraded package shows at once.
    return _tagged(request, Response(file.read_bytes(), media_type=CONTENT_TYPES[file.suffix]))


@cache
def page_files() -> dict[str, Path]:
    """Address -> file: only what is listed here is ever opened."""
    found = {
        path.relative_to(PAGE).as_posix(): path
        for path in PAGE.rglob("*")
        if path.is_file() and path.suffix in CONTENT_TYPES
    }
    if INDEX in found:
        # A request for the folder gets the page.
        found[""] = found[INDEX]
    return found
