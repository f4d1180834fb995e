"""Options and input that all commands of a study share."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from causalarms.errors import StudyError
from causalarms.limits import STANDARD_INPUT_BYTES

FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def pairs_or_json(pairs: tuple[str, ...]) -> dict[str, Any]:
    """`node=value ...` from the command line, or `-` for a JSON object on standard input."""
    if pairs == ("-",):
        return json_object(_standard_input())
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.rpartition("=")
        if not equals or not name:
            raise click.UsageError(f"{pair!r} is not of the form node=value")
        if name in values:
            raise StudyError(f"node {name!r} is given twice")
        values[name] = number(text, name)
    if not values:
        raise click.UsageError("give node=value for every node, or - and JSON on standard input")
    return values


def _standard_input() -> str:
    try:
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
        record = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise StudyError(f"standard input is no JSON: {error}") from error
    if not isinstance(record, dict):
        raise StudyError("standard input must be a JSON object: node -> value")
    return record


def number(text: str, name: str) -> float | None:
    """A number; nothing or `null` is a value that was not measured."""
    if text.strip() in ("", "null"):
        return None
    try:
        return float(text)
    except ValueError:
        raise StudyError(f"node {name!r} is {text!r}, not a number") from None


def names(text: str | None) -> list[str] | None:
    """A list of names separated by commas."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def switched(nodes: list[str]) -> str:
    return ", ".join(nodes) if nodes else "nothing (all natural)"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name, value in pairs:
        if name in record:
            raise ValueError(f"{name!r} is given twice")
        record[name] = value
    return record
