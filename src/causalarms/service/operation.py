"""What one operation of the API is: from this the routes and their documentation are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from causalarms.service.shapes import Caller
from causalarms.service.tokens import Role

if TYPE_CHECKING:
    from causalarms.service.service import Service

MB = 2**20
RANKS: dict[Role, int] = {"read": 0, "worker": 1, "operator": 2}


class Parameter(NamedTuple):
    """A number or one of some words in the address."""

    name: str
    about: str
    kind: type = int
    least: float | None = 0
    most: float | None = None
    default: Any = None
    words: tuple[str, ...] = ()


class Call(NamedTuple):
    """A request, checked."""

    caller: Caller
    credential: str  # hash of the token or session that let the caller in
    number: int  # in the path, of a trial or an alarm
    query: Mapping[str, Any]
    body: Any
    key: str | None
    request: Request


class Answer(NamedTuple):
    body: Struct
    status: int = 200
    unmarked: tuple[str, ...] = ()  # fields that do not make it another answer


Handler = Callable[["Service", Call], Awaitable[Answer | Response]]


@dataclass(frozen=True)
class Operation:
    method: str
    path: str  # below /api/v1
    summary: str
    handler: Handler
    answers: dict[int, type[Struct]]
    takes: type[Struct] | None = None
    query: tuple[Parameter, ...] = ()
    role: Role | None = "read"  # the least that may; None: anybody
    needs_key: bool = False
    refusals: tuple[int, ...] = ()
    most_bytes: int = MB
    streams: bool = field(default=False)

    @property
    def unsafe(self) -> bool:
        return self.method not in ("GET", "HEAD")

    def allows(self, caller: Caller) -> bool:
        return self.role is None or RANKS[caller.role] >= RANKS[self.role]
