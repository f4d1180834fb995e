"""The log of a served study, read over the network and checked here, hash by hash."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from causalarms.errors import RemoteStudyError
from causalarms.service.wire import Wire
from causalarms.study.log import Event, encode
from causalarms.study.store import Entry, OneProcess

PAGE = 1000


class RemoteStore(OneProcess):
    """A store that others write to. What is new comes with the question how far the log is."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire.url)
        self.read_only = False
        self._wire = wire
        self._known = 0  # the newest event that was handed out
        self._page: tuple[int, dict[str, Any]] | None = None  # asked for after which event

    def head(self) -> tuple[int, bytes]:
        with self.lock:
            after = max(self._known - 1, 0)
            page = self._fetch(after, PAGE)
            self._page = (after, page)
            try:
                return int(page["head"]), bytes.fromhex(page["head_hash"])
            except (KeyError, ValueError, TypeError) as error:
                raise _odd(self._wire, error) from error

    def entries(self, after: int = 0, limit: int = -1) -> list[Entry]:
        with self.lock:
            found: list[Entry] = []
            kept = self._page
            page = kept[1] if kept and kept[0] == after else self._fetch(after, PAGE)
            self._page = None
            try:
                while True:
                    found += [_entry(record) for record in page["events"]]
                    if page["next"] is None or 0 <= limit <= len(found):
                        break
                    page = self._fetch(int(page["next"]), PAGE)
            except (KeyError, ValueError, TypeError) as error:
                raise _odd(self._wire, error) from error
            if found:
                self._known = max(self._known, found[-1].number)
            return found if limit < 0 else found[:limit]

    def writing(self) -> AbstractContextManager[None]:
        raise RemoteStudyError("only the service itself writes to the log")

    def append(self, entry: Entry) -> None:
        raise RemoteStudyError("only the service itself writes to the log")

    def close(self) -> None:
        self._wire.close()

    def _fetch(self, after: int, limit: int) -> dict[str, Any]:
        page: dict[str, Any] = self._wire.get(f"/events?after={after}&limit={limit}")
        return page


def _entry(record: dict[str, Any]) -> Entry:
    event = Event(record["number"], record["kind"], record["at"], record["data"])
    return Entry(event.number, encode(event), bytes.fromhex(record["hash"]))


def _odd(wire: Wire, error: Exception) -> RemoteStudyError:
    return RemoteStudyError(
        f"{wire.url} answers in another way than expected ({error!r:.80}): its causalarms may be "
        "of another version"
    )
