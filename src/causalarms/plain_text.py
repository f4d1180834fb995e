"""Text from anywhere (names, notes, paths): screens and pages show it and never obey it."""

from __future__ import annotations

import re

# C0, DEL and C1; marks and overrides of direction; separators of lines; what is no character
_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def control_character(text: str) -> str | None:
    """The first character that `printable` would escape."""
    found = _CONTROL.search(text)
    return found.group() if found else None


def printable(text: object) -> str:
    """The text with control characters as escapes, for people; not to be read back.

    >>> print(printable("red " + chr(27) + "[31m"))
    red \\x1b[31m
    """
    return _CONTROL.sub(lambda found: ascii(found.group())[1:-1], str(text))
