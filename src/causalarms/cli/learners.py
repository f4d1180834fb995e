"""`causalarms learners`: learners of graphs against each other on systems with known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from causalarms.cli.options import (
    FORCE,
    JSON,
    RESULTS,
    SAMPLES,
    engine_options,
    named_settings,
    systems_options,
    worlds,
)
from causalarms.cli.terminal import print_json, print_table, runs_bar, say
from causalarms.extras import require_extra
from causalarms.files import refuse_output
from causalarms.simulation.experiment import LearnerContestant, LearnerExperiment
from causalarms.simulation.monte_carlo import compare_learners
from causalarms.simulation.summary import Interval, LearnerSummary, summarise_learners

MADE_BY = "causalarms learners"
DEFAULT = ("posterior", "csl", "golem", "dagma")


@click.command()
@click.option(
    "--learner",
    "learners",
    multiple=True,
    metavar="NAME[,SETTING=VALUE...]",
    help="A learner, with settings; may be repeated.  [default: posterior, csl, golem, dagma]",
)
@systems_options
@click.option(
    "--rounds",
    type=SAMPLES,
    default=400,
    show_default=True,
    help="Number of rounds that every learner sees.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 10**7),
    default=20,
    show_default=True,
    help="Number of runs, each on its own system.",
)
@engine_options
@RESULTS
@click.option(
    "--out",
    "picture",
    type=click.Path(path_type=Path),
    help="File to draw the metrics into (.png, .pdf or .svg).",
)
@FORCE
@JSON
def learners(
    learners: tuple[str, ...],
    rounds: int,
    runs: int,
    engine: str,
    address: str | None,
    jobs: int,
    results: Path | None,
    picture: Path | None,
    force: bool,
    as_json: bool,
    **systems: Any,
) -> None:
    """Compare learners by the paper's metrics: graph false negatives, precision, recall, seconds.

    A learner's settings follow its name: --learner golem,l1=0.1,label=sparse. A learner of your own
    is MODULE:CLASS. Learners see rounds of random interventions, golem and dagma rounds without
    any, as in the paper; the setting shown= (random, none or all-or-none) says otherwise.
    """
    experiment = LearnerExperiment(
        **worlds(**systems),
        rounds=rounds,
        learners=tuple(contestant(text) for text in learners or DEFAULT),
    )
    inputs = [path for path in (results, *systems["files"]) if path is not None]
    if picture is not None:
        _refuse_picture(picture, inputs, force)
    with runs_bar("learning", runs * len(experiment.learners)) as on_result:
        records = compare_learners(
            experiment,
            runs=runs,
            path=results,
            engine=engine,
            n_jobs=jobs,
            address=address,
            on_result=on_result,
        )
    rows = summarise_learners(experiment.names, records)
    if picture is not None:
        from causalarms.pictures import draw_learners, save_figure

        figure = draw_learners(experiment.names, records)
        save_figure(figure, picture, made_by=MADE_BY, inputs=inputs, force=force)
    if as_json:
        print_json(
            {
                "settings": experiment.settings(),
                "runs": runs,
                "learners": [row.as_dict() for row in rows],
                "files": [str(picture)] if picture is not None else [],
            }
        )
        return
    print_learners(rows)
    if picture is not None:
        say(f"wrote {picture}")


def contestant(text: str) -> LearnerContestant:
    """`name,setting=value,...`; `label=` names the row, `shown=` the rounds it learns from."""
    name, label, settings = named_settings(text)
    shown = str(settings.pop("shown", ""))
    return LearnerContestant(name, label, settings, shown)


def print_learners(rows: list[LearnerSummary]) -> None:
    """One line per learner; metrics are of B."""
    columns = ["learner", "graph-FN rate", "precision", "recall", "seconds", "failed"]
    lines = [
        [
            row.learner,
            _interval(row.false_negative),
            _interval(row.precision),
            _interval(row.recall),
            f"{row.seconds.value:.2g}",
            f"{row.failed} of {row.runs}",
        ]
        for row in rows
    ]
    print_table(columns, lines)
    for row in rows:
        if row.first_failure is not None:
            say(f"{row.learner} failed first with: {row.first_failure}", err=True)


def _refuse_picture(path: Path, inputs: list[Path], force: bool) -> None:
    require_extra("plot", f"the picture {path}")
    from causalarms.pictures.style import checked_ending, picture_mark

    checked_ending(path)
    refuse_output(path, picture_mark(path, MADE_BY), inputs=inputs, force=force)


def _interval(interval: Interval) -> str:
    return f"{interval.value:.3f} ({interval.low:.2f}-{interval.high:.2f})"
