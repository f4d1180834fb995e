"""Fenced blocks of the documents, and whether what they show is what comes out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: .+ -->\s*\Z")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d*)?(?:e-?\d+)?")
CLOSE = {"rel_tol": 0.05, "abs_tol": 0.02}  # other machines round other last digits
ELISION = "..."


class Block(NamedTuple):
    language: str
    text: str
    line: int
    not_run: bool


def blocks(document: Path) -> Iterator[Block]:
    """Fenced blocks in the order of the document."""
    content = document.read_text(encoding="utf-8")
    for fence in FENCE.finditer(content):
        before = content[: fence.start()]
        yield Block(
            fence[1], fence[2], before.count("\n") + 2, NOT_RUN.search(before.rstrip()) is not None
        )


def commands(console: str) -> Iterator[tuple[str, str]]:
    """Every `$ command` of a console block with the output shown below it."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        joined = part.replace("\\\n", "")
        command, _, shown = joined.partition("\n")
        yield " ".join(command.split()), shown


def differences(shown: str, printed: str) -> list[str]:
    """Lines that are shown but not printed in that order; a line `...` stands for any number."""
    rest = [line for line in printed.splitlines() if line.strip()]
    missing, skipping = [], False
    for line in (line for line in shown.splitlines() if line.strip()):
        if line.strip() == ELISION:
            skipping = True
            continue
        places = range(len(rest)) if skipping else range(min(1, len(rest)))
        place = next((i for i in places if same(line, rest[i])), None)
        if place is None:
            missing.append(f"shown: {line}\nprinted: {rest[0] if rest else '(nothing)'}")
        else:
            del rest[: place + 1]
        skipping = False
    if rest and not skipping:
        missing.append(f"not shown: {rest[0]}")
    return missing


def same(shown: str, printed: str) -> bool:
    """The same words, and numbers that are close.

    >>> same("regret  548.1 of 600", "regret 548.2 of 600"), same("regret 548.1", "reward 548.1")
    (True, False)
    """
    ours, theirs = (" ".join(text.split()) for text in (shown, printed))
    return [p.split() for p in NUMBER.split(ours)] == [
        p.split() for p in NUMBER.split(theirs)
    ] and all(
        math.isclose(float(a), float(b), **CLOSE)
        for a, b in zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True)
    )
