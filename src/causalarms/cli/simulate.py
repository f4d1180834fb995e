"""`causalarms simulate`: policies against each other on random systems."""

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
from causalarms.files import Mark, refuse_output, write_output
from causalarms.policies.stopping import StopRule
from causalarms.simulation import Contestant, Experiment, monte_carlo, summarise
from causalarms.simulation.summary import Interval, PolicySummary
from causalarms.tables.write import csv_text

MADE_BY = "causalarms simulate"
COMPARED = ("posterior", "csl-ucb", "ucb", "linsem-ts")  # if no policy is named
SUMMARY = (
    "policy", "runs", "regret", "regret_low", "regret_high", "median_regret", "final_optimal_share",
)  # fmt: skip


@click.command()
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME[,SETTING=VALUE...]",
    help=f"A policy, with settings; may be repeated.  [default: {', '.join(COMPARED)}]",
)
@systems_options
@click.option(
    "--horizon", type=SAMPLES, default=1500, show_default=True, help="Number of rounds of a run."
)
@click.option(
    "--runs",
    type=click.IntRange(1, 10**7),
    default=20,
    show_default=True,
    help="Number of runs, each on its own system.",
)
@click.option("--changes", metavar="T1,T2,...", help="Rounds after which mechanisms change.")
@click.option(
    "--changed",
    type=click.IntRange(1, 20_000),
    default=3,
    show_default=True,
    help="Number of mechanisms that are replaced at a change.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 10_000),
    default=1,
    show_default=True,
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
    help="Stop if settling is expected to lose at most this reward per round.",
)
@engine_options
@RESULTS
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    help="Folder to write pictures and summary.csv to.",
)
@FORCE
@JSON
def simulate(
    policies: tuple[str, ...],
    horizon: int,
    runs: int,
    changes: str | None,
    changed: int,
    batch: int,
    stop_probability: float | None,
    stop_loss: float | None,
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

    A policy's settings follow its name: --policy csl-ucb-cd,joint=False,label=literal. A policy of
    your own is MODULE:CLASS.
    """
    stop = None
    if stop_probability is not None or stop_loss is not None:
        stop = StopRule(expected_loss=stop_loss, probability=stop_probability)
    experiment = Experiment(
        **worlds(**systems),
        horizon=horizon,
        block=min(100, horizon),
        step=min(10, horizon),
        changes=_rounds(changes),
        n_changed=changed,
        batch=batch,
        stop=stop,
        contestants=tuple(contestant(text) for text in policies or COMPARED),
    )
    inputs = [path for path in (results, *systems["files"]) if path is not None]
    if folder is not None:
        for path, mark in marks(folder).items():
            refuse_output(path, mark, inputs=inputs, force=force)
    with runs_bar("simulating", runs * len(experiment.contestants)) as on_result:
        records = monte_carlo(
            experiment,
            runs=runs,
            path=results,
            engine=engine,
            n_jobs=jobs,
            address=address,
            on_result=on_result,
        )
    rows = summarise(experiment, records)
    written = (
        []
        if folder is None
        else write_outputs(experiment, records, rows, folder, inputs=inputs, force=force)
    )
    if as_json:
        print_json(
            {
                "settings": experiment.settings(),
                "runs": runs,
                "policies": [row.as_dict() for row in rows],
                "files": [str(path) for path in written],
            }
        )
        return
    print_summary(experiment, records, rows)
    for path in written:
        say(f"wrote {path}")


def contestant(text: str) -> Contestant:
    """`name,setting=value,...`; `label=` names the row.

    >>> contestant("csl-ucb,joint=False,label=literal")
    Contestant(policy='csl-ucb', label='literal', settings={'joint': False})
    """
    return Contestant(*named_settings(text))


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
            row.policy,
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
            watches = row.detected > 0 or row.false_alarms > 0
            line += (
                [f"{100 * row.detected:.1f} %", f"{row.delay:.1f}", f"{row.false_alarms:.2f}"]
                if watches
                else ["-", "-", "-"]
            )
    print_table(columns, lines)


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
    summary = folder / "summary.csv"
    text = csv_text(SUMMARY, cells)
    write_output(summary, text, marks(folder)[summary], inputs=inputs, force=force)
    pictures = {
        "regret.png": draw_regret(experiment, records),
        "optimal_share.png": draw_optimal_share(experiment, records),
    }
    return [
        summary,
        *(
            save_figure(figure, folder / name, made_by=MADE_BY, inputs=inputs, force=force)
            for name, figure in pictures.items()
        ),
    ]


def marks(folder: Path) -> dict[Path, Mark]:
    """How the files of an earlier run are recognised."""
    require_extra("plot", f"`causalarms simulate --out {folder}`")
    from causalarms.pictures.style import picture_mark

    pictures = [folder / "regret.png", folder / "optimal_share.png"]
    return {
        folder / "summary.csv": Mark(f"`{MADE_BY}`", ",".join(SUMMARY).encode()),
        **{path: picture_mark(path, MADE_BY) for path in pictures},
    }


def _percent(interval: Interval) -> str:
    return f"{100 * interval.value:.1f} % ({100 * interval.low:.0f}-{100 * interval.high:.0f})"


def _rounds(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in (text or "").split(",") if part.strip())
    except ValueError:
        raise click.BadParameter(
            f"{text!r} must be a list of rounds", param_hint="--changes"
        ) from None
