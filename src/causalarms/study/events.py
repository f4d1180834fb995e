"""Events: what happened, as canonical JSON, chained by hashes.

The hash of an event is SHA-256 over the hash of the event before it and the stored text, so a
changed, removed or inserted event is found at its place. It guards against accidents, not against
somebody who rewrites the whole file: there is no key in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from causalarms.errors import CorruptStudyError, StudyError

CREATED, ASKED, TOLD, FAILED, ABANDONED = "created", "asked", "told", "failed", "abandoned"
IMPORTED, ACKNOWLEDGED, CHANGED = "imported", "alarm acknowledged", "settings changed"
NOTE, CORRECTED = "note", "corrected"
LOST, RECOVERED = "lost", "recovered"  # written by `recover` only
KINDS = (
    CREATED, ASKED, TOLD, FAILED, ABANDONED, IMPORTED, ACKNOWLEDGED, CHANGED, NOTE, CORRECTED,
    LOST, RECOVERED,
)  # fmt: skip

ROOT = hashlib.sha256(b"causalarms study 1").digest()  # what the first event is chained to

ROWS_PER_STEP = 1000


class Event(NamedTuple):
    """Numbered from 1; `at` is the writer's clock, for people: the order is that of numbers."""

    number: int
    kind: str
    at: str
    data: dict[str, Any]


def canonical(value: Any) -> str:
    """One text per value: sorted keys, no spaces, no numbers that are not finite.

    >>> canonical({"b": 1.0, "a": None})
    '{"a":null,"b":1.0}'
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


DECODER = json.JSONDecoder(parse_constant=_no_constant)


def canonical_rows(rows: Sequence[Any]) -> str:
    """As `canonical`, in small steps: the threads of a service need not wait for a large table."""
    steps = range(0, len(rows), ROWS_PER_STEP)
    return f"[{','.join(canonical(rows[at : at + ROWS_PER_STEP])[1:-1] for at in steps)}]"


def canonical_parts(value: Mapping[str, Any], encoded: Mapping[str, str] | None = None) -> str:
    """As `canonical`; `encoded` are entries whose canonical text is known already."""
    known = encoded or {}
    parts = (
        f"{canonical(name)}:{known[name] if name in known else canonical(value[name])}"
        for name in sorted(value)
    )
    return f"{{{','.join(parts)}}}"


def encode(event: Event, encoded: Mapping[str, str] | None = None) -> str:
    """The stored text; names and remarks may hold characters that no file can.

    `encoded` are entries of the data, as above.
    """
    text = canonical_parts(event._asdict(), {"data": canonical_parts(event.data, encoded)})
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = text[error.start : error.end]
        raise StudyError(f"the character {found!r} cannot be stored: leave it out") from None
    return text


def decode(text: str, number: int) -> Event:
    """The event of a stored text that must be the one with this number."""
    try:
        record = DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise CorruptStudyError(f"event {number} is no JSON: {error}", number) from error
    if not (
        isinstance(record, dict)
        and set(record) == set(Event._fields)
        and record["number"] == number
        and record["kind"] in KINDS
        and isinstance(record["at"], str)
        and isinstance(record["data"], dict)
    ):
        raise CorruptStudyError(f"event {number} is not an event of this package", number)
    return Event(**record)


def chain(previous: bytes, text: str) -> bytes:
    return hashlib.sha256(previous + text.encode("utf-8", "surrogatepass")).digest()
