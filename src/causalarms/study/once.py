"""Requests that must not be done twice: whoever repeats one gives it the same key.

The key and a digest of the request stand inside the event that the request wrote, so that they last
as long as the log and every process on the file knows them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from causalarms.errors import RepeatedKeyError, StudyError
from causalarms.study.events import Event, canonical_parts

ENTRY = "once"
LONGEST = 200

Keys = dict[str, tuple[int, str]]  # key -> event and digest


def once(
    key: str | None, request: dict[str, Any], encoded: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What an event says of the request that wrote it; nothing where it has no key.

    `encoded` as in `events.encode`.
    """
    if key is None:
        return {}
    if not isinstance(key, str) or not 1 <= len(key) <= LONGEST or not key.isprintable():
        raise StudyError(f"a key is a text of at most {LONGEST} characters, not {key!r:.80}")
    digest = hashlib.sha256(
        canonical_parts(request, encoded).encode("utf-8", "surrogatepass")
    ).hexdigest()[:32]
    return {ENTRY: {"key": key, "digest": digest}}


def done_before(keys: Keys, data: dict[str, Any]) -> bool:
    """Whether this very request is in the log; RepeatedKeyError where its key was of another."""
    if ENTRY not in data:
        return False
    key, digest = data[ENTRY]["key"], data[ENTRY]["digest"]
    event, known = keys.get(key, (0, digest))
    if known != digest:
        raise RepeatedKeyError(
            f"the key {key!r} belongs to event {event}, which says something else: give a new "
            "request a new key"
        )
    return event > 0


def remember(keys: Keys, event: Event) -> None:
    if ENTRY in event.data:
        found = event.data[ENTRY]
        keys[str(found["key"])] = (event.number, str(found["digest"]))
