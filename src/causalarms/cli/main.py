"""`causalarms`: commands are imported when they are called, so that `--help` answers at once.

Exit codes: 0 done, 1 the input was refused with a message, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from typing import TextIO

import click

from causalarms.version import __version__

COMMANDS = {  # name -> what it is for; the module causalarms.cli.<name> holds a command `<name>`
    "demo": "The main job on a small unknown system, with pictures.",
    "learn": "Learn a graph from logged rounds in a table.",
    "simulate": "Compare policies on random systems.",
    "learners": "Compare learners of graphs on random systems.",
    "plot": "Draw a results file of simulate or learners.",
    "study": "Run a real experiment: ask, tell, lose nothing.",
    "serve": "A study on the network: a live page and an API.",
    "serve-token": "Who may use a served study.",
    "reproduce": "Regenerate every figure and number of the paper.",
    "doctor": "Versions, threads, caches and extras, for bug reports.",
}


class LazyCommands(click.Group):
    """A group whose commands live in modules of the same name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command = getattr(import_module(f"causalarms.cli.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="causalarms")
def cli() -> None:
    """Causal bandits with an unknown graph and unknown, soft interventions."""


def main() -> None:
    """Run a command; refusals become one line on stderr, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may know fewer letters than we print
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run()
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:  # mostly of standard output: a closed pipe, a full disk
        _drop_output()
        if not isinstance(error, BrokenPipeError):
            with suppress(OSError):
                _complain(f"error: {error}")
        code = 1
    if code:
        sys.exit(code)


def _run() -> int:
    from causalarms.errors import CausalArmsError

    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            return int(cli(standalone_mode=False) or 0)  # click returns the codes of its own exits
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        _complain(text.getvalue().rstrip("\n"))
        return error.exit_code
    except CausalArmsError as error:
        _complain(f"error: {' '.join(str(error).splitlines())}")
        return 1
    except MemoryError:
        _complain("error: there is not enough memory for this")
        return 1
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted")
        return 130


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    _complain(f"warning: {' '.join(str(message).splitlines())}")


def _complain(text: str) -> None:
    from causalarms.cli.terminal import say

    for line in text.split("\n"):
        say(line, err=True)


def _drop_output() -> None:
    """Nobody reads: what is left in the buffer must not be tried again when Python ends."""
    with suppress(OSError, AttributeError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
