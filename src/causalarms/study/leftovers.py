"""What SQLite leaves beside a study whose writer died, looked at before SQLite believes it.

A rollback journal (FILE-journal) holds the pages that an unfinished write was about to change;
SQLite puts them back at the next opening. A write-ahead log (FILE-wal) holds finished writes of
files of version 1 that were not folded in yet; SQLite reads it up to the first frame whose checksum
is wrong and forgets the rest without a word. Both are taken for the file's own, whatever file they
were left beside.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

from causalarms.errors import CorruptStudyError

JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
WAL_MAGIC = (0x377F0682, 0x377F0683)  # little and big endian checksums
WAL_HEADER, FRAME_HEADER = 32, 24
COUNTER = slice(24, 28)  # of the changes of a database, on its first page
PAGES = slice(28, 32)  # their number, there too


class LogState(NamedTuple):
    """A write-ahead log: how many of its frames can be read, and how many there were at least."""

    readable: int
    written: int


def journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def has_journal(path: Path) -> bool:
    """Whether a write was cut off; call it while nobody can be writing."""
    try:
        return journal_of(path).stat().st_size > 0
    except OSError:
        return False


def check_journal(path: Path) -> None:
    """Refuse a journal that was written for another file: its pages would overwrite this one."""
    journal = journal_of(path)
    try:
        content = journal.read_bytes()
        with path.open("rb") as file:
            now = file.read(100)
    except OSError as error:
        raise CorruptStudyError(f"cannot read {journal}: {error.strerror}") from error
    if content[:8] != JOURNAL_MAGIC or len(content) < 28 or len(now) < 100:
        return  # cut off before anything in it counts: SQLite ignores it
    old = _first_page(content)
    if old is None:  # then the first page of the file is as it was
        same = content[16:20] == now[PAGES]
    else:
        before, after = (int.from_bytes(page[COUNTER], "big") for page in (old, now))
        same = after in (before, (before + 1) % 2**32) and old[:24] == now[:24]
    if not same:
        raise CorruptStudyError(
            f"{journal} was left by another file than {path}: putting its pages back would damage "
            "the study; move it away if you put this file in the place of another"
        )


def check_log(path: Path) -> LogState | None:
    """The state of a write-ahead log (None: there is none); damage is named."""
    log = log_of(path)
    try:
        content = log.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CorruptStudyError(f"cannot read {log}: {error.strerror}") from error
    if not content:
        return None
    state = _walk(content, _index_of(path))
    if state.readable < state.written:
        raise CorruptStudyError(
            f"{log} is damaged: of {state.written} pages in it {state.readable} can be read. "
            f"Results that were told last are missing; `causalarms study recover {path} NEW.db` "
            "saves what is left and says what is gone"
        )
    return state


def _first_page(journal: bytes) -> bytes | None:
    """The first 100 bytes of page 1 as the journal has them; it consists of parts with headers."""
    start = 0
    while journal[start : start + 8] == JOURNAL_MAGIC and len(journal) >= start + 28:
        records, _, _, sector, page_size = struct.unpack(">5I", journal[start + 8 : start + 28])
        if not 512 <= page_size <= 65536 or not 32 <= sector <= 65536:
            return None
        size, place = page_size + 8, start + sector
        whole = (len(journal) - place) // size
        records = whole if records in (0, 2**32 - 1) else min(records, whole)
        for _ in range(records):
            if journal[place : place + 4] == b"\0\0\0\1":
                return journal[place + 4 : place + 104]
            place += size
        start = -(-place // sector) * sector
    return None


def _walk(content: bytes, index: bytes) -> LogState:
    """Follow the checksums; frames behind the first wrong one that carry the log's own salt."""
    if len(content) < WAL_HEADER:
        return LogState(0, 1)
    magic, _, page_size, _ = struct.unpack(">4I", content[:16])
    salts = content[16:24]
    order = ">" if magic & 1 else "<"
    size = FRAME_HEADER + page_size
    if magic not in WAL_MAGIC or not 512 <= page_size <= 65536:
        return LogState(0, max(1, len(content) // (FRAME_HEADER + 4096)))
    sums = _checksum(content[:24], (0, 0), order)
    if struct.pack(">2I", *sums) != content[24:32]:
        return LogState(0, max(1, (len(content) - WAL_HEADER) // size))
    readable, written, good = 0, _frames_noted(index, salts), True
    for number in range((len(content) - WAL_HEADER) // size):
        place = WAL_HEADER + number * size
        frame = content[place : place + size]
        if frame[8:16] != salts:
            good = good and written <= number  # an older log may end here
            continue
        if good:
            sums = _checksum(frame[24:], _checksum(frame[:8], sums, order), order)
            good = struct.pack(">2I", *sums) == frame[16:24]
        if good:
            readable = number + 1
        elif frame[4:8] != b"\0\0\0\0":  # the end of a finished write
            written = max(written, number + 1)
    return LogState(readable, max(readable, written))


def _checksum(data: bytes, start: tuple[int, int], order: str) -> tuple[int, int]:
    one, two = start
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return one, two


def _index_of(path: Path) -> bytes:
    """The index that those who had the log open shared; it is there after a kill."""
    try:
        with path.with_name(f"{path.name}-shm").open("rb") as file:
            return file.read(48)
    except OSError:
        return b""


def _frames_noted(index: bytes, salts: bytes) -> int:
    """How many frames the index of a log counts, if it is the index of this log."""
    if len(index) < 48 or index[32:40] != salts:
        return 0
    if struct.pack("=2I", *_checksum(index[:40], (0, 0), "=")) != index[40:48]:
        return 0
    return int(struct.unpack("=I", index[16:20])[0])
