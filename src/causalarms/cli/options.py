"""Options and kinds of values that several commands share."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

import click

from causalarms.limits import MAX_NODES

Command = TypeVar("Command", bound=Callable[..., Any])
FORCE = click.option(
    "--force", is_flag=True, help="Replace a file this command did not make; never a study."
)
SEED = click.IntRange(min=0)
NODES = click.IntRange(min=2, max=MAX_NODES)
SAMPLES = click.IntRange(min=1, max=10**9)


TIERS = click.option(
    "--tier",
    "--tiers",
    "tier",
    multiple=True,
    metavar="A,B,...",
    help="Nodes of a tier, earliest first; no edge goes back.",
)


def with_settings(text: str) -> tuple[str, dict[str, Any]]:
    """`name,setting=value,...`; values are numbers, True, False, lists or text."""
    name, *pairs = text.split(",")
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is not of the form setting=value")
        key = key.strip()
        if key in settings:
            raise click.BadParameter(f"the setting {key!r} is given twice")
        try:
            settings[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            settings[key] = value.strip()
    return name.strip(), settings


def edge(text: str) -> tuple[str, str]:
    """`A->B`, or `A:B` where a shell would take > for itself.

    >>> edge("heat->yield"), edge("heat:yield")
    (('heat', 'yield'), ('heat', 'yield'))
    """
    arrow = "->" if "->" in text else ":"
    parent, _, child = (part.strip() for part in text.partition(arrow))
    if not parent or not child or (arrow == ":" and ":" in child):
        raise click.BadParameter(f"{text!r} is not of the form A->B")
    return parent, child


def edges(name: str, *spellings: str, words: str) -> Callable[[Command], Command]:
    """An option that may be repeated, an edge each time."""
    return click.option(*spellings, name, multiple=True, metavar="A->B|A:B", help=words)


def knowledge(
    tier: tuple[str, ...], forbidden: tuple[str, ...], required: tuple[str, ...]
) -> dict[str, Any]:
    """What these options say, in the words of learners and studies."""
    return {
        "tiers": [[name.strip() for name in text.split(",") if name.strip()] for text in tier],
        "forbidden": [edge(text) for text in forbidden],
        "required": [edge(text) for text in required],
    }


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
