"""`causalarms simulate`: policies against each other on random systems."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from causalarms.cli.options import FORCE, NODES, PROCESSES, SAMPLES, SEED
from causalarms.cli.terminal import err, out, print_json, say, table
from causalarms.outputs import Mark, refuse_output, write_output
from causalarms.plain_text import printable
from causalarms.simulation import Contestant, Experiment, monte_carlo, summarise
from causalarms.simulation.intervals import Interval
from causalarms.simulation.monte_carlo import ENGINES
from causalarms.simulation.summary import PolicySummary
from causalarms.tables.write import csv_text

MADE_BY = "causalarms simulate"
SUMMARY = (
    "policy", "runs", "regret", "regret_low", "regret_high", "median_regret", "final_optimal_share",
)  # fmt: skip


@click.command()
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME[,SETTING=VALUE...]",
    help="A policy, with settings; may be repeated.  [default: csl-ucb, ucb, linsem-ts]",
)
@click.option("--nodes", type=NODES, default=10, show_default=True)
@click.option(
    "--regimes",
    metavar="K|K1,K2,...",
    help="How many regimes nodes have: one number, or one per node (default: two).",
)
@click.option("--horizon", type=SAMPLES, default=1500, show_default=True)
@click.option("--runs", type=click.IntRange(1, 10**7), default=20, show_default=True)
@click.option("--changes", metavar="T1,T2,...", help="Rounds after which mechanisms change.")
@click.option(
    "--changed",
    type=click.IntRange(1, 20_000),
    default=3,
    show_default=True,
    help="Mechanisms regenerated at a change.",
)
@click.option(
    "--weights", type=click.Choice(["separated", "uniform"]), default="separated", show_default=True
)
@click.option("--edge-probability", type=click.FloatRange(0, 1), default=0.5, show_default=True)
@click.option("--unknown-noise-mean", is_flag=True, help="Do not tell policies the noise means.")
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--engine", type=click.Choice(ENGINES), default="local", show_default=True)
@click.option("--address", help="Of a Dask scheduler; without it --engine dask starts a cluster.")
@click.option(
    "--jobs",
    type=PROCESSES,
    default=-1,
    show_default=True,
    help="Worker processes; -1: one per core.",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    help="Keep finished runs in this file; the same command goes on from there.",
)
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    help="Write pictures and summary.csv to this folder.",
)
@FORCE
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def simulate(
    policies: tuple[str, ...],
    nodes: int,
    regimes: str | None,
    horizon: int,
    runs: int,
    changes: str | None,
    changed: int,
    weights: str,
    edge_probability: float,
    unknown_noise_mean: bool,
    seed: int,
    engine: str,
    address: str | None,
    jobs: int,
    results: Path | None,
    folder: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compare policies on random systems: regret, optimal share, detected changes.

    A policy's settings follow its name: --policy csl-ucb-cd,joint=False,label=literal
    """
    experiment = Experiment(
        n_nodes=nodes,
        regimes=_regimes(regimes),
        horizon=horizon,
        weights=weights,
        edge_probability=edge_probability,
        changes=_rounds(changes),
        n_changed=changed,
        knows_noise_mean=not unknown_noise_mean,
        seed=seed,
        block=min(100, horizon),
        step=min(10, horizon),
        contestants=tuple(contestant(text) for text in policies or ("csl-ucb", "ucb", "linsem-ts")),
    )
    inputs = [] if results is None else [results]
    if folder is not None:
        for path, mark in marks(folder).items():
            refuse_output(path, mark, inputs=inputs, force=force)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeRemainingColumn(),
        console=err(),
        transient=True,
        disable=not err().is_terminal,
    ) as progress:
        task = progress.add_task("simulating", total=runs * len(experiment.contestants))

        def on_result(done: int, total: int, record: dict[str, Any] | None) -> None:
            name = "simulating" if record is None else printable(record["policy"])
            progress.update(task, completed=done, total=total, description=name)

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
    print_summary(experiment, rows)
    for path in written:
        say(f"wrote {path}")


def contestant(text: str) -> Contestant:
    """`name,setting=value,...`; `label=` names the row.

    >>> contestant("csl-ucb,joint=False,label=literal")
    Contestant(policy='csl-ucb', label='literal', settings={'joint': False})
    """
    name, *pairs = text.split(",")
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is not of the form setting=value")
        try:
            settings[key.strip()] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            settings[key.strip()] = value.strip()
    label = str(settings.pop("label", ""))
    return Contestant(name.strip(), label, settings)


def print_summary(experiment: Experiment, rows: list[PolicySummary]) -> None:
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
    if experiment.changes:
        columns += ["detected", "delay", "false alarms a run"]
        for line, row in zip(lines, rows, strict=True):
            watches = row.detected > 0 or row.false_alarms > 0
            line += (
                [f"{100 * row.detected:.1f} %", f"{row.delay:.1f}", f"{row.false_alarms:.2f}"]
                if watches
                else ["-", "-", "-"]
            )
    out().print(table(columns, lines))


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
    from causalarms.pictures.curves import draw_optimal_share, draw_regret
    from causalarms.pictures.style import save_figure

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
    from causalarms.pictures.style import picture_mark

    pictures = [folder / "regret.png", folder / "optimal_share.png"]
    return {
        folder / "summary.csv": Mark(f"`{MADE_BY}`", ",".join(SUMMARY).encode()),
        **{path: picture_mark(path, MADE_BY) for path in pictures},
    }


def _percent(interval: Interval) -> str:
    return f"{100 * interval.value:.1f} % ({100 * interval.low:.0f}-{100 * interval.high:.0f})"


def _regimes(text: str | None) -> int | tuple[int, ...] | None:
    if text is None:
        return None
    try:
        counts = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{text!r:.80} is no number of regimes, nor one per node", param_hint="--regimes"
        ) from None
    return counts if len(counts) > 1 else counts[0]


def _rounds(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in (text or "").split(",") if part.strip())
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of rounds", param_hint="--changes") from None
