"""Systems with known truth: `simulate` compares policies on them, `learners` learners of graphs.

`plot` draws the results that either has kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from causalarms.cli.options import (
    FORCE,
    JSON,
    PATH,
    SAMPLES,
    engine_options,
    integers,
    named_settings,
    refuse_picture,
    stacked,
    systems_options,
    worlds,
)
from causalarms.cli.terminal import emit, print_json, print_table, runs_bar, say
from causalarms.files import Mark, refuse_output, write_output
from causalarms.policies.stopping import StopRule
from causalarms.simulation import (
    Contestant,
    Experiment,
    LearnerContestant,
    LearnerExperiment,
    monte_carlo,
    summarise,
    summarise_learners,
)
from causalarms.simulation.experiment import Comparison
from causalarms.simulation.summary import Interval, LearnerSummary, PolicySummary
from causalarms.tables.write import csv_text

SIMULATE, LEARNERS, PLOT = (f"causalarms {name}" for name in ("simulate", "learners", "plot"))
COMPARED_POLICIES = (
    "posterior",
    "csl-ucb",
    "ucb",
    "linsem-ts",
    "linsem-quantile",
)  # if no policy is named
COMPARED_LEARNERS = ("posterior", "csl", "golem", "dagma")
CURVES = ("regret", "normalised-regret", "optimal-share")
SUMMARY = (
    "policy", "runs", "regret", "regret_low", "regret_high", "median_regret", "final_optimal_share",
)  # fmt: skip
SUMMARY_MARK = Mark(f"`{SIMULATE}`", ",".join(SUMMARY).encode())
PICTURES = ("regret.png", "optimal_share.png")
MARK = " *"  # of a row with a remark below the table

RUNS = stacked(
    click.option(
        "--runs",
        type=click.IntRange(1, 10**7),
        default=20,
        help="Number of runs, each on its own system.",
    ),
    engine_options,
    click.option(
        "--results",
        type=PATH,
        help="File to keep finished runs in; the same command continues from there.",
    ),
)


@click.command()
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME[,SETTING=VALUE...]",
    help=f"A policy, with settings; may be repeated.  [default: {', '.join(COMPARED_POLICIES)}]",
)
@systems_options
@click.option("--horizon", type=SAMPLES, default=1500, help="Number of rounds of a run.")
@click.option("--changes", metavar="T1,T2,...", help="Rounds after which mechanisms change.")
@click.option(
    "--changed",
    type=click.IntRange(1, 20_000),
    default=3,
    help="Number of mechanisms that are replaced at a change.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 10_000),
    default=1,
    help="Number of interventions played before their results are told.",
)
@click.option(
    "--stop-probability",
    type=click.FloatRange(0, 1, min_open=True),
    help="Stop if the recommended intervention is the best with this probability.",
)
@click.option(
    "--stop-loss",
    type=click.FloatRange(0, min_open=True),
    help="Stop if the recommended intervention is expected to lose at most this reward per round.",
)
@RUNS
@click.option("--out", "folder", type=PATH, help="Folder to write pictures and summary.csv to.")
@FORCE
@JSON
def simulate(
    policies: tuple[str, ...],
    horizon: int,
    changes: str | None,
    changed: int,
    batch: int,
    stop_probability: float | None,
    stop_loss: float | None,
    runs: int,
    engine: str,
    address: str | None,
    jobs: int,
    results: Path | None,
    folder: Path | None,
    force: bool,
    as_json: bool,
    **systems: Any,
) -> None:
    """Compare policies on random systems, or your own: regret, optimal share, detected changes.

    A policy's settings follow its name: --policy csl-ucb-cd,refresh=50,label=slow. A policy of
    your own is MODULE:CLASS.
    """
    stop = None
    if stop_probability is not None or stop_loss is not None:
        stop = StopRule(expected_loss=stop_loss, probability=stop_probability)
    experiment = Experiment(
        **worlds(**systems),
        horizon=horizon,
        # A block or step longer than the run would be refused.
        block=min(100, horizon),
        step=min(10, horizon),
        changes=integers(changes, "--changes", "a list of rounds"),
        n_changed=changed,
        batch=batch,
        stop=stop,
        contestants=tuple(
            Contestant(*named_settings(text)) for text in policies or COMPARED_POLICIES
        ),
    )
    inputs = [path for path in (results, *systems["files"]) if path is not None]
    # Refused before the runs: they may take hours.
    if folder is not None:
        refuse_output(folder / "summary.csv", SUMMARY_MARK, inputs=inputs, force=force)
        for name in PICTURES:
            refuse_picture(folder / name, SIMULATE, inputs, force=force)
    records = run(
        experiment, "simulating", runs, results, engine=engine, n_jobs=jobs, address=address
    )
    rows = summarise(experiment, records)
    written = []
    if folder is not None:
        written = write_outputs(experiment, records, rows, folder, inputs=inputs, force=force)
    if as_json:
        print_comparison(experiment, runs, rows, "policies", written)
        return
    print_summary(experiment, records, rows)
    for path in written:
        say(f"wrote {path}")


def run(
    experiment: Comparison, verb: str, runs: int, results: Path | None, **engine: Any
) -> list[dict[str, Any]]:
    """The records of all units, with a bar while they are computed."""
    with runs_bar(verb, runs * len(experiment.entries)) as on_result:
        return monte_carlo(experiment, runs=runs, path=results, on_result=on_result, **engine)


def print_comparison(
    experiment: Comparison,
    runs: int,
    rows: Sequence[PolicySummary | LearnerSummary],
    compared: str,
    written: list[Path],
) -> None:
    """Print JSON for machines: what was compared and found, and the files it is in."""
    print_json(
        {
            "settings": experiment.settings(),
            "runs": runs,
            compared: rows,
            "files": [str(path) for path in written],
        }
    )


def print_summary(
    experiment: Experiment, records: list[dict[str, Any]], rows: list[PolicySummary]
) -> None:
    """One line per policy."""
    columns = [
        "policy",
        "mean regret",
        "95 % interval",
        "median",
        "optimal at end",
        "overall",
        "still losing",
    ]
    lines = [
        [
            row.policy + MARK * bool(row.remark),
            f"{row.regret.value:.0f}",
            f"{row.regret.low:.0f} - {row.regret.high:.0f}",
            f"{row.median_regret:.0f}",
            _percent(row.final_optimal_share),
            _percent(row.optimal_share),
            f"{row.linear_runs} of {row.runs}",
        ]
        for row in rows
    ]
    if experiment.stop is not None:
        columns += ["stopped", "after rounds"]
        for line, row in zip(lines, rows, strict=True):
            line += [f"{100 * row.stopped:.0f} %", f"{row.rounds_to_stop:.0f}"]
    if any(record["changes"] for record in records):
        columns += ["detected", "delay", "false alarms a run"]
        for line, row in zip(lines, rows, strict=True):
            # A policy without any alarm most likely watches for none: 0 % would look like a result.
            watches = row.detected > 0 or row.false_alarms > 0
            line += (
                [f"{100 * row.detected:.1f} %", f"{row.delay:.1f}", f"{row.false_alarms:.2f}"]
                if watches
                else ["-", "-", "-"]
            )
    print_table(columns, lines)
    for remark in dict.fromkeys(row.remark for row in rows if row.remark):
        say(f"{MARK.strip()} {remark}")


def write_outputs(
    experiment: Experiment,
    records: list[dict[str, Any]],
    rows: list[PolicySummary],
    folder: Path,
    *,
    inputs: list[Path],
    force: bool,
) -> list[Path]:
    """Pictures and the summary as CSV."""
    from causalarms.pictures import draw_optimal_share, draw_regret, save_figure

    cells = [
        (
            r.policy,
            r.runs,
            r.regret.value,
            r.regret.low,
            r.regret.high,
            r.median_regret,
            r.final_optimal_share.value,
        )
        for r in rows
    ]
    text, summary = csv_text(SUMMARY, cells), folder / "summary.csv"
    written = [write_output(summary, text, SUMMARY_MARK, inputs=inputs, force=force)]
    for name, draw in zip(PICTURES, (draw_regret, draw_optimal_share), strict=True):
        figure, path = draw(experiment, records), folder / name
        written.append(save_figure(figure, path, made_by=SIMULATE, inputs=inputs, force=force))
    return written


def _percent(interval: Interval) -> str:
    return f"{100 * interval.value:.1f} % ({100 * interval.low:.0f}-{100 * interval.high:.0f})"


@click.command()
@click.option(
    "--learner",
    "texts",
    multiple=True,
    metavar="NAME[,SETTING=VALUE...]",
    help=f"A learner, with settings; may be repeated.  [default: {', '.join(COMPARED_LEARNERS)}]",
)
@systems_options
@click.option(
    "--rounds", type=SAMPLES, default=400, help="Number of rounds that every learner sees."
)
@RUNS
@click.option(
    "--out", "picture", type=PATH, help="File to draw the metrics into (.png, .pdf or .svg)."
)
@FORCE
@JSON
def learners(
    texts: tuple[str, ...],
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
    is MODULE:CLASS. Learners see rounds of random interventions; golem and dagma see rounds without
    any, as in the paper. The setting shown= (random, none or all-or-none) changes that.
    """
    experiment = LearnerExperiment(
        **worlds(**systems),
        rounds=rounds,
        learners=tuple(learner_contestant(text) for text in texts or COMPARED_LEARNERS),
    )
    inputs = [path for path in (results, *systems["files"]) if path is not None]
    if picture is not None:
        refuse_picture(picture, LEARNERS, inputs, force=force)
    records = run(
        experiment, "learning", runs, results, engine=engine, n_jobs=jobs, address=address
    )
    rows = summarise_learners(experiment.names, records)
    if picture is not None:
        from causalarms.pictures import draw_learners, save_figure

        figure = draw_learners(experiment.names, records)
        save_figure(figure, picture, made_by=LEARNERS, inputs=inputs, force=force)
    if as_json:
        written = [] if picture is None else [picture]
        print_comparison(experiment, runs, rows, "learners", written)
        return
    print_learners(rows)
    if picture is not None:
        say(f"wrote {picture}")


def learner_contestant(text: str) -> LearnerContestant:
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
            *(
                f"{interval.value:.3f} ({interval.low:.2f}-{interval.high:.2f})"
                for interval in (row.false_negative, row.precision, row.recall)
            ),
            f"{row.seconds.value:.2g}",
            f"{row.failed} of {row.runs}",
        ]
        for row in rows
    ]
    print_table(columns, lines)
    for row in rows:
        if row.first_failure is not None:
            say(f"{row.learner} failed first with: {row.first_failure}", err=True)


@click.command()
@click.argument("results", type=PATH)
@click.option(
    "--out", "picture", required=True, type=PATH, help="File to draw into (.png, .pdf or .svg)."
)
@click.option(
    "--what", type=click.Choice(CURVES), help="Picture of policies to draw.  [default: regret]"
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

    Lines are means over systems; shaded are their 95 % bootstrap intervals, those of the table.
    """
    refuse_picture(picture, PLOT, [results], force=force)
    from causalarms.pictures import draw_results, save_figure
    from causalarms.simulation.results import read_results

    found = read_results(results)
    figure = draw_results(found, what, names=names or None)
    save_figure(figure, picture, made_by=PLOT, inputs=[results], force=force)
    drawn = list(names) or found.names
    record = {"files": [str(picture)], "drawn": drawn, "runs": len(found.records)}
    emit(as_json, record, f"wrote {picture}")
