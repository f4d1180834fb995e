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
from typing import Any, TextIO

import click

from causalarms.version import __version__

COMMANDS = {  # name -> (module of causalarms.cli, what it is for)
    "demo": ("demo", "The main job on a small unknown system, with pictures."),
    "learn": ("learn", "Learn a graph from logged rounds in a table."),
    "simulate": ("simulate", "Compare policies on random systems."),
    "learners": ("learners", "Compare learners of graphs on random systems."),
    "plot": ("plot", "Draw a results file of simulate or learners."),
    "study": ("study", "Run a real experiment: ask, tell, lose nothing."),
    "serve": ("serve", "Serve a study on the network: a live page and an API."),
    "serve-token": ("serve", "Say who may use a served study."),
    "reproduce": ("reproduce", "Regenerate every figure and number of the paper."),
    "doctor": ("doctor", "Show versions, threads, caches and extras, for bug reports."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called.

    commands_at   name of a command -> (module of causalarms.cli, what it is for)
    """

    def __init__(
        self, *arguments: Any, commands_at: dict[str, tuple[str, str]], **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.commands_at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands_at:
            return None
        module = import_module(f"causalarms.cli.{self.commands_at[cmd_name][0]}")
        name = cmd_name.replace("-", "_")
        command = getattr(module, "import_" if name == "import" else name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in self.commands_at.items()])


@click.group(
    cls=LazyGroup,
    commands_at=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
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
            # Python would print the file and line of this package, which help nobody.
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
    """Nobody reads: what is left in the buffer must not be written again when Python ends."""
    with suppress(OSError, AttributeError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
