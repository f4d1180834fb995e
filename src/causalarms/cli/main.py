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
    "learners": ("simulate", "Compare learners of graphs on random systems."),
    "plot": ("simulate", "Draw a results file of simulate or learners."),
    # A group of this module: its commands are imported one by one as well.
    "study": ("main", "Run a real experiment: ask, tell, lose nothing."),
    "serve": ("serve", "Serve a study on the network: a live page and an API."),
    "serve-token": ("serve", "Say who may use a served study."),
    "reproduce": ("reproduce", "Regenerate every figure and number of the paper."),
    "doctor": ("doctor", "Show versions, threads, caches and extras, for bug reports."),
}


STUDY_COMMANDS = {
    "create": ("study_files", "Begin a study in a new file."),
    "change": ("study_files", "Go on with other settings: rules, costs, levels, policy."),
    "ask": ("study_commands", "Ask for the next intervention to try."),
    "tell": ("study_commands", "Tell the result of a trial."),
    "fail": ("study_commands", "Say that a trial was carried out and gave no result."),
    "abandon": ("study_commands", "Say that a trial will not be carried out."),
    "correct": ("study_commands", "Replace or withdraw a result; both stay in the log."),
    "note": ("study_commands", "Add a remark to the log."),
    "acknowledge": ("study_commands", "Say that an alarm was seen."),
    "import": ("study_files", "Add past rounds from a table, or restore an exported study."),
    "show": ("study_commands", "Show the state of a study on one screen."),
    "best": ("study_commands", "Show the best intervention known and how sure that is."),
    "predict": ("study_commands", "Show the expected values under an intervention."),
    "effects": ("study_commands", "Show what every factor does."),
    "graph": ("study_files", "Show the learned edges."),
    "alarms": ("study_commands", "Show mechanisms that seem to have changed."),
    "explain": ("study_commands", "Say why a trial was suggested."),
    "history": ("study_commands", "Show all trials."),
    "export": ("study_files", "Write the log as JSON, or the trials as CSV or Parquet."),
    "verify": ("study_files", "Check every event."),
    "backup": ("study_files", "Copy a study, also while it is in use."),
    "recover": ("study_files", "Save the intact events of a damaged study."),
    "report": ("study_files", "Write a web page with everything, in one file."),
    "simulate-on": ("study_files", "Play a study against a known system."),
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
        # click's own list imports every command for the first line of its help.
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in self.commands_at.items()])


@click.group(
    cls=LazyGroup,
    commands_at=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, prog_name="causalarms")
def cli() -> None:
    """Causal bandits with an unknown graph and unknown, soft interventions."""


@click.group(cls=LazyGroup, commands_at=STUDY_COMMANDS)
def study() -> None:
    """Run a real experiment: ask what to try, tell what was measured, lose nothing.

    The first argument of every command is the file of the study, or the address of a service (its
    token is read from CAUSALARMS_TOKEN). With --json a command prints JSON.
    """


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
            # Standalone, click would print errors and end the process past the handlers below.
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
