"""Login of the page: a browser's event stream cannot send a token, but it sends a cookie."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from causalarms.service import shapes
from causalarms.service.callers import refuse_token
from causalarms.service.operation import Answer, Call
from causalarms.service.service import Service

DAYS = 30


async def begin(service: Service, call: Call) -> Answer | Response:
    token = service.tokens.find(call.body.token)
    if token is None:
        raise refuse_token("the token is not known to this study")
    caller = shapes.Caller(token.role, token.name, True)
    answer = Response(msgspec.json.encode(caller), media_type="application/json")
    answer.set_cookie(
        service.cookie,
        call.body.token,
        max_age=DAYS * 24 * 3600,
        path=service.root_path + "/",
        secure=_is_secure(call.request),
        httponly=True,
        samesite="strict",
    )
    return answer


def _is_secure(request: Request) -> bool:
    """Also where a proxy before the service speaks TLS: the browser says so."""
    origin = request.headers.get("origin", "")
    return request.url.scheme == "https" or origin.startswith("https://")


async def end(service: Service, call: Call) -> Answer | Response:
    answer = Response(msgspec.json.encode(call.caller), media_type="application/json")
    answer.delete_cookie(
        service.cookie, path=service.root_path + "/", httponly=True, samesite="strict"
    )
    return answer
