"""`causalarms serve`: a study on the network, with a page that lives."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from causalarms.cli.study_options import JSON
from causalarms.cli.terminal import print_json, say
from causalarms.extras import require_extra


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--demo", is_flag=True, help="A study that plays itself, made where there is none.")
@click.option("--host", default="127.0.0.1", show_default=True, help="0.0.0.0: every network.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="Another name the service goes by."
)
@click.option("--root-path", default="", metavar="PATH", help="Where a reverse proxy shows it.")
@click.option("--viewers", type=click.IntRange(min=1), default=200, show_default=True)
@click.option("--tls-cert", type=click.Path(path_type=Path), help="Certificate (PEM).")
@click.option("--tls-key", type=click.Path(path_type=Path), help="Its key (PEM).")
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
    from causalarms.cli.progress import waiting
    from causalarms.service.app import Options
    from causalarms.service.server import serve as run

    options = Options(host, port, allow_host, root_path, viewers, tls_cert, tls_key)
    if demo:
        from causalarms.cli import living_study

        living_study.create(file)

    def begin(address: str) -> None:
        if as_json:
            print_json({"file": str(file), "address": address})
            sys.stdout.flush()
        if demo:
            living_study.play(address)

    run(file, options, lambda line: say(line, err=True), begin, waiting)
