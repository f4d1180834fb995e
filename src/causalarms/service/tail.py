"""The log as it grows: one thread reads what anybody wrote, and nobody waits for learning.

Trials, events and counts are answered from here. Every moment is whole and does not change.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from causalarms.errors import StudyError
from causalarms.service.one_thread import OneThread
from causalarms.study import log as kinds
from causalarms.study.ledger import Ledger, Record
from causalarms.study.log import Event, Log
from causalarms.study.settings import Settings
from causalarms.study.sqlite import SqliteStore
from causalarms.study.store import Entry

POLL_SECONDS = 0.1  # how soon the writing of other processes is seen
TEACHING = (
    kinds.CREATED, kinds.TOLD, kinds.IMPORTED, kinds.CORRECTED, kinds.CHANGED, kinds.LOST,
    kinds.RECOVERED,
)  # fmt: skip

Before = tuple[Event, Record]  # a correction, and the trial before it


class Moment:
    """All that the log says up to event `number`."""

    def __init__(
        self,
        number: int,
        hash_: str,
        ledger: Ledger,
        first: Event,
        first_hash: str,
        learned: int,
        corrections: dict[int, tuple[Before, ...]],
    ) -> None:
        self.number = number
        self.hash = hash_
        self.ledger = ledger
        self.first = first
        self.first_hash = first_hash
        self.learned = learned  # the newest event that changes what is believed
        self.corrections = corrections

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


class Tail:
    """`moment` is the newest; `announce` is called, from another thread, whenever there is one."""

    def __init__(self, path: Path) -> None:
        self.store = SqliteStore(path, read_only=True)
        self.trouble: StudyError | None = None  # the log cannot be read any more
        self._ledger = Ledger()
        self._corrections: dict[int, tuple[Before, ...]] = {}
        self._learned = 0
        self._first: Event | None = None
        self._log = Log(self.store, self._apply)
        self._log.catch_up()
        self._first_hash = self.store.entries(0, 1)[0].hash.hex()
        self.moment = self._now()
        self._announce: Callable[[], None] = lambda: None
        self._wake, self._stop = threading.Event(), False
        self._reading = OneThread("log reader")
        self._thread = threading.Thread(target=self._watch, name="tail", daemon=True)

    def start(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._thread.start()

    def wake(self) -> None:
        """Something was written just now."""
        self._wake.set()

    async def entries(self, after: int, limit: int) -> list[Entry]:
        """Events of the log as they are stored, read in a thread that does nothing else."""
        return await self._reading.run(lambda: self.store.entries(after, limit))

    def close(self) -> None:
        self._stop = True
        self.wake()
        self._reading.close(0.0)
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _watch(self) -> None:
        while not self._stop:
            self._wake.wait(POLL_SECONDS)
            self._wake.clear()
            try:
                self._log.catch_up()
                self.trouble = None
            except StudyError as error:
                self.trouble = error
                continue
            if self._log.number != self.moment.number:
                self.moment = self._now()
                self._announce()

    def _now(self) -> Moment:
        assert self._first is not None
        return Moment(
            self._log.number,
            self._log.hash.hex(),
            self._ledger.copy(),
            self._first,
            self._first_hash,
            self._learned,
            self._corrections.copy(),
        )

    def _apply(self, event: Event) -> None:
        if event.kind == kinds.CORRECTED:
            number = event.data["trial"]
            before = self._ledger.trial(number)
            self._ledger.apply(event)
            self._corrections[number] = (*self._corrections.get(number, ()), (event, before))
        else:
            self._ledger.apply(event)
        if event.kind in TEACHING:
            self._learned = event.number
        if self._first is None:
            self._first = event
