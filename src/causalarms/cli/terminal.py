"""What all commands print with: tables for people, JSON for machines, progress on terminals.

rich is imported by what draws with it: most commands print a few lines, or JSON, and are done
sooner than it is imported.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any

import click
import msgspec

from causalarms import kernels
from causalarms.errors import CausalArmsWarning
from causalarms.files import aligned, printable

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

    from causalarms.simulation.monte_carlo import OnResult

QUIET_SECONDS = 1.0  # of compiling before anything is said about it
BARS = "▁▂▃▄▅▆▇█"
MAX_BARS = 60
CLEAR_LINE = "\r\x1b[K"


def say(line: object = "", *, err: bool = False) -> None:
    """One line, on standard output or standard error; FILE in a command is that of this one."""
    context = click.get_current_context(silent=True)
    file = shlex.quote(str(context.params.get("file", "FILE"))) if context else "FILE"
    text = re.sub(
        r"(causalarms study [a-z]+) FILE\b", lambda found: f"{found[1]} {file}", str(line)
    )
    click.echo(printable(text), err=err)


def print_data(text: str) -> None:
    """A file's content: as it is, but not at a terminal."""
    # Notes and names come from anybody; escape sequences in them would drive the terminal.
    if sys.stdout is not None and sys.stdout.isatty():
        text = "\n".join(map(printable, text.split("\n")))
    click.echo(text, nl=False)


def print_json(record: Any) -> None:
    """Strict JSON, records by the names of their fields; a number that is not finite is null."""
    # NaN is not JSON: most readers would refuse the whole document.
    click.echo(json.dumps(_finite(record), indent=1, allow_nan=False))


def emit(as_json: bool, record: Any, *lines: str) -> None:
    """The record for machines, or these lines for people."""
    if as_json:
        print_json(record)
        return
    for line in lines:
        say(line)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table, columns of numbers to the right; a terminal that is too narrow cuts lines."""
    header, *lines = aligned(columns, rows)
    # A line that wraps hides where the next row begins. In a file or pipe nothing is cut.
    if sys.stdout is not None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        header, *lines = (
            line if len(line) <= width else line[: width - 1] + "…" for line in (header, *lines)
        )
    click.secho(header, bold=True)
    for line in lines:
        click.echo(line)


def progress(*parts: str, keep: bool = False) -> Progress:
    """Bars or clocks on standard error while something takes long; silent off a terminal.

    parts   of a line: "bar", "spinner", "count", "time left", "time spent", or a text to show
    keep    leave the lines there at the end
    """
    from rich import progress as rich
    from rich.console import Console

    kinds: dict[str, Callable[[], ProgressColumn]] = {
        "bar": rich.BarColumn,
        "spinner": rich.SpinnerColumn,
        "count": rich.MofNCompleteColumn,
        "time left": rich.TimeRemainingColumn,
        "time spent": rich.TimeElapsedColumn,
    }
    columns = [kinds[part]() if part in kinds else rich.TextColumn(part) for part in parts]
    console = Console(stderr=True, highlight=False)
    # In a file or a pipe the codes that move a bar would only be noise.
    hidden = not console.is_terminal
    return rich.Progress(*columns, console=console, transient=not keep, disable=hidden)


@contextmanager
def runs_bar(verb: str, total: int) -> Iterator[OnResult]:
    """What `monte_carlo` and `compare_learners` call after every unit."""
    with progress("{task.description}", "bar", "count", "runs", "time left") as bar:
        task = bar.add_task(verb, total=total)

        def on_result(done: int, total: int, record: dict[str, Any] | None) -> None:
            # Nothing has finished at the start: there is no record to name.
            name = verb if record is None else printable(record["policy"])
            bar.update(task, completed=done, total=total, description=name)

        yield on_result


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Say what takes long, also off a terminal; the time that has passed only on one."""
    say(words, err=True)
    with progress("spinner", "{task.description}", "time spent") as clock:
        # How long it takes nobody knows: no total, so a clock instead of a bar.
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
        # By default Python shows a warning once per line of code, however often it is due.
        warnings.simplefilter("always", CausalArmsWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, CausalArmsWarning):
            messages.append(str(warning.message))
        else:
            # Those of other packages go on to the filters that were there before.
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if show:
        for message in messages:
            say(f"warning: {message}", err=True)


def _finite(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _finite(msgspec.to_builtins(value))
    if isinstance(value, tuple) and hasattr(value, "_asdict"):  # a NamedTuple
        return _finite(value._asdict())
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def sparkline(values: list[float]) -> str:
    """Averages of equal blocks as bars.

    >>> sparkline([0, 1, 2, 3, 4, 5, 6, 7])
    '▁▂▃▄▅▆▇█'
    """
    import numpy as np

    blocks = np.array_split(np.asarray(values, dtype=float), min(MAX_BARS, len(values)))
    means = np.array([block.mean() for block in blocks])
    span = means.max() - means.min()
    scaled = np.zeros(len(means)) if span == 0 else (means - means.min()) / span
    # The largest mean has level 1, which is past the last bar.
    return "".join(BARS[min(int(level * len(BARS)), len(BARS) - 1)] for level in scaled)
