"""The log of a study: events as canonical JSON, chained by hashes, verified as they are read.

The hash of an event is SHA-256 over the hash of the event before it and the stored text, so a
changed, removed or inserted event is found at its place. It guards against accidents, not against
somebody who rewrites the whole file: there is no key in it.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from causalarms.errors import (
    ChangedStudyError,
    CorruptStudyError,
    RepeatedKeyError,
    StudyError,
    shown,
)
from causalarms.study.store import ROOT, Entry, Store

CREATED, ASKED, TOLD, FAILED, ABANDONED = "created", "asked", "told", "failed", "abandoned"
IMPORTED, ACKNOWLEDGED, CHANGED = "imported", "alarm acknowledged", "settings changed"
NOTE, CORRECTED = "note", "corrected"
LOST, RECOVERED = "lost", "recovered"  # written by `recover` only

ROWS_PER_STEP = 1000

KEY_ENTRY = "once"  # of an event's data: the key of the request that wrote it, and its digest
MAX_KEY_LENGTH = 200
MAX_TEXT_LENGTH = 10_000

Keys = dict[str, tuple[int, str]]  # key -> event and digest
Clock = Callable[[], datetime]


def now() -> datetime:
    return datetime.now(UTC)


class Event(NamedTuple):
    """Numbered from 1; `at` is the writer's clock, for people: the order is that of numbers."""

    number: int
    kind: str
    at: str
    data: dict[str, Any]


class Log:
    """Hands every event to `apply` exactly once and in order, also those of other processes."""

    def __init__(
        self,
        store: Store,
        apply: Callable[[Event], None],
        clock: Clock = now,
        start_over: Callable[[], None] = lambda: None,
    ) -> None:
        self.store = store
        self.number = 0  # of the last event applied
        self.hash = ROOT
        self.first_hash = ROOT  # of event 1, which names a study
        self._apply_to_owner = apply
        self._start_over = start_over  # with nothing applied
        self._applying = False
        self._clock = clock
        self._written: list[tuple[Event, Entry]] = []  # in the transaction under way

    def catch_up(self) -> None:
        """Read, verify and apply what others wrote; another history than the one known is refused.

        A file may have been replaced by another study, or by an older copy of the same one.
        """
        if self._applying:  # Ctrl+C came in between: nobody knows what was applied
            self._start_over()
            self.number, self.hash, self._applying = 0, ROOT, False
        # The note of the last event also shows events that were cut off the end of the log.
        head, head_hash = self.store.head()
        if (head, head_hash) == (self.number, self.hash):
            return
        with _no_garbage():
            for entry in self._after_known(head):
                hash_ = check_entry(entry, self.number, self.hash)
                self._apply(decode(entry.text, entry.number), hash_)
                if entry.number == head and entry.hash != head_hash:
                    raise CorruptStudyError(f"event {head} is not the one noted as the last", head)
        if self.number < head:
            missing = self.number + 1
            raise CorruptStudyError(f"event {missing} is missing: {head} were written", missing)

    def _after_known(self, head: int) -> list[Entry]:
        """Events that are new here, once the last known one is still what it was."""
        # One event more than is needed: if it is another one, the file was replaced meanwhile.
        found = self.store.entries(max(self.number - 1, 0))
        if self.number and (not found or found[0][::2] != (self.number, self.hash)):
            raise ChangedStudyError(
                f"the study has another history than the one read here before: event {self.number} "
                + ("is another one" if found else f"is gone, its last one is {head}")
                + ". Its file was replaced; open the study again"
            )
        return found[1:] if self.number else found

    def writing(self) -> _Writing:
        """Exclusive and up to date; what is written inside is applied, then put on the disk.

        The caller holds the lock of the store.
        """
        return _Writing(self)

    def write(
        self, kind: str, data: dict[str, Any], encoded: Mapping[str, str] | None = None
    ) -> None:
        """Append one event, inside `writing`; `encoded` as in `encode`."""
        at = self._clock().isoformat(timespec="milliseconds")
        previous = self._written[-1][1].hash if self._written else self.hash
        event = Event(self.number + len(self._written) + 1, kind, at, data)
        # It waits here until the end: SQLite's journal exists for moments only.
        self._written.append((event, entry_of(event, previous, encoded)))

    def _apply(self, event: Event, hash_: bytes) -> None:
        self._applying = True
        try:
            self._apply_to_owner(event)
        except CorruptStudyError:
            self._applying = False  # refused as a whole
            raise
        self._note_applied(event, hash_)
        self._applying = False

    def _apply_new(self, event: Event, hash_: bytes) -> None:
        try:
            self._apply_to_owner(event)
        except CorruptStudyError as error:
            raise StudyError(f"nothing was written: {error}") from error
        self._note_applied(event, hash_)

    def _note_applied(self, event: Event, hash_: bytes) -> None:
        self.number, self.hash = event.number, hash_
        if event.number == 1:
            self.first_hash = hash_


class _Writing:
    """A class, not a generator: Ctrl+C between the last line of a generator and the block would
    leave the file locked for as long as somebody keeps the traceback."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __enter__(self) -> None:
        log = self._log
        # Twice: a large event of others is read before anybody has to wait for it.
        log.catch_up()
        try:
            log.store.begin()
            log.catch_up()
            log._written = []
        except BaseException:
            log.store.end()
            raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        log = self._log
        try:
            if kind is None and log._written:
                # Until all is on the disk: if that fails, the log is read again from its beginning.
                log._applying = True
                # First, so that an event which nobody could read again never reaches the file.
                for event, entry in log._written:
                    log._apply_new(event, entry.hash)
                log.store.commit([entry for _, entry in log._written])
                log._applying = False
            log.store.end()
        except BaseException:  # Ctrl+C may have come in the middle of `end`
            log.store.end()
            raise


@contextmanager
def _no_garbage() -> Iterator[None]:
    """All that is read is kept: looking for garbage meanwhile would double the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def check_entry(entry: Entry, last: int, previous: bytes) -> bytes:
    """The hash of an entry that follows event `last`, or an error that names it."""
    if entry.number != last + 1:
        raise CorruptStudyError(
            f"event {last + 1} is missing: event {entry.number} follows event {last}", last + 1
        )
    if chain(previous, entry.text) != entry.hash:
        raise CorruptStudyError(
            f"event {entry.number} is damaged: its hash does not fit its text", entry.number
        )
    return entry.hash


# -- events as text --------------------------------------------------------------------------------


def canonical(value: Any) -> str:
    """One text per value: sorted keys, no spaces, no numbers that are not finite.

    >>> canonical({"b": 1.0, "a": None})
    '{"a":null,"b":1.0}'
    """
    return ENCODER.encode(value)


def canonical_rows(rows: Sequence[Any]) -> str:
    """As `canonical`, in small steps: the threads of a service need not wait for a large table."""
    steps = range(0, len(rows), ROWS_PER_STEP)
    return f"[{','.join(canonical(rows[at : at + ROWS_PER_STEP])[1:-1] for at in steps)}]"


def canonical_parts(value: Mapping[str, Any], encoded: Mapping[str, str] | None = None) -> str:
    """As `canonical`; `encoded` are entries whose canonical text is known already."""
    if not encoded:
        return canonical(value)
    parts = (
        f"{canonical(name)}:{encoded[name] if name in encoded else canonical(value[name])}"
        for name in sorted(value)
    )
    return f"{{{','.join(parts)}}}"


def encode(event: Event, encoded: Mapping[str, str] | None = None) -> str:
    """The stored text; names and remarks may hold characters that no file can.

    `encoded` are entries of the data, as above.
    """
    data = {"data": canonical_parts(event.data, encoded)} if encoded else None
    text = canonical_parts(event._asdict(), data)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = text[error.start : error.end]
        raise StudyError(f"the character {found!r} cannot be stored: leave it out") from None
    return text


def as_text(given: Any, what: str, *, empty: bool = False) -> str:
    """A text that can be stored; `what` it is, for the message."""
    if not isinstance(given, str) or len(given) > MAX_TEXT_LENGTH or not (empty or given.strip()):
        raise StudyError(f"{what} must be a text, not {shown(given)}")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise StudyError(f"{what} holds characters that cannot be stored") from None
    return given


def entry_of(event: Event, previous: bytes, encoded: Mapping[str, str] | None = None) -> Entry:
    """The event as it is stored after one with the hash `previous`; `encoded` as above."""
    text = encode(event, encoded)
    return Entry(event.number, text, chain(previous, text))


def decode(text: str, number: int) -> Event:
    """The event of a stored text that must be the one with this number."""
    try:
        record = DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise CorruptStudyError(f"event {number} is not JSON: {error}", number) from error
    if not (
        isinstance(record, dict)
        and set(record) == set(Event._fields)
        and record["number"] == number
        and isinstance(record["kind"], str)  # the ledger knows which kinds there are
        and isinstance(record["at"], str)
        and isinstance(record["data"], dict)
    ):
        raise CorruptStudyError(f"event {number} is not an event of this package", number)
    return Event(**record)


def chain(previous: bytes, text: str) -> bytes:
    return hashlib.sha256(previous + text.encode("utf-8", "surrogatepass")).digest()


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
DECODER = json.JSONDecoder(parse_constant=_no_constant)


# -- request keys ----------------------------------------------------------------------------------
#
# A request that is sent again has the same key, and is not done twice. The key and a digest of the
# request stand inside the event that the request wrote, so that they last as long as the log
# and every process on the file knows them.


def key_entry(
    key: str | None, request: dict[str, Any], encoded: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What an event says of the request that wrote it; nothing if it has no key.

    `encoded` as in `encode`.
    """
    if key is None:
        return {}
    if not isinstance(key, str) or not 1 <= len(key) <= MAX_KEY_LENGTH or not key.isprintable():
        raise StudyError(f"a key is a text of at most {MAX_KEY_LENGTH} characters, not {key!r:.80}")
    text = canonical_parts(request, encoded)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return {KEY_ENTRY: {"key": key, "digest": digest}}


def already_done(keys: Keys, data: dict[str, Any]) -> bool:
    """Whether this very request is in the log; RepeatedKeyError if its key was of another."""
    if KEY_ENTRY not in data:
        return False
    key, digest = data[KEY_ENTRY]["key"], data[KEY_ENTRY]["digest"]
    event, known = keys.get(key, (0, digest))
    if known != digest:
        raise RepeatedKeyError(
            f"the key {key!r} belongs to event {event}, which says something else: give a new "
            "request a new key"
        )
    return event > 0


def record_key(keys: Keys, event: Event) -> None:
    if KEY_ENTRY in event.data:
        found = event.data[KEY_ENTRY]
        keys[str(found["key"])] = (event.number, str(found["digest"]))
