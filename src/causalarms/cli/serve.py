"""`causalarms serve`: a study on the network, and `serve-token`: who may use it.

`serve --demo` serves a study that plays itself, so that the page has something to show.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import click

from causalarms.cli.options import JSON, PATH
from causalarms.cli.study_options import TOKEN
from causalarms.cli.terminal import emit, print_json, print_table, say, waiting
from causalarms.errors import ClosedTrialError, LearningWarning, StudyError
from causalarms.extras import require_extra
from causalarms.rng import stream
from causalarms.service.remote import RemoteStudy
from causalarms.service.tokens import Role, TokenFile
from causalarms.study.sqlite import SqliteStore
from causalarms.study.study import Study

# A coating line: what is measured (%, mPa s, um, gloss units), and what an operator sets.
NODES = ("humidity", "viscosity", "thickness", "gloss")
FACTORS: dict[str, dict[str, Any]] = {
    "catalyst": {"levels": ["A", "B", "C"]},
    "pump": {"levels": ["normal", "high"]},
    "oven": {"levels": [160, 180, 200]},  # degrees C
    "speed": {"range": [0.3, 0.6], "step": 0.1},  # m/s
}
COSTS: dict[str, Any] = {"catalyst": {"C": 1.5}}  # gloss that it must bring to be worth it
PLAYER = "line 1"
FIRST_ROUNDS = 40  # played at once, so that there is something to see
PAUSE_SECONDS = 1.0  # between later rounds
CHANGE_AFTER_ROUNDS = 120  # then a new batch of lacquer is thicker


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--demo",
    is_flag=True,
    help="Serve a study that plays itself; it is created if FILE does not exist.",
)
@click.option("--host", default="127.0.0.1", help="Address to listen on; 0.0.0.0 is every network.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    help="Port to listen on; 0 is any free one.",
)
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="Another host name of the service."
)
@click.option(
    "--root-path",
    default="",
    show_default=False,
    metavar="PATH",
    help="Path under which a reverse proxy shows the service.",
)
@click.option(
    "--viewers", type=click.IntRange(min=1), default=200, help="Largest number of open pages."
)
@click.option("--tls-cert", type=PATH, help="Certificate (PEM).")
@click.option("--tls-key", type=PATH, help="Key of the certificate (PEM).")
@JSON
def serve(
    file: Path,
    demo: bool,
    host: str,
    port: int,
    allow_host: tuple[str, ...],
    root_path: str,
    viewers: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    as_json: bool,
) -> None:
    """Serve the study in FILE: a live page for people, an API for programs.

    Only this machine can reach it unless --host says otherwise. Then, and with --allow-host or
    --root-path, tokens are needed (`causalarms serve-token`).
    """
    require_extra("serve", "`causalarms serve`")
    from causalarms.service.app import Options
    from causalarms.service.server import serve as run

    options = Options(host, port, allow_host, root_path, viewers, tls_cert, tls_key)
    if demo:
        create_demo(file)

    def begin(address: str) -> None:
        if as_json:
            print_json({"file": str(file), "address": address})
            # A script reads the address from a pipe while the service runs on.
            sys.stdout.flush()
        if demo:
            play_demo(address)

    run(file, options, lambda line: say(line, err=True), begin, waiting)


@click.command("serve-token")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("role", type=click.Choice(get_args(Role)), required=False)
@click.argument("name", required=False)
@click.option("--list", "listed", is_flag=True, help="List names and roles of all tokens.")
@click.option("--revoke", metavar="NAME", help="Name of a token to make invalid.")
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

    With the role read one may look; a worker may also ask and tell, under its NAME only; an
    operator may do everything. The token is shown once: FILE.tokens holds only a hash of it. A
    running service takes changes at once. From the first token on everybody needs one, even after
    the last is revoked; --open undoes that.
    """
    if not file.is_file():
        raise StudyError(f"there is no study {file}")
    tokens = TokenFile(file)
    if (role is None) != (name is None) or (
        [role is not None, listed, revoke is not None, opened].count(True) != 1
    ):
        raise click.UsageError("give ROLE and NAME, or --list, or --revoke NAME, or --open")
    if role is not None or opened:
        # A token file next to what is not a study would protect nothing: opening it refuses.
        SqliteStore(tokens.study, read_only=True).close()
    if listed:
        found = [{"name": t.name, "role": t.role, "made": t.made} for t in tokens.all()]
        if as_json:
            print_json(found)
        else:
            print_table(["name", "role", "made"], [list(t.values()) for t in found])
    elif revoke is not None:
        left = tokens.revoke(revoke)
        lines = [f"{revoke} cannot use {file} any more"]
        if not left:
            lines += [f"nobody can use the service of {file} until you make a token, or --open it"]
        emit(as_json, {"revoked": revoke, "left": left}, *lines)
    elif opened:
        count = tokens.open_to_all()
        emit(
            as_json,
            {"open": True, "revoked": count},
            f"{count} tokens of {file} are revoked, and no token is needed any more: everybody on "
            "this machine may do everything",
        )
    else:
        assert role is not None
        assert name is not None
        text = tokens.make(role, name)
        emit(as_json, {"token": text, "role": role, "name": name}, text)
        if not as_json:  # on standard error: the token alone can be piped
            say(f"this is shown once; {name} has the role {role}", err=True)


def create_demo(path: Path) -> None:
    """Create the study that plays itself, unless it exists; then it continues."""
    if path.exists():
        with Study.open(path, read_only=True) as study:
            if study.nodes != NODES:
                raise StudyError(f"{path} is another study: name a new file for --demo")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    Study.create(
        path, NODES, "gloss", factors=FACTORS, costs=COSTS, context=["humidity"], changes=True,
        seed=1,
    ).close()  # fmt: skip


def play_demo(url: str) -> None:
    """Play it for ever, in a thread that ends with the process."""
    token = os.environ.get(TOKEN)
    threading.Thread(target=_play, args=(url, token), name="player", daemon=True).start()


def measure(number: int, levels: Mapping[str, Any]) -> list[float]:
    """What the line gives in a trial, one value per node."""
    # A stream per trial: a demo that is continued meets the noise it would have met.
    noise = stream(3, "noise", number).normal(0.0, [5.0, 3.0, 0.8, 0.9])
    humidity = 45.0 + noise[0]
    viscosity = 220.0 - 0.4 * (levels["oven"] - 160) + noise[1]
    viscosity += {"A": 0.0, "B": -12.0, "C": -20.0}[levels["catalyst"]]
    viscosity += 25.0 if number >= CHANGE_AFTER_ROUNDS else 0.0
    thickness = 30.0 + 0.05 * (viscosity - 200) - 20.0 * (levels["speed"] - 0.3) + noise[2]
    thickness += 8.0 if levels["pump"] == "high" else 0.0
    gloss = 70.0 - 0.15 * (viscosity - 200) + 0.4 * (thickness - 30) + noise[3]
    gloss -= 0.05 * (humidity - 45)
    return [humidity, viscosity, thickness, gloss]


class Player(RemoteStudy):
    """A client without warnings: nobody types here, and alarms are on the page."""

    def _warn(self, message: str, kind: type[Warning] = LearningWarning) -> None:
        pass


def _play(url: str, token: str | None) -> None:
    wait = threading.Event()
    try:
        # The service is in this process: if it does not answer soon, it has ended.
        with Player(url, token, patience=2.0) as study:
            while True:
                trial = study.ask(worker=PLAYER)
                wait.wait(PAUSE_SECONDS if trial.number >= FIRST_ROUNDS else 0.0)
                with suppress(ClosedTrialError):  # somebody else told it on the page
                    study.tell(trial, measure(trial.number, trial.levels))
    except StudyError:  # the service has ended
        return
