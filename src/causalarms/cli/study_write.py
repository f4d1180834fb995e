"""Commands that write to a study."""

from __future__ import annotations

from typing import Any

import click

from causalarms.cli.options import TIERS, edges, knowledge, with_settings
from causalarms.cli.study_options import (
    FILE,
    JSON,
    factors,
    levels,
    names,
    pairs_or_json,
    switched,
    with_set_levels,
)
from causalarms.cli.study_place import StudyPlace, file_of, open_study, worker_of
from causalarms.cli.terminal import collected_warnings, print_json, say
from causalarms.errors import StudyError
from causalarms.study import Study, Trial

PLAYED = click.option(
    "--played",
    metavar="A,B=LEVEL,...",
    help="Factors that were really on, or their levels ('' for none), where it is not what was "
    "asked.",
)


@click.command()
@FILE
@click.option("--nodes", required=True, metavar="A,B,...", help="All measured quantities.")
@click.option("--reward", required=True, metavar="NODE", help="The node that matters.")
@click.option("--minimize", is_flag=True, help="A small reward is wanted.")
@click.option(
    "--changes", is_flag=True, help="Mechanisms may change while you experiment: watch them."
)
@click.option("--policy", metavar="NAME[,SETTING=VALUE...]", help="[default: posterior]")
@click.option("--horizon", type=int, help="Rounds you expect to run  [default: 100 per node]")
@click.option(
    "--factor",
    multiple=True,
    metavar="NAME[=LEVEL,...][@NODE,...]",
    help="What you set: levels (off,on), nodes it acts on (that of its name)  [default: a switch "
    "per node]",
)
@click.option(
    "--sets",
    multiple=True,
    metavar="FACTOR=LEVEL,...",
    help="Levels that set the nodes: nothing else causes them then.",
)
@click.option("--intervenable", metavar="A,B,...", help="Nodes or factors that may be switched.")
@click.option("--max-interventions", type=int, help="Factors away from their first level.")
@click.option(
    "--forbid",
    multiple=True,
    metavar="A,B=LEVEL,...",
    help="Not together: factors that are on, or levels.",
)
@click.option(
    "--require",
    multiple=True,
    metavar="A=LEVEL,B=LEVEL",
    help="Levels that are set together or not at all.",
)
@TIERS
@edges("forbid_edge", "--forbid-edge", words="Edge that cannot be.")
@edges("require_edge", "--require-edge", words="Edge that must be.")
@click.option(
    "--cost",
    multiple=True,
    metavar="FACTOR[:LEVEL]=COST",
    help="Of leaving the first level, or of a level, in reward units.",
)
@click.option("--noise-mean", type=float, help="Known mean of the noise of every node.")
@click.option("--seed", type=int, default=0, show_default=True)
@JSON
def create(
    file: StudyPlace,
    nodes: str,
    reward: str,
    minimize: bool,
    changes: bool,
    policy: str | None,
    horizon: int | None,
    factor: tuple[str, ...],
    sets: tuple[str, ...],
    intervenable: str | None,
    max_interventions: int | None,
    forbid: tuple[str, ...],
    require: tuple[str, ...],
    tier: tuple[str, ...],
    forbid_edge: tuple[str, ...],
    require_edge: tuple[str, ...],
    cost: tuple[str, ...],
    noise_mean: float | None,
    seed: int,
    as_json: bool,
) -> None:
    """Begin a study in a new FILE."""
    constraints: dict[str, Any] = {
        "forbidden": [levels(group) if "=" in group else names(group) or [] for group in forbid],
        "required": [levels(group) for group in require],
    }
    if max_interventions is not None:
        constraints["max_interventions"] = max_interventions
    name, settings = (None, {}) if policy is None else with_settings(policy)
    with Study.create(
        file_of(file),
        nodes=names(nodes) or [],
        reward=reward,
        direction="minimize" if minimize else "maximize",
        policy=name,
        policy_settings=settings,
        horizon=horizon,
        intervenable=names(intervenable),
        constraints=constraints,
        costs=_costs(cost),
        factors=with_set_levels(factors(factor), sets),
        noise_mean=noise_mean,
        seed=seed,
        changes=changes,
        knowledge=knowledge(tier, forbid_edge, require_edge),
    ) as study:
        if as_json:
            print_json({"file": str(file), "settings": study.settings.as_dict()})
        else:
            say(f"created {file}: {len(study.nodes)} nodes, reward {reward}")


@click.command()
@FILE
@click.option("-n", "count", type=click.IntRange(1, 1000), default=1, show_default=True)
@click.option("--worker", help="Who asks; main unless you say so, of a file.")
@JSON
def ask(file: StudyPlace, count: int, worker: str | None, as_json: bool) -> None:
    """The next intervention; a worker with a pending trial gets that one again."""
    with open_study(file) as study:
        given = study.ask(count, worker_of(study, file, worker))
        named = study.settings.named
    trials: list[Trial] = given if isinstance(given, list) else [given]
    if as_json:
        records = [_record(trial) for trial in trials]
        print_json(records[0] if count == 1 else records)
        return
    for trial in trials:
        words = switched(named.words(list(trial.intervention.values())))
        say(f"trial {trial.number}: switch {words}  ({trial.reason})")


@click.command()
@FILE
@click.argument("trial", type=int)
@click.argument("values", nargs=-1, metavar="NODE=VALUE...|-")
@PLAYED
@JSON
def tell(
    file: StudyPlace, trial: int, values: tuple[str, ...], played: str | None, as_json: bool
) -> None:
    """The result of a TRIAL: a value for every node, or `-` for JSON on standard input."""
    given, messages = pairs_or_json(values), list[str]()
    with open_study(file) as study, collected_warnings(messages, show=not as_json):
        study.tell(trial, given, levels(played))
    _done(trial, "told", as_json, messages)


@click.command()
@FILE
@click.argument("trial", type=int)
@click.argument("values", nargs=-1, metavar="NODE=VALUE...|-")
@click.option("--withdraw", is_flag=True, help="The result was wrong and there is no other.")
@click.option("--reason", default="", help="Why.")
@PLAYED
@JSON
def correct(
    file: StudyPlace,
    trial: int,
    values: tuple[str, ...],
    withdraw: bool,
    reason: str,
    played: str | None,
    as_json: bool,
) -> None:
    """Replace the result of a TRIAL, or withdraw it."""
    if withdraw and (values or played is not None):
        raise click.UsageError("--withdraw takes no values and no --played")
    given, messages = None if withdraw else pairs_or_json(values), list[str]()
    with open_study(file) as study, collected_warnings(messages, show=not as_json):
        study.correct(trial, given, reason, levels(played))
    _done(trial, "corrected", as_json, messages)


@click.command()
@FILE
@click.argument("trial", type=int)
@click.option("--reason", default="", help="Why.")
@JSON
def fail(file: StudyPlace, trial: int, reason: str, as_json: bool) -> None:
    """A TRIAL was carried out and gave no result."""
    with open_study(file) as study:
        study.fail(trial, reason)
    _done(trial, "failed", as_json)


@click.command()
@FILE
@click.argument("trial", type=int)
@click.option("--reason", default="", help="Why.")
@JSON
def abandon(file: StudyPlace, trial: int, reason: str, as_json: bool) -> None:
    """A TRIAL will not be carried out."""
    with open_study(file) as study:
        study.abandon(trial, reason)
    _done(trial, "abandoned", as_json)


@click.command()
@FILE
@click.argument("text")
@click.option("--trial", type=int, help="The trial it is about.")
@JSON
def note(file: StudyPlace, text: str, trial: int | None, as_json: bool) -> None:
    """A remark for the log."""
    with open_study(file) as study:
        study.note(text, trial)
    if as_json:
        print_json({"noted": text})


@click.command()
@FILE
@click.argument("alarm", type=int)
@click.option("--note", "text", default="", help="What was found.")
@JSON
def acknowledge(file: StudyPlace, alarm: int, text: str, as_json: bool) -> None:
    """Say that an ALARM (its number in `alarms`) was seen."""
    with open_study(file) as study:
        study.acknowledge(alarm, text)
    if as_json:
        print_json({"alarm": alarm, "acknowledged": True})


def _done(trial: int, state: str, as_json: bool, warnings: list[str] | None = None) -> None:
    if as_json:
        print_json({"trial": trial, "state": state, "warnings": warnings or []})
    else:
        say(f"trial {trial}: {state}")


def _record(trial: Trial) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "intervention": trial.intervention,
        "switch": trial.switch,
        "levels": trial.levels,
        "worker": trial.worker,
        "reason": trial.reason,
        "predicted": trial.predicted,
    }


def _costs(given: tuple[str, ...]) -> dict[str, Any]:
    """`FACTOR=COST` or `FACTOR:LEVEL=COST`."""
    found: dict[str, Any] = {}
    for name, cost in (pairs_or_json(given) if given else {}).items():
        factor, colon, level = name.partition(":")
        if not colon:
            found[name] = cost
        elif isinstance(found.setdefault(factor, {}), dict):
            found[factor][level] = cost
        else:
            raise StudyError(f"the cost of {factor!r} is given as a whole and by level")
    return found
