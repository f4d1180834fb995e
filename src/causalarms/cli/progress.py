"""A bar or a clock on standard error while something takes long; silent off a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from causalarms.cli.terminal import err, say
from causalarms.plain_text import printable
from causalarms.simulation.monte_carlo import OnResult


@contextmanager
def runs_bar(verb: str, total: int) -> Iterator[OnResult]:
    """What `monte_carlo` and `compare_learners` call after every unit."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeRemainingColumn(),
        console=err(),
        transient=True,
        disable=not err().is_terminal,
    ) as progress:
        task = progress.add_task(verb, total=total)

        def on_result(done: int, total: int, record: dict[str, Any] | None) -> None:
            name = verb if record is None else printable(record["policy"])
            progress.update(task, completed=done, total=total, description=name)

        yield on_result


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Says what takes long, wherever; how long it has taken so far only on a terminal."""
    say(words, err=True)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=err(),
        transient=True,
        disable=not err().is_terminal,
    ) as progress:
        progress.add_task("starting", total=None)
        yield
