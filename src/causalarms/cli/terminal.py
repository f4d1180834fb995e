"""What all commands print with: tables for people, JSON for machines, live lines on terminals."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from causalarms.errors import CausalArmsWarning
from causalarms.plain_text import printable


def say(line: object = "", *, err: bool = False) -> None:
    """One line, on standard output or standard error."""
    click.echo(printable(line), err=err)


def print_data(text: str) -> None:
    """A file's content: as it is, but not at a terminal."""
    if sys.stdout is not None and sys.stdout.isatty():
        text = "\n".join(map(printable, text.split("\n")))
    click.echo(text, nl=False)


def out() -> Console:
    """Standard output; wide when it is not a terminal, so that nothing is cut."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=160)


def err() -> Console:
    """Standard error: progress and warnings."""
    return Console(stderr=True, highlight=False)


def print_json(record: Any) -> None:
    """Strict JSON: a number that is not finite becomes null."""
    click.echo(json.dumps(_finite(record), indent=1, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> Table:
    """A plain table; the numbers are right-aligned already by being text of one width."""
    result = Table(
        title=Text(printable(title)) if title else None,
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for position, column in enumerate(columns):
        numeric = bool(rows) and all(_is_number(row[position]) for row in rows)
        result.add_column(
            Text(printable(column)), justify="right" if numeric else "left", no_wrap=True
        )
    for row in rows:
        result.add_row(*(Text(printable(cell)) for cell in row))
    return result


@contextmanager
def collected_warnings(messages: list[str], *, show: bool) -> Iterator[None]:
    """Collect the package's warnings as text, printing them afterwards where asked."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CausalArmsWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, CausalArmsWarning):
            messages.append(str(warning.message))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if show:
        for message in messages:
            say(f"warning: {message}", err=True)


def _is_number(text: str) -> bool:
    try:
        float(text.strip().rstrip("%") or "0")
    except ValueError:
        return False
    return True
