"""`causalarms study`: a study from the shell, one command per step."""

from __future__ import annotations

import click

from causalarms.cli.main import LazyGroup

COMMANDS = {  # name -> (module of causalarms.cli, what it is for)
    "create": ("study_files", "Begin a study in a new file."),
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
    "graph": ("study_commands", "Show the learned edges."),
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


@click.group(cls=LazyGroup, commands_at=COMMANDS)
def study() -> None:
    """Run a real experiment: ask what to try, tell what was measured, lose nothing.

    Every command takes the study's file first, or the address of a service (its token is read from
    CAUSALARMS_TOKEN), and prints JSON with --json.
    """
