"""Login of the page: a browser's event stream cannot send a token, but it sends a cookie."""

from __future__ import annotations

import msgspec
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
        secure=call.request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


async def end(service: Service, call: Call) -> Answer | Response:
    answer = Response(msgspec.json.encode(call.caller), media_type="application/json")
    answer.delete_cookie(
        service.cookie, path=service.root_path + "/", httponly=True, samesite="strict"
    )
    return answer
