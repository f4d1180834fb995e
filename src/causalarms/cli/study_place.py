"""Where a study is: in a file, or at the address of a service."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from causalarms.errors import StudyError
from causalarms.study import Study
from causalarms.study.study import DEFAULT_WORKER

TOKEN = "CAUSALARMS_TOKEN"  # in the environment: arguments of commands are seen by all users


@dataclass(frozen=True)
class Address:
    """Of a service."""

    url: str

    @property
    def name(self) -> str:
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def __str__(self) -> str:
        return self.url


StudyPlace = Path | Address


class PlaceType(click.Path):
    """A path, or an address that begins with http:// or https://."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value).lower().startswith(("http://", "https://")):
            return Address(str(value))
        return Path(str(super().convert(value, param, ctx)))


def open_study(place: StudyPlace, *, read_only: bool = False) -> Study:
    if isinstance(place, Path):
        return Study.open(place, read_only=read_only)
    from causalarms.service.remote import RemoteStudy

    return RemoteStudy(place.url, os.environ.get(TOKEN))


def worker_of(study: Study, place: StudyPlace, given: str | None) -> str:
    """Who asks. Over the network a name is needed: two machines must not share their trials."""
    if given is not None:
        return given
    if isinstance(place, Path):
        return DEFAULT_WORKER
    name: str = getattr(study, "caller_name", "")
    if not name:
        raise StudyError(f"say who asks: --worker NAME; {place} serves several workers")
    return name


def file_of(place: StudyPlace) -> Path:
    """The file; StudyError where the study is elsewhere."""
    if isinstance(place, Address):
        raise StudyError(
            f"this needs the file of the study, not {place}: do it on the machine that serves it"
        )
    return place


def inputs_of(place: StudyPlace) -> list[Path]:
    """Files that must not be written over."""
    return [place] if isinstance(place, Path) else []
