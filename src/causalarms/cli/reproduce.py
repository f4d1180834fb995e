"""`causalarms reproduce`: every figure and headline number of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from causalarms.cli.options import JSON, PATH, RANDOM, engine_options, integers
from causalarms.cli.terminal import print_json, print_table, progress, say
from causalarms.extras import require_extra
from causalarms.paper.settings import DEFAULT_RUNS, PAPER_RUNS, Settings
from causalarms.simulation.monte_carlo import Engine

if TYPE_CHECKING:
    from causalarms.paper.run import Part

SHOWN = ("key", "what", "paper", "unit", "measured", "agrees", "beside")  # of a headline


@click.command()
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option(
    "--runs",
    type=int,
    default=DEFAULT_RUNS,
    help=f"Number of random systems; the paper uses {PAPER_RUNS}.",
)
@click.option(
    "--weights",
    type=click.Choice(["separated", "uniform"]),
    default="separated",
    help="Distribution of the weights: of the authors' program or their text.",
)
@click.option("--sizes", metavar="N1,N2,...", help="Numbers of nodes.  [default: 6,8,10,12,14]")
@RANDOM
@engine_options
@click.option(
    "--out",
    "folder",
    type=PATH,
    default=Path("out/reproduction"),
    help="Folder for figures and data.",
)
@click.option("--overwrite", is_flag=True, help="Delete what the folder holds of other settings.")
@JSON
def reproduce(
    figures: tuple[str, ...],
    runs: int,
    weights: str,
    sizes: str | None,
    seed: int,
    engine: str,
    address: str | None,
    jobs: int,
    folder: Path,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Regenerate the figures and numbers of the paper; without FIGURE all of them."""
    require_extra("plot", "`causalarms reproduce`")
    from causalarms.paper.report import COLUMNS, table_rows
    from causalarms.paper.run import reproduce as run
    from causalarms.paper.run import start_over

    graph_sizes = Settings.sizes if sizes is None else _sizes(sizes)
    settings = Settings(weights=weights, seed=seed, sizes=graph_sizes)
    if overwrite:
        start_over(folder, settings)
    with progress("{task.description}", "bar", "count", "time left", keep=True) as bars:
        tasks: dict[str, object] = {}

        def on_progress(part: Part, done: int, total: int) -> None:
            if part.name not in tasks:
                tasks[part.name] = bars.add_task(part.title, total=total)
            bars.update(tasks[part.name], completed=done)  # type: ignore[arg-type]

        try:
            result = run(
                folder,
                runs=runs,
                settings=settings,
                figures=figures,
                engine=Engine(engine, jobs, address),
                on_progress=on_progress,
            )
        except KeyboardInterrupt:
            say(
                f"stopped; what is finished is kept in {folder}/raw, and the same command goes on "
                "from there",
                err=True,
            )
            # Again, so that the exit code is that of an interruption.
            raise
    if as_json:
        print_json(
            {
                "settings": settings.as_dict(),
                "runs": runs,
                "headlines": [
                    {name: getattr(headline, name) for name in SHOWN}
                    for headline in result.headlines
                ],
                "seconds": result.seconds,
                "files": [str(path) for path in result.files],
            }
        )
        return
    # The second readings of the last column are sentences: the report has room for them.
    print_table(COLUMNS[:5], [row[:5] for row in table_rows(result.headlines)])
    agreeing = sum(h.agrees for h in result.headlines)
    spent = ", ".join(f"{name} {value:.0f} s" for name, value in result.seconds.items())
    say(f"{agreeing} of {len(result.headlines)} numbers agree; {spent}")
    say(f"wrote {folder}/report.html, {folder}/report.md, figures and data")


def _sizes(text: str) -> tuple[int, ...]:
    found = integers(text, "--sizes", "a list of sizes")
    if not found or min(found) < 2:
        raise click.BadParameter("sizes must be at least 2", param_hint="--sizes")
    return found
