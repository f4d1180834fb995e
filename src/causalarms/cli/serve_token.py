"""`causalarms serve-token`: who may use a study over the network."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from causalarms.cli.study_options import JSON
from causalarms.cli.terminal import out, print_json, say, table
from causalarms.errors import StudyError
from causalarms.service.tokens import Role, TokenFile
from causalarms.study.sqlite import SqliteStore


@click.command("serve-token")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("role", type=click.Choice(get_args(Role)), required=False)
@click.argument("name", required=False)
@click.option("--list", "listed", is_flag=True, help="Names and roles of all tokens.")
@click.option("--revoke", metavar="NAME", help="This token is not valid any more.")
@click.option("--open", "opened", is_flag=True, help="Revoke all tokens, and need none.")
@JSON
def serve_token(
    file: Path,
    role: str | None,
    name: str | None,
    listed: bool,
    revoke: str | None,
    opened: bool,
    as_json: bool,
) -> None:
    """Make a token for the study in FILE with a ROLE and a NAME.

    read looks; worker asks and tells, under its NAME only; operator does everything. The token is
    shown once: the file FILE.tokens holds nothing that it could be read from. A running service
    takes changes at once. From the first token on everybody needs one, also after the last is
    revoked; --open undoes that.
    """
    if not file.is_file():
        raise StudyError(f"there is no study {file}")
    tokens = TokenFile(file)
    if (role is None) != (name is None) or (
        [role is not None, listed, revoke is not None, opened].count(True) != 1
    ):
        raise click.UsageError("give ROLE and NAME, or --list, or --revoke NAME, or --open")
    if role is not None or opened:
        SqliteStore(tokens.study, read_only=True).close()  # refuses what is not a study
    if listed:
        found = [{"name": t.name, "role": t.role, "made": t.made} for t in tokens.all()]
        if as_json:
            print_json(found)
        else:
            out().print(table(["name", "role", "made"], [list(t.values()) for t in found]))
    elif revoke is not None:
        left = tokens.revoke(revoke)
        if as_json:
            print_json({"revoked": revoke, "left": left})
        else:
            say(f"{revoke} cannot use {file} any more")
            if not left:
                say(f"nobody can use the service of {file} until you make a token, or --open it")
    elif opened:
        count = tokens.open_to_all()
        if as_json:
            print_json({"open": True, "revoked": count})
        else:
            say(
                f"{count} tokens of {file} are revoked, and no token is needed any more: everybody "
                "on this machine may do everything"
            )
    else:
        assert role is not None
        assert name is not None
        text = tokens.make(role, name)
        if as_json:
            print_json({"token": text, "role": role, "name": name})
        else:
            say(text)
            say(f"this is shown once; {name} has the role {role}", err=True)
