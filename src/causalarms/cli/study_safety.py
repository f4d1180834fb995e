"""Commands that check, copy and save the file of a study."""

from __future__ import annotations

from pathlib import Path

import click

from causalarms.cli.study_options import FILE, JSON
from causalarms.cli.study_place import Address, StudyPlace, file_of, open_study
from causalarms.cli.terminal import print_json, say
from causalarms.study import repair
from causalarms.study.learner import Learner


@click.command()
@FILE
@click.option("--replay", is_flag=True, help="Also check every suggestion; takes its time.")
@JSON
def verify(file: StudyPlace, replay: bool, as_json: bool) -> None:
    """Check every event; exit code 1 if one cannot be trusted."""
    if isinstance(file, Address):
        with open_study(file) as study:
            verdict = study.verify(replay=replay)
    else:
        verdict = repair.verify_file(file, replay=Learner if replay else None)
    if as_json:
        print_json(verdict.as_dict())
    else:
        say(
            f"{'ok' if verdict.ok else 'DAMAGED'}: {verdict.message}; {verdict.events} events, "
            f"{verdict.trials} trials, {verdict.told} told"
        )
        for remark in verdict.remarks:
            say(f"remark: {remark}")
        if verdict.first_bad is not None and verdict.last_told is not None:
            say(f"the last trial whose result is sure is {verdict.last_told}")
        if verdict.first_bad is not None:
            say(f"save what is whole: causalarms study recover {file} NEW.db")
    if not verdict.ok:
        raise click.exceptions.Exit(1)


@click.command()
@FILE
@click.argument("rescued", type=click.Path(path_type=Path))
@click.option(
    "--settings-from",
    metavar="BACKUP",
    type=click.Path(path_type=Path),
    help="A backup of the same study, for its settings if the first event is gone.",
)
@JSON
def recover(file: StudyPlace, rescued: Path, settings_from: Path | None, as_json: bool) -> None:
    """Copy all whole events of a damaged study to RESCUED, and say what is gone.

    Every whole event is also written to RESCUED.events.jsonl, a line of JSON each.
    """
    rescue = repair.recover(file_of(file), rescued, settings_from=settings_from)
    if as_json:
        print_json(rescue.as_dict())
        return
    say(f"rescued {rescue.kept} events, {rescue.verdict.told} told trials into {rescued}")
    say(f"every whole event is in {rescue.events_file}")
    for remark in rescue.verdict.remarks:
        say(remark)


@click.command()
@FILE
@click.argument("copy", type=click.Path(path_type=Path))
@JSON
def backup(file: StudyPlace, copy: Path, as_json: bool) -> None:
    """Copy a study, also while it is in use, to COPY; the copy is checked."""
    if isinstance(file, Address):
        with open_study(file) as study:
            verdict = study.backup(copy)
    else:
        verdict = repair.backup(file, copy)
    if as_json:
        print_json({"file": str(copy)} | verdict.as_dict())
    else:
        say(f"copied {verdict.events} events, {verdict.told} told trials to {copy}")
