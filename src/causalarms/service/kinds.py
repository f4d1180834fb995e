"""Which problem an error of a study is; read by the service, and backwards by its client."""

from __future__ import annotations

from typing import NamedTuple

from causalarms import errors

URN = "urn:causalarms:"


class Kind(NamedTuple):
    status: int
    slug: str
    title: str


STUDY_KINDS: dict[type[Exception], Kind] = {  # the first class of an error's ancestry that is here
    errors.UnknownTrialError: Kind(404, "unknown-trial", "There is no such trial"),
    errors.UnknownAlarmError: Kind(404, "unknown-alarm", "There is no such alarm"),
    errors.ClosedTrialError: Kind(409, "closed-trial", "The trial is not pending"),
    errors.NoResultError: Kind(409, "no-result", "The trial has no result"),
    errors.NotAskedError: Kind(409, "not-asked", "Nobody asked for the trial"),
    errors.TooEarlyError: Kind(409, "too-early", "Nothing is known yet"),
    errors.RepeatedKeyError: Kind(422, "repeated-key", "The key belongs to another request"),
    errors.NodeValueError: Kind(422, "wrong-value", "A value cannot be used"),
    errors.StudyBusyError: Kind(503, "busy", "The study's file is locked"),
    errors.StudyFileError: Kind(503, "file", "The study's file cannot be used"),
    errors.ChangedStudyError: Kind(503, "changed", "The study's file was changed"),
    errors.TokenFileError: Kind(503, "tokens", "The tokens cannot be read"),
    errors.DiskFullError: Kind(507, "disk-full", "The disk is full"),
    errors.CorruptStudyError: Kind(503, "damaged", "The study's file is damaged"),
    errors.CausalArmsError: Kind(422, "refused", "The study refuses this"),
}
