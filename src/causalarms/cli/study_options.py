"""Options and input that all commands of a study share, and where the study is.

The study itself is imported when it is opened: `--help` and wrong usage are answered without it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from causalarms.cli.options import JSON, names
from causalarms.cli.terminal import compiling_shown, say
from causalarms.errors import AlarmWarning, FarValueWarning, LearningWarning, StudyError
from causalarms.files import parse_json
from causalarms.limits import STANDARD_INPUT_BYTES

if TYPE_CHECKING:
    from causalarms.study import Study
    from causalarms.study.records import Alarm

TOKEN = "CAUSALARMS_TOKEN"  # in the environment: arguments of commands are seen by all users

POLICY = click.option(
    "--policy",
    metavar="NAME[,SETTING=VALUE...]",
    help="Policy that chooses interventions  [default: posterior]",
)
HORIZON = click.option(
    "--horizon", type=int, help="Number of rounds you expect to run  [default: 100 per node]"
)
INTERVENABLE = click.option(
    "--intervenable",
    metavar="A,B,...",
    help="What may be switched  [default: all factors, or all nodes but the reward]",
)
AT_MOST = click.option(
    "--max-interventions",
    type=int,
    help="Largest number of factors that are away from their first level in one trial.",
)
FORBID = click.option(
    "--forbid",
    multiple=True,
    metavar="A,B=LEVEL,...",
    help="Factors, or levels of them, that must not be on together; may be repeated.",
)
REQUIRE = click.option(
    "--require",
    multiple=True,
    metavar="A=LEVEL,B=LEVEL",
    help="Levels that are set together or not at all; may be repeated.",
)
COST = click.option(
    "--cost",
    multiple=True,
    metavar="FACTOR[:LEVEL]=COST",
    help="Cost of a level, or of any level but the first, in units of the reward; may be repeated.",
)
WORKER = click.option(
    "--worker",
    help="Name of the worker  [default: main, or over the network the name of the token]",
)
FAILURE_REWARD = click.option(
    "--failure-reward",
    type=float,
    help="What a failed trial is worth, in units of the reward  [default: the worst result so far]",
)


@dataclass(frozen=True)
class Address:
    """The address of a service."""

    url: str

    @property
    def name(self) -> str:
        # Without a name and password that stand before the host: this is printed.
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def __str__(self) -> str:
        return self.url


StudyPlace = Path | Address


class PlaceType(click.Path):
    """A path, or an address that begins with http:// or https://."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # Schemes of addresses are the same in any case.
        if str(value).lower().startswith(("http://", "https://")):
            return Address(str(value))
        return Path(str(super().convert(value, param, ctx)))


def study_command(function: Callable[..., None]) -> click.Command:
    """A command whose first argument is the study, and whose last option is --json."""
    command = click.command(click.argument("file", type=PlaceType())(function))
    return JSON(command)


@contextmanager
def open_study(place: StudyPlace, *, read_only: bool = False) -> Iterator[Study]:
    """The study in a file or behind an address; says so if its model has to be compiled."""
    if isinstance(place, Path):
        from causalarms.study import Study

        opened = Study.open(place, read_only=read_only)
    else:
        from causalarms.service.remote import RemoteStudy

        opened = RemoteStudy(place.url, os.environ.get(TOKEN))
    with opened as study, compiling_shown(), warnings.catch_warnings():
        # What a study warns of, its methods return as well: the commands print that.
        for kind in (AlarmWarning, FarValueWarning, LearningWarning):
            warnings.simplefilter("ignore", kind)
        yield study


def worker_of(study: Study, place: StudyPlace, given: str | None) -> str:
    """Name of the worker that asks.

    Over the network it must be given: two machines must not share their trials.
    """
    if given is not None:
        return given
    if isinstance(place, Path):
        from causalarms.study.study import DEFAULT_WORKER

        return DEFAULT_WORKER
    name: str = getattr(study, "caller_name", "")
    if not name:
        raise StudyError(f"say who asks: --worker NAME; {place} serves several workers")
    return name


def file_of(place: StudyPlace) -> Path:
    """The file; StudyError if the study is behind an address."""
    if isinstance(place, Address):
        raise StudyError(
            f"this needs the file of the study, not {place}: do it on the machine that serves it"
        )
    return place


def inputs_of(place: StudyPlace) -> list[Path]:
    """Files that must not be written over."""
    return [place] if isinstance(place, Path) else []


def pairs_or_json(pairs: tuple[str, ...]) -> dict[str, Any]:
    """A result: `node=value ...`, or `-` for a JSON object on standard input."""
    if pairs == ("-",):
        return json_object(_standard_input())
    if not pairs:
        raise click.UsageError("give node=value for every node, or - and JSON on standard input")
    return numbers("node", "node=value", pairs)


def numbers(kind: str, form: str, pairs: Iterable[str]) -> dict[str, Any]:
    """Numbers by name; nothing, `null` or `None` is one that is not known.

    The `kind` of thing that has the number and the `form` of a pair are for messages.
    """

    def parsed(text: str) -> tuple[str, float | None]:
        # From the right: the name of a node may hold "=", a number does not.
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise click.UsageError(f"{text!r} is not of the form {form}")
        if value.strip().lower() in ("", "null", "none"):
            return name, None
        try:
            return name, float(value)
        except ValueError:
            raise StudyError(f"{kind} {name!r} is {value!r}, not a number") from None

    return _once(kind, map(parsed, pairs))


def _standard_input() -> str:
    try:
        # One more than allowed, which tells that there is more without reading it.
        text = sys.stdin.read(STANDARD_INPUT_BYTES + 1)
    except (OSError, ValueError, AttributeError) as error:  # closed, or no text
        raise StudyError(f"standard input cannot be read: {error}") from error
    if len(text) > STANDARD_INPUT_BYTES:
        raise StudyError(
            f"standard input is too large: at most {STANDARD_INPUT_BYTES / 2**20:.0f} MiB are read"
        )
    return text


def json_object(text: str) -> dict[str, Any]:
    try:
        record = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise StudyError(f"standard input cannot be read as JSON: {error}") from error
    if not isinstance(record, dict):
        raise StudyError("standard input must be a JSON object: node -> value")
    return record


def new_alarms(study: Study) -> list[Alarm]:
    """Alarms that nobody has acknowledged; none if they cannot be known: what was done is done."""
    try:
        return study.alarm_records(new=True)
    except StudyError:
        return []


def say_alarms(found: Iterable[Alarm]) -> None:
    for alarm in found:
        if alarm.acknowledged:
            say(f"alarm {alarm.alarm}: {alarm.text} (acknowledged)")
        else:
            seen = f"causalarms study acknowledge FILE {alarm.alarm}"
            say(f"ALARM {alarm.alarm}: {alarm.text} ({seen})")


def levels(text: str | None) -> dict[str, Any] | None:
    """`A,B=LEVEL,...`: a factor that is on, or its level."""
    if text is None:
        return None
    from causalarms.sem.factor import ON

    parts = (part.partition("=") for part in names(text) or [])
    return _once("factor", ((name, level.strip() if at else ON) for name, at, level in parts))


def _once(kind: str, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Values by name; StudyError for a name that is given twice, of which one would be lost."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name.strip() in found:
            raise StudyError(f"{kind} {name.strip()!r} is given twice")
        found[name.strip()] = value
    return found


def factors(given: tuple[str, ...], known: Collection[str] = ()) -> dict[str, Any] | None:
    """`NAME[=LEVEL,LEVEL...][@NODE,NODE...[:EFFECT]]` each; None if there are none.

    Levels may be LOW..HIGH/STEP, and nodes those that are `known`, or `unknown`.
    """
    from causalarms.sem.factor import EFFECTS, UNKNOWN

    def parsed(text: str) -> tuple[str, dict[str, Any]]:
        head, at, nodes = text.partition("@")
        name, equals, level_names = head.partition("=")
        entry: dict[str, Any] = {}
        if equals and ".." in level_names and "," not in level_names:
            ends, slash, step = level_names.partition("/")
            if not slash:
                raise StudyError(f"--factor {text}: add the step, {name}={ends}/STEP")
            entry["range"] = [_level(end) for end in ends.split("..")]
            entry["step"] = _level(step)
        elif equals:
            entry["levels"] = [_level(level) for level in names(level_names) or []]
        if at:
            listed, _, effect = nodes.rpartition(":")
            if effect.strip() in EFFECTS and listed:
                nodes, entry["effect"] = listed, effect.strip()
            elif listed and not set(names(nodes) or []) <= set(known):
                words = " or ".join(EFFECTS[::-1])
                raise StudyError(f"--factor {text}: the effect {effect!r} is not {words}")
            entry["acts_on"] = UNKNOWN if nodes.strip() == UNKNOWN else names(nodes) or []
        return name, entry

    return _once("factor", map(parsed, given)) or None


def with_set_levels(given: dict[str, Any] | None, sets: tuple[str, ...]) -> dict[str, Any] | None:
    """The factors, with the levels that set their nodes (`FACTOR=LEVEL,...` each)."""
    for text in sets:
        name, equals, level_names = text.partition("=")
        if not equals:
            raise click.UsageError(f"{text!r} is not of the form factor=level,...")
        if given is None or name.strip() not in given:
            raise StudyError(f"--sets {text}: there is no --factor {name.strip()!r}")
        given[name.strip()]["sets"] = names(level_names)
    return given


def _level(text: str) -> Any:
    """Levels that read like numbers are numbers."""
    # int first, so that level 1 is not shown as 1.0.
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
