"""Refusals as RFC 9457 problems; which one comes from the class of the error, never its words."""

from __future__ import annotations

import msgspec

from causalarms.service.kinds import STUDY_KINDS, URN, Kind
from causalarms.service.shapes import Problem

KINDS: dict[type[Exception], Kind] = STUDY_KINDS | {
    RecursionError: Kind(400, "no-json", "The body is no JSON"),
    msgspec.ValidationError: Kind(422, "wrong-body", "The body is not what is expected"),
    msgspec.DecodeError: Kind(400, "no-json", "The body is no JSON"),
    UnicodeDecodeError: Kind(400, "no-json", "The body is no JSON"),
}


class RefusedError(Exception):
    """What the service itself refuses."""

    def __init__(
        self,
        status: int,
        slug: str,
        title: str,
        detail: str,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem(URN + slug, title, status, detail)
        self.headers = headers or {}


def problem_of(error: Exception) -> Problem | None:
    """None for errors that nobody expects."""
    if isinstance(error, RefusedError):
        return error.problem
    for kind in type(error).__mro__:
        if kind in KINDS:
            status, slug, title = KINDS[kind]
            return Problem(
                URN + slug,
                title,
                status,
                _sentence(error),
                getattr(error, "trial", None),
                getattr(error, "node", None),
                getattr(error, "state", None) or None,
                getattr(error, "alarm", None),
            )
    return None


def _sentence(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the body is nested too deeply"
    return str(error)


def too_large(most: int) -> RefusedError:
    size = f"{most / 2**20:.0f} MiB"
    return RefusedError(
        413, "too-large", "The body is too large", f"a body may have at most {size}"
    )
