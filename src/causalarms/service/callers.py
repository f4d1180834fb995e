"""Who asks: by the token in a header, or by the cookie of a session of the page.

A browser's event stream cannot send a token, but it sends a cookie.
"""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from causalarms.service.operation import Answer, Call
from causalarms.service.problems import RefusedError
from causalarms.service.service import Service
from causalarms.service.shapes import Caller
from causalarms.service.tokens import SESSION_SECONDS

NOBODY = Caller("read", "", True)
FORWARDED = ("forwarded", "via", "x-forwarded-", "x-real-ip")  # how names of headers begin
HOW = (
    "send it as `Authorization: Bearer TOKEN`, or open the page with #token=TOKEN at the end of "
    "its address; `causalarms serve-token` makes one"
)


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
    session = await asyncio.to_thread(service.tokens.begin_session, token, service.cookie)
    answer = _answer(Caller(token.role, token.name, True))
    answer.set_cookie(
        service.cookie,
        session,
        max_age=SESSION_SECONDS,
        path=service.root_path + "/",
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
