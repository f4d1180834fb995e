"""Refusals as RFC 9457 problems; which one comes from the class of the error, never its words."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from causalarms import errors
from causalarms.service.shapes import Problem

URN = "urn:causalarms:"


class Kind(NamedTuple):
    status: int
    slug: str
    title: str


KINDS: dict[type[Exception], Kind] = {  # the first class of an error's ancestry that is here
    errors.UnknownTrialError: Kind(404, "unknown-trial", "There is no such trial"),
    errors.UnknownAlarmError: Kind(404, "unknown-alarm", "There is no such alarm"),
    errors.ClosedTrialError: Kind(409, "closed-trial", "The trial is not pending"),
    errors.NoResultError: Kind(409, "no-result", "The trial has no result"),
    errors.NotAskedError: Kind(409, "not-asked", "Nobody asked for the trial"),
    errors.TooEarlyError: Kind(409, "too-early", "Nothing is known yet"),
    errors.RepeatedKeyError: Kind(422, "repeated-key", "The key belongs to another request"),
    errors.NodeValueError: Kind(422, "wrong-value", "A value cannot be used"),
    errors.StudyBusyError: Kind(503, "busy", "The study's file is locked"),
    errors.ChangedStudyError: Kind(503, "changed", "The study's file was replaced"),
    errors.DiskFullError: Kind(507, "disk-full", "The disk is full"),
    errors.CorruptStudyError: Kind(500, "damaged", "The study's file is damaged"),
    errors.CausalArmsError: Kind(422, "refused", "The study refuses this"),
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
