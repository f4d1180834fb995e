"""What all commands print with: tables for people, JSON for machines, progress on terminals.

rich is imported by what draws with it: most commands print a few lines, or JSON, and are done
sooner than it is imported.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any

import click
import msgspec

from causalarms import kernels
from causalarms.errors import CausalArmsWarning
from causalarms.files import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

    from causalarms.simulation.monte_carlo import OnResult

QUIET_SECONDS = 1.0  # of compiling before anything is said about it
CLEAR_LINE = "\r\x1b[K"


def say(line: object = "", *, err: bool = False) -> None:
    """One line, on standard output or standard error."""
    click.echo(printable(line), err=err)


def print_data(text: str) -> None:
    """A file's content: as it is, but not at a terminal."""
    # Notes and names come from anybody; escape sequences in them would drive the terminal.
    if sys.stdout is not None and sys.stdout.isatty():
        text = "\n".join(map(printable, text.split("\n")))
    click.echo(text, nl=False)


def print_json(record: Any) -> None:
    """Strict JSON: a number that is not finite becomes null."""
    click.echo(json.dumps(_finite(record), indent=1, allow_nan=False))


def emit(as_json: bool, record: Any, *lines: str) -> None:
    """The record for machines, or these lines for people."""
    if as_json:
        print_json(record)
        return
    for line in lines:
        say(line)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table, columns of numbers to the right; wide off a terminal, so nothing is cut."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for position, column in enumerate(columns):
        numeric = bool(rows) and all(_is_number(row[position]) for row in rows)
        table.add_column(
            Text(printable(column)), justify="right" if numeric else "left", no_wrap=True
        )
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console = Console(highlight=False)
    (console if console.is_terminal else Console(highlight=False, width=160)).print(table)


def err() -> Console:
    """Standard error: progress and warnings."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def progress(*columns: ProgressColumn, keep: bool = False) -> Progress:
    """Bars or clocks on standard error while something takes long; silent off a terminal.

    keep   leave them there at the end
    """
    from rich.progress import Progress

    console = err()
    return Progress(*columns, console=console, transient=not keep, disable=not console.is_terminal)


@contextmanager
def runs_bar(verb: str, total: int) -> Iterator[OnResult]:
    """What `monte_carlo` and `compare_learners` call after every unit."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeRemainingColumn(),
    )
    with progress(*columns) as bar:
        task = bar.add_task(verb, total=total)

        def on_result(done: int, total: int, record: dict[str, Any] | None) -> None:
            name = verb if record is None else printable(record["policy"])
            bar.update(task, completed=done, total=total, description=name)

        yield on_result


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Say what takes long, also off a terminal; the time that has passed only on one."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    say(words, err=True)
    with progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as clock:
        clock.add_task("starting", total=None)
        yield


@contextmanager
def compiling_shown() -> Iterator[None]:
    """Say once that kernels are compiled, if that takes long; on a terminal, how many so far."""
    began, count, said = 0.0, 0, False
    live = sys.stderr is not None and sys.stderr.isatty()

    def tell(name: str) -> None:
        nonlocal began, count, said
        count += 1
        began = began or time.monotonic()
        if not said and time.monotonic() - began > QUIET_SECONDS:
            said = True
            say("compiling the model: up to a minute, only this once", err=True)
        if said and live:
            click.echo(f"{CLEAR_LINE}{count} kernels, {name}", err=True, nl=False)

    kernels.before_compiling.append(tell)
    try:
        yield
    finally:
        kernels.before_compiling.remove(tell)
        if said and live:
            click.echo(CLEAR_LINE, err=True, nl=False)


@contextmanager
def collected_warnings(messages: list[str], *, show: bool) -> Iterator[None]:
    """Collect the package's warnings as text; `show` prints them afterwards."""
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


def _finite(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _finite(msgspec.to_builtins(value))
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _is_number(text: str) -> bool:
    try:
        float(text.strip().rstrip("%") or "0")
    except ValueError:
        return False
    return True
