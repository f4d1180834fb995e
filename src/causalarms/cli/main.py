"""`causalarms`: commands are imported when they are called, so that `--help` answers at once.

Exit codes: 0 done, 1 the input was refused with a message, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import version

import click

COMMANDS = {  # name -> what it is for; the module causalarms.cli.<name> holds a command `<name>`
    "demo": "The main job on a small unknown system, with pictures.",
    "learn": "Learn a graph from logged rounds in a table.",
    "simulate": "Compare policies on random systems.",
    "study": "Run a real experiment: ask, tell, lose nothing.",
    "reproduce": "Regenerate every figure and number of the paper.",
}


class LazyCommands(click.Group):
    """A group whose commands live in modules of the same name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"causalarms.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("causalarms"), prog_name="causalarms")
def cli() -> None:
    """Causal bandits with an unknown graph and unknown, soft interventions."""


def main() -> None:
    """Run a command; refusals become one line on stderr, never a traceback."""
    from causalarms.errors import CausalArmsError

    try:
        code = cli(standalone_mode=False)  # click turns its own exits into a return value
        if code:
            sys.exit(code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except CausalArmsError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
