"""`causalarms study`: a study from the shell, one command per step."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {  # name -> (module of causalarms.cli, what it is for)
    "create": ("study_write", "Begin a study in a new file."),
    "ask": ("study_write", "The next intervention to try."),
    "tell": ("study_write", "The result of a trial."),
    "fail": ("study_write", "A trial was carried out and gave no result."),
    "abandon": ("study_write", "A trial will not be carried out."),
    "correct": ("study_write", "Replace or withdraw a result; both stay in the log."),
    "note": ("study_write", "A remark for the log."),
    "acknowledge": ("study_write", "Say that an alarm was seen."),
    "import": ("study_files", "Add past rounds from a table, or restore an exported study."),
    "show": ("study_read", "The state of a study on one screen."),
    "best": ("study_read", "The best intervention known and how sure that is."),
    "predict": ("study_read", "Expected values under an intervention."),
    "graph": ("study_read", "The learned edges."),
    "alarms": ("study_read", "Mechanisms that seem to have changed."),
    "explain": ("study_read", "Why a trial was suggested."),
    "history": ("study_read", "All trials."),
    "export": ("study_files", "The log as JSON, or the trials as CSV or Parquet."),
    "verify": ("study_safety", "Check every event."),
    "backup": ("study_safety", "Copy a study, also while it is in use."),
    "recover": ("study_safety", "Save what is whole of a damaged study."),
    "report": ("study_files", "A web page with everything, in one file."),
    "simulate-on": ("study_simulate", "Play a study against a known system."),
}


class StudyCommands(click.Group):
    """Commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"causalarms.cli.{COMMANDS[cmd_name][0]}")
        name = cmd_name.replace("-", "_")
        command = getattr(module, f"{name}_" if name == "import" else name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in COMMANDS.items()])


@click.group(cls=StudyCommands)
def study() -> None:
    """Run a real experiment: ask what to try, tell what was measured, lose nothing.

    Every command takes the study's file first, or the address of a service (its token is read from
    CAUSALARMS_TOKEN), and prints JSON with --json.
    """
