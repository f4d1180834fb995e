"""The application: checks every request, finds its operation, answers or says why not."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from causalarms.service import security
from causalarms.service.api import OPERATIONS, PREFIX
from causalarms.service.bodies import decode_body, read_body
from causalarms.service.callers import NOBODY, caller_of
from causalarms.service.kinds import URN
from causalarms.service.openapi import document
from causalarms.service.operation import Answer, Call, Operation
from causalarms.service.page import page_file
from causalarms.service.problems import RefusedError, problem_of
from causalarms.service.queries import path_number, read_query
from causalarms.service.service import Service
from causalarms.service.shapes import Problem

log = logging.getLogger("causalarms.service")
ENCODER = msgspec.json.Encoder()
KEY = "idempotency-key"

Endpoint = Callable[[Request], Awaitable[Response]]


def refusing(endpoint: Endpoint) -> Endpoint:
    """Errors become problems."""

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
    routes.append(Route("/{path:path}", refusing(_page), methods=everything))
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(GZipMiddleware, minimum_size=1000)],
    )
    return Guard(app, service)


class Guard:
    """Host, sub-path and headers of all that goes in and out; nothing leaves it as a traceback."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # there are no websockets here
        sending = security.with_headers(send)
        try:
            headers = Headers(scope=scope)
            security.check_host(scope, headers, self._service.hosts)
            answer = self._at_root(scope)
            if scope["path"].startswith("/api/"):  # a link from elsewhere may lead to the page
                security.check_site(headers)
        except RefusedError as error:
            await refusal(error)(scope, receive, sending)
            return
        with suppress(ClientDisconnect):
            await (answer or self._app)(scope, receive, sending)

    def _at_root(self, scope: Scope) -> Response | None:
        """Behind a proxy on a sub-path, whether it takes the path off or not."""
        root, path = self._service.root_path, scope["path"]
        scope["root_path"] = ""
        if root and path == root:
            return RedirectResponse(root + "/")
        if root and path.startswith(root + "/"):
            scope["path"] = path[len(root) :]
            scope["raw_path"] = scope["path"].encode()
        return None


def refusal(error: Exception) -> Response:
    """The problem that an error is."""
    problem = problem_of(error)
    if problem is None:
        log.error("a request failed", exc_info=error)
        words = f"the service failed to answer: {type(error).__name__}; its log says more"
        problem = Problem(URN + "internal", "The service failed", 500, words)
    headers = dict(error.headers) if isinstance(error, RefusedError) else {}
    if problem.status == 503:
        headers.setdefault("Retry-After", "1")
    return Response(
        ENCODER.encode(problem), problem.status, headers, media_type="application/problem+json"
    )


def _endpoint(service: Service, operations: dict[str, Operation]) -> Endpoint:
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
            security.check_unsafe(request)
        if operation.role is None:
            service.tokens.look()  # refuses if nobody may get in
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
    """With an ETag, and short where the client has it already."""
    if isinstance(answer, Answer):
        marked = body = ENCODER.encode(answer.body)
        if answer.unmarked:
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
    key = request.headers.get(KEY, "")
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
    found = page_file(request, path) if request.method in ("GET", "HEAD") else None
    if found is None:
        raise RefusedError(
            404, "not-found", "There is nothing here",
            f"there is nothing at {'/' + path!r:.200}; the API is at {PREFIX}, its description at "
            f"{PREFIX}/openapi.json",
        )  # fmt: skip
    return found
