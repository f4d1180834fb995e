"""Options and kinds of values that several commands share."""

from __future__ import annotations

from typing import Any

import click

FORCE = click.option(
    "--force", is_flag=True, help="Replace a file this command did not make; never a study."
)
SEED = click.IntRange(min=0)
NODES = click.IntRange(min=2, max=10_000)
SAMPLES = click.IntRange(min=1, max=10**9)


class Processes(click.IntRange):
    """A number of processes, or -1 for one per core."""

    def __init__(self) -> None:
        super().__init__(min=-1, max=1024)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = int(super().convert(value, param, ctx))
        if number == 0:
            self.fail("0 processes do nothing; -1 is one per core.", param, ctx)
        return number


PROCESSES = Processes()
