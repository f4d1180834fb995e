"""Events found in the raw bytes of a damaged file, whatever SQLite says of it.

A page of a table holds cells; a cell of `events` is the number, the text, the hash and (since
version 2) the hash of the event before. Where a page's directory is damaged the texts are found by
their shape. What is found is a candidate: only its hash tells whether it is whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from causalarms.study.leftovers import FRAME_HEADER, WAL_HEADER, journal_of, log_of

LEAF = 13  # kind of a page that holds rows
HASH = 32
SHORTEST = 120  # bytes that an event takes at least, with its hashes
START = re.compile(rb'\{"at":"')
EVENT = re.compile(rb'\{"at":"[^"]*","data":.*?,"kind":"[a-z ]+","number":(\d+)\}', re.DOTALL)


class Candidate(NamedTuple):
    number: int
    text: str
    hash: bytes
    previous: bytes


def candidates(path: Path) -> list[Candidate]:
    """All that look like events in a study's file and in what lies beside it."""
    content = path.read_bytes()
    size = _page_size(content)
    found = set(_of_pages(content, size, 0, size))
    found.update(_of_texts(content))
    for beside, start, stride, header in (
        (log_of(path), WAL_HEADER, size + FRAME_HEADER, FRAME_HEADER),
        (journal_of(path), 512, size + 8, 4),
    ):
        if beside.is_file():
            extra = beside.read_bytes()
            found.update(_of_pages(extra, size, start + header, stride))
            found.update(_of_texts(extra))
    return sorted(found)


def stated_end(path: Path) -> int:
    """The number of the last event as the file notes it; 0 where no believable note is left."""
    content = path.read_bytes()
    size = _page_size(content)
    full_length = max(len(content), size * int.from_bytes(content[28:32], "big"))
    found = [0]
    for place in range(0, len(content), size):
        for record in _records(content, place, size, 100 if place == 0 else 0, whole=False):
            row = record.columns
            if record.number == 1 and len(row) == 3 and len(row[1]) <= 6 and len(row[2]) == HASH:
                found.append(int.from_bytes(row[1], "big"))
    return max(number for number in found if number * SHORTEST <= full_length)


def _page_size(content: bytes) -> int:
    stated = int.from_bytes(content[16:18], "big")
    return stated if stated in (512, 1024, 2048, 8192, 16384, 32768) else 4096


class _Record(NamedTuple):
    number: int  # of the row
    columns: list[bytes]
    kinds: list[int]


def _of_pages(content: bytes, size: int, start: int, stride: int) -> Iterator[Candidate]:
    for place in range(start, len(content), stride):
        skip = 100 if place == 0 else 0
        for record in _records(content, place, size, skip, whole=stride == size):
            row, kinds = record.columns, record.kinds
            if len(row) not in (3, 4) or len(row[2]) != HASH or kinds[1] < 13 or not kinds[1] % 2:
                continue
            try:
                text = row[1].decode("utf-8")
            except UnicodeDecodeError:
                continue
            yield Candidate(record.number, text, row[2], row[3] if len(row) == 4 else b"")


def _records(content: bytes, place: int, size: int, skip: int, *, whole: bool) -> Iterator[_Record]:
    """The rows on one page; where `content` is a whole file, also those that go on elsewhere."""
    page = content[place : place + size]
    if len(page) <= skip + 8 or page[skip] != LEAF:
        return
    cells = int.from_bytes(page[skip + 3 : skip + 5], "big")
    for number in range(min(cells, size // 4)):
        pointer = skip + 8 + 2 * number
        cell = int.from_bytes(page[pointer : pointer + 2], "big")
        try:
            found = _record(page, cell, content if whole else b"", size)
        except IndexError:
            continue
        if found is not None:
            yield found


def _record(page: bytes, at: int, pages: bytes, size: int) -> _Record | None:
    length, at = _varint(page, at)
    number, at = _varint(page, at)
    if not 0 < length < 2**30 or not 0 < number < 2**40:
        return None
    payload = _payload(page, at, length, pages, size)
    if payload is None:
        return None
    start, position = _varint(payload, 0)
    kinds, columns = [], []
    while position < start:
        kind, position = _varint(payload, position)
        kinds.append(kind)
    for kind in kinds:
        width = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)[kind] if kind < 10 else (kind - 12) // 2
        columns.append(payload[start : start + width])
        start += width
    return _Record(number, columns, kinds)


def _payload(page: bytes, at: int, length: int, pages: bytes, size: int) -> bytes | None:
    """The bytes of a row, also where they go on in other pages."""
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    if length <= most:
        return page[at : at + length]
    here = least + (length - least) % (size - 4)
    here = least if here > most else here
    parts, left = [page[at : at + here]], length - here
    following = int.from_bytes(page[at + here : at + here + 4], "big")
    while left > 0 and following and following * size <= len(pages):
        start = (following - 1) * size
        parts.append(pages[start + 4 : start + 4 + min(left, size - 4)])
        left -= size - 4
        following = int.from_bytes(pages[start : start + 4], "big")
    return b"".join(parts) if left <= 0 else None


def _of_texts(content: bytes) -> Iterator[Candidate]:
    for start in START.finditer(content):
        match = EVENT.match(content, start.start())
        if match is None:
            continue
        try:
            text = match[0].decode("utf-8")
        except UnicodeDecodeError:
            continue
        if len(match[1]) < 12:
            end = match.end()
            hash_, previous = content[end : end + HASH], content[end + HASH : end + 2 * HASH]
            yield Candidate(int(match[1]), text, hash_, previous)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count in range(9):
        byte = data[at + count]
        if count == 8:
            return (value << 8) | byte, at + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, at + count + 1
    raise IndexError
