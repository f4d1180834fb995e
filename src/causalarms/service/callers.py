"""Who asks: by the token in a header or in the cookie of the page."""

from __future__ import annotations

from starlette.requests import Request

from causalarms.service.problems import RefusedError
from causalarms.service.service import Service
from causalarms.service.shapes import Caller

NOBODY = Caller("read", "", True)
HOW = (
    "send it as `Authorization: Bearer TOKEN`, or open the page with #token=TOKEN at the end of "
    "its address; `causalarms serve-token` makes one"
)


def caller_of(service: Service, request: Request) -> Caller:
    """RefusedError (401) where a token is needed and none, or a wrong one, came."""
    given = _given(service, request)
    if not service.needs_token:
        forwarded = [h for h in ("forwarded", "x-forwarded-for") if h in request.headers]
        if forwarded:
            raise refuse_token(
                f"the request was forwarded by a proxy ({forwarded[0]}), so it may come from "
                "anywhere: make a token with `causalarms serve-token`"
            )
        if given is None or (token := service.tokens.find(given)) is None:
            return Caller("operator", "", False)
        return Caller(token.role, token.name, False)
    if given is None:
        raise refuse_token("this study needs a token")
    token = service.tokens.find(given)
    if token is None:
        raise refuse_token("the token is not known to this study")
    return Caller(token.role, token.name, True)


def refuse_token(words: str) -> RefusedError:
    return RefusedError(
        401, "token", "A token is needed", f"{words}: {HOW}", {"WWW-Authenticate": "Bearer"}
    )


def _given(service: Service, request: Request) -> str | None:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token.strip():
        return token.strip()
    return request.cookies.get(service.cookie)
