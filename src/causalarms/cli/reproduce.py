"""`causalarms reproduce`: every figure and headline number of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from causalarms.cli.options import JSON, PATH, RANDOM, engine_options, integers
from causalarms.cli.terminal import print_json, print_table, progress, say
from causalarms.extras import require_extra
from causalarms.paper.settings import DEFAULT_RUNS, PAPER_RUNS, READINGS, Settings
from causalarms.simulation.monte_carlo import Engine

if TYPE_CHECKING:
    from causalarms.paper.run import Part

SHOWN = ("key", "what", "paper", "unit", "measured", "second_reading")  # of a headline
BOTH = "both"


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
    type=click.Choice([BOTH, *READINGS]),
    default=BOTH,
    help="Distribution of the weights: uniform is that of the paper's text, separated that of its "
    "program.",
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
    from causalarms.paper.report import columns, counts, table_rows
    from causalarms.paper.run import reproduce as run
    from causalarms.paper.run import start_over

    graph_sizes = Settings.sizes if sizes is None else _sizes(sizes)
    readings = [
        Settings(weights=name, seed=seed, sizes=graph_sizes)
        for name in READINGS
        if weights in (BOTH, name)
    ]
    if overwrite:
        start_over(folder, readings)
    with progress("{task.description}", "bar", "count", "time left", keep=True) as bars:
        tasks: dict[str, object] = {}

        def on_progress(settings: Settings, part: Part, done: int, total: int) -> None:
            title = f"{settings.weights}, {part.title}"
            if title not in tasks:
                tasks[title] = bars.add_task(title, total=total)
            bars.update(tasks[title], completed=done)  # type: ignore[arg-type]

        try:
            result = run(
                folder,
                runs=runs,
                readings=readings,
                figures=figures,
                engine=Engine(engine, jobs, address),
                on_progress=on_progress,
            )
        except KeyboardInterrupt:
            say(
                f"stopped; what is finished is kept in {folder}, and the same command goes on from "
                "there",
                err=True,
            )
            # Again, so that the exit code is that of an interruption.
            raise
    if as_json:
        print_json(
            {
                "runs": runs,
                "readings": [
                    {
                        "settings": reading.settings.as_dict(),
                        "headlines": [
                            {name: getattr(headline, name) for name in SHOWN}
                            | {"verdict": headline.verdict(runs)}
                            for headline in reading.headlines
                        ],
                        "seconds": reading.seconds,
                    }
                    for reading in result.readings
                ],
                "files": [str(path) for path in result.files],
            }
        )
        return
    print_table(columns(result.readings), table_rows(result.readings))
    for reading in result.readings:
        spent = ", ".join(f"{name} {value:.0f} s" for name, value in reading.seconds.items())
        say(f"{counts(reading)}; {spent}")
    say(f"wrote {folder}/report.html, {folder}/report.md, figures and data")


def _sizes(text: str) -> tuple[int, ...]:
    found = integers(text, "--sizes", "a list of sizes")
    if not found or min(found) < 2:
        raise click.BadParameter("sizes must be at least 2", param_hint="--sizes")
    return found
