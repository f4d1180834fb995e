"""`causalarms plot`: a results file draws itself."""

from __future__ import annotations

from pathlib import Path

import click

from causalarms.cli.options import FORCE, JSON
from causalarms.cli.terminal import print_json, say
from causalarms.extras import require_extra
from causalarms.files import refuse_output

MADE_BY = "causalarms plot"
PICTURES = ("regret", "normalised-regret", "optimal-share")


@click.command()
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--out",
    "picture",
    required=True,
    type=click.Path(path_type=Path),
    help="File to draw into (.png, .pdf or .svg).",
)
@click.option(
    "--what",
    type=click.Choice(PICTURES),
    help="Picture of policies to draw.  [default: regret]",
)
@click.option(
    "--only",
    "names",
    multiple=True,
    metavar="LABEL",
    help="Label of a policy or learner to draw; may be repeated.",
)
@FORCE
@JSON
def plot(
    results: Path,
    picture: Path,
    what: str | None,
    names: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Draw what `simulate --results FILE` or `learners --results FILE` has kept.

    Lines are means over systems, shaded are the 95 % bootstrap intervals of the table.
    """
    require_extra("plot", "`causalarms plot`")
    from causalarms.pictures import draw_results, save_figure
    from causalarms.pictures.style import checked_ending, picture_mark
    from causalarms.simulation.results import read_results

    checked_ending(picture)
    mark = picture_mark(picture, MADE_BY)
    refuse_output(picture, mark, inputs=[results], force=force)
    found = read_results(results)
    figure = draw_results(found, what, names=names or None)
    save_figure(figure, picture, made_by=MADE_BY, inputs=[results], force=force)
    if as_json:
        drawn = list(names) or found.names
        print_json({"files": [str(picture)], "drawn": drawn, "runs": len(found.records)})
    else:
        say(f"wrote {picture}")
