"""The log as it grows: one thread reads what any process wrote.

Trials, events and counts are answered from its snapshots, so no request waits for learning. The
follower folds the log itself instead of reading the writing study's ledger: that one is locked for
as long as a write waits for another process, and requests that read must go on meanwhile.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from causalarms.errors import StudyError
from causalarms.service.threads import OneThread
from causalarms.study import log as kinds
from causalarms.study.ledger import Ledger, Record
from causalarms.study.log import Event, Log
from causalarms.study.settings import Settings
from causalarms.study.store import Entry, SqliteStore

POLL_SECONDS = 0.1  # until what other processes wrote is noticed
EVENTS_THAT_CHANGE_THE_BELIEF = (
    kinds.CREATED, kinds.TOLD, kinds.IMPORTED, kinds.CORRECTED, kinds.CHANGED, kinds.LOST,
    kinds.RECOVERED,
)  # fmt: skip


class Correction(NamedTuple):
    event: Event
    before: Record  # the trial as it was


Corrections = dict[int, tuple[Correction, ...]]  # by trial


class LogSnapshot:
    """Everything that the log says up to event `number`; later events do not change it."""

    def __init__(
        self,
        number: int,
        hash_: str,
        ledger: Ledger,
        first: Event,
        first_hash: str,
        learned: int | None = None,
        corrections: Corrections | None = None,
    ) -> None:
        self.number = number
        self.hash = hash_
        self.ledger = ledger
        self.first = first
        self.first_hash = first_hash
        self.learned = number if learned is None else learned  # newest that changes the belief
        self.corrections = corrections or {}

    @property
    def settings(self) -> Settings:
        assert self.ledger.settings is not None
        return self.ledger.settings

    @cached_property
    def counts(self) -> dict[str, int]:
        return dict(Counter(record.state for record in self.ledger.trials))

    @cached_property
    def notes_of(self) -> Counter[int | None]:
        return Counter(note["trial"] for note in self.ledger.notes)


class LogFollower:
    """`snapshot` is the newest; `announce` is called in the follower's thread when it is new."""

    def __init__(self, path: Path) -> None:
        self.store = SqliteStore(path, read_only=True)
        self.trouble: StudyError | None = None  # why the log cannot be read any more
        self._ledger = Ledger()
        self._corrections: Corrections = {}
        self._learned = 0
        self._first: Event | None = None
        self._log = Log(self.store, self._apply)
        self._log.catch_up()
        # The hash of event 1 names the study: a client that finds another one forgets what it has.
        self._first_hash = self.store.entries(0, 1)[0].hash.hex()
        self.snapshot = self._snapshot_now()
        self._announce: Callable[[], None] = lambda: None
        self._wake, self._stop = threading.Event(), False
        self._reading = OneThread("log reader")
        self._thread = threading.Thread(target=self._follow, name="log follower", daemon=True)

    def start(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._thread.start()

    def wake(self) -> None:
        """Look now: this process has just written something."""
        self._wake.set()

    async def entries(self, after: int, limit: int) -> list[Entry]:
        """Events as they are stored, read in a thread that does nothing else."""
        return await self._reading.run(lambda: self.store.entries(after, limit))

    def close(self) -> None:
        self._stop = True
        self.wake()
        self._reading.close(0.0)
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _follow(self) -> None:
        while not self._stop:
            # Other processes cannot wake this thread, so it also looks by itself.
            self._wake.wait(POLL_SECONDS)
            self._wake.clear()
            try:
                self._log.catch_up()
                self.trouble = None
            except StudyError as error:
                # Not fatal: the file may come back. Until then requests are refused.
                self.trouble = error
                continue
            if self._log.number != self.snapshot.number:
                self.snapshot = self._snapshot_now()
                self._announce()

    def _snapshot_now(self) -> LogSnapshot:
        assert self._first is not None
        return LogSnapshot(
            self._log.number,
            self._log.hash.hex(),
            # Handlers read it while this thread applies the next events, so it must not change.
            self._ledger.copy(),
            self._first,
            self._first_hash,
            self._learned,
            self._corrections.copy(),
        )

    def _apply(self, event: Event) -> None:
        if event.kind == kinds.CORRECTED:
            number = event.data["trial"]
            # The ledger only keeps the corrected trial; the page also shows what it was.
            before = self._ledger.trial(number)
            self._ledger.apply(event)
            known = self._corrections.get(number, ())
            self._corrections[number] = (*known, Correction(event, before))
        else:
            self._ledger.apply(event)
        if event.kind in EVENTS_THAT_CHANGE_THE_BELIEF:
            self._learned = event.number
        if self._first is None:
            self._first = event
