"""`causalarms learn data.csv`: the graph behind logged rounds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from causalarms.cli.learn_other import fit_other, other_learner
from causalarms.cli.learn_posterior import posterior_summary, print_posterior
from causalarms.cli.learn_report import ENDINGS, LearnReport, refuse_graph, write_graph
from causalarms.cli.options import FORCE, PROCESSES, SAMPLES, SEED, TIERS, edges, knowledge
from causalarms.cli.terminal import collected_warnings, err, print_json, say
from causalarms.errors import DataError, IdentifiabilityWarning
from causalarms.graphs import CSL, DAGMA, GOLEM
from causalarms.graphs.csl import Removal
from causalarms.graphs.diagnostics import open_directions
from causalarms.graphs.inputs import Rounds, checked_rounds
from causalarms.limits import MAX_REGIMES
from causalarms.posterior.estimator import GraphPosterior
from causalarms.sem.interventions import as_interventions
from causalarms.sem.regimes import Counts
from causalarms.tables.rounds import rounds_of

CSL_METHODS: dict[str, dict[str, Any]] = {
    "csl": {},
    "csl-nw": {"edge_weighting": False},
    "csl-literal": {"joint": False},
}
CONTINUOUS: dict[str, type[GOLEM] | type[DAGMA]] = {"golem": GOLEM, "dagma": DAGMA}
METHODS = ["posterior", *CSL_METHODS, *CONTINUOUS]
CSL_ONLY = ("max_samples", "bootstrap", "few_samples")
KNOWLEDGE = ("forbid", "require", "tier")
POSTERIOR_ONLY = ("miss_per_edge", "miss_whole_graph", "noise_scale")
METHOD_HELP = (
    "Probabilities of edges, in any units; or CSL of the paper; or GOLEM, DAGMA; or a learner of "
    "another package by its name, or your own as MODULE:CLASS."
)


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--method",
    default="posterior",
    show_default=True,
    metavar="|".join(METHODS),
    help=METHOD_HELP,
)
@click.option(
    "--interventions",
    type=click.Path(path_type=Path),
    help="Second table with a column of regimes per node.",
)
@click.option(
    "--intervened",
    metavar="COLUMN",
    help="Column that names the intervened nodes, separated by ';'.",
)
@click.option(
    "--regimes",
    multiple=True,
    metavar="NODE=K",
    help="How many regimes a node has (default: those seen); may be repeated.",
)
@click.option("--nodes", metavar="A,B,...", help="Columns to use as nodes (default: all others).")
@click.option("--ignore", multiple=True, metavar="COLUMN", help="Column to leave out.")
@click.option(
    "--skip-incomplete",
    is_flag=True,
    help="Leave out rows with an empty cell, which are refused otherwise.",
)
@click.option(
    "--noise-mean",
    metavar="NUMBER|NODE=NUMBER,...",
    help="Known means of the noise (default: estimated).",
)
@edges("forbid", "--forbid", "--forbid-edge", words="Edge that cannot be.")
@edges("require", "--require", "--require-edge", words="Edge that must be.")
@TIERS
@click.option("--max-samples", type=SAMPLES, help="csl: at most so many samples per mechanism.")
@click.option(
    "--few-samples",
    type=click.Choice(["raise", "unknown"]),
    default="raise",
    show_default=True,
    help="csl: what to do with mechanisms that have too few samples.",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(0, 100_000),
    default=0,
    help="csl: refits on part of the rounds, for the stability of edges.",
)
@click.option(
    "--miss-per-edge",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.5,
    show_default=True,
    help="posterior: leave out edges at most this probable.",
)
@click.option(
    "--miss-whole-graph",
    type=click.FloatRange(0, 1, max_open=True),
    help="posterior: instead, miss any edge at all with at most this probability.",
)
@click.option(
    "--noise-scale",
    default="estimate",
    show_default=True,
    metavar="NUMBER|estimate",
    help="posterior: about the noise's standard deviation; estimated: any units will do.",
)
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option(
    "--jobs", type=PROCESSES, default=1, show_default=True, help="Processes for --bootstrap."
)
@click.option(
    "--out",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Write .json, .csv, .graphml, .dot, .png or .pdf; may be repeated.",
)
@FORCE
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def learn(
    data: Path,
    method: str,
    interventions: Path | None,
    intervened: str | None,
    regimes: tuple[str, ...],
    nodes: str | None,
    ignore: tuple[str, ...],
    skip_incomplete: bool,
    noise_mean: str | None,
    forbid: tuple[str, ...],
    require: tuple[str, ...],
    tier: tuple[str, ...],
    max_samples: int | None,
    few_samples: str,
    bootstrap: int,
    miss_per_edge: float,
    miss_whole_graph: float | None,
    noise_scale: str,
    seed: int,
    jobs: int,
    outputs: tuple[Path, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Learn who causes what from a table of rounds (CSV or Parquet).

    Rows are rounds, columns are nodes. Interventions are columns do:NAME with the regime of the
    node (0 natural, 1 intervened, more where there are more settings), or a column 'intervened'
    that names the intervened nodes separated by ';', or a second table. A node that was never
    switched has one mechanism. A row with an empty cell is refused by its number, or left out
    with --skip-incomplete.
    """
    _check_endings(outputs)
    inputs = [path for path in (data, interventions) if path is not None]
    for path in outputs:
        refuse_graph(path, inputs, force)
    found = rounds_of(
        data,
        interventions,
        intervened=intervened,
        nodes=_names(nodes) or None,
        ignore=ignore,
        incomplete="skip" if skip_incomplete else "refuse",
    )
    counts = found.shown_regimes(_told_regimes(regimes))
    rows = as_interventions(found.regimes, found.nodes, counts)
    rounds = checked_rounds(found.values, rows, found.nodes)
    known = knowledge(tier, forbid, require)
    if method not in CSL_METHODS:
        _refuse(CSL_ONLY, method, "CSL", "csl")
    if method != "posterior":
        _refuse(POSTERIOR_ONLY, method, "posterior", "posterior")
    if method not in CSL_METHODS and method != "posterior":
        _refuse(KNOWLEDGE, method, "CSL and posterior", "posterior")
        _refuse_many_regimes(counts, found.nodes, method)
        learner: Any = CONTINUOUS[method]() if method in CONTINUOUS else other_learner(method)
    elif method == "posterior":
        learner = GraphPosterior(
            miss_probability_per_edge=miss_per_edge,
            miss_probability_whole_graph=miss_whole_graph,
            noise_scale=_noise_scale(noise_scale),
            random_state=seed,
            **known,
        )
    else:
        learner = CSL(
            **CSL_METHODS[method],
            **known,
            max_samples=max_samples,
            on_few_samples=few_samples,
            n_bootstrap=bootstrap,
            n_jobs=jobs,
            random_state=seed,
        )
    messages: list[str] = []
    with (
        collected_warnings(messages, show=not as_json),
        _live_line(len(rounds.nodes), counted=isinstance(learner, CSL)) as on_removal,
    ):
        _warn_of_never_switched(rounds, counts)
        mean = _noise_mean(noise_mean)
        if isinstance(learner, CSL):
            learner.fit_rounds(rounds, mean, on_removal, counts)
        elif isinstance(learner, GraphPosterior):
            learner.fit_rounds(rounds, mean, counts)
        elif method in CONTINUOUS:
            learner.fit_rounds(rounds, mean)
        graph = learner.result_ if method in METHODS else fit_other(learner, method, rounds, mean)
    report = LearnReport.of(graph, rounds, found, method)
    for path in outputs:
        write_graph(graph, path, inputs, force)
    if as_json:
        print_json(report.as_dict() | posterior_summary(learner) | {"warnings": messages})
    else:
        report.print()
        print_posterior(learner)
        for path in outputs:
            say(f"wrote {path}")


class _live_line:  # noqa: N801 — reads as a verb where it is used
    """A bar and the time; it moves as nodes find their place, where that is known (`counted`).

    Silent off a terminal.
    """

    def __init__(self, n_nodes: int, *, counted: bool) -> None:
        self._progress = Progress(
            TextColumn("learning"),
            BarColumn(),
            TextColumn("{task.fields[edge]}"),
            TimeRemainingColumn() if counted else TimeElapsedColumn(),
            console=err(),
            transient=True,
            disable=not err().is_terminal,
        )
        total = n_nodes * (n_nodes - 1) if counted else None
        self._task = self._progress.add_task("learn", total=total, edge=f"{n_nodes} nodes")

    def __enter__(self) -> Callable[[Removal, int], None]:
        self._progress.start()
        return self._removed

    def __exit__(self, *exc: object) -> None:
        self._progress.stop()

    def _removed(self, removal: Removal, n_ordered: int) -> None:
        self._progress.update(self._task, advance=1, edge=f"{n_ordered} nodes in order")


def _refuse(options: tuple[str, ...], method: str, owner: str, instead: str) -> None:
    context = click.get_current_context()
    for name in options:
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is for {owner}, not for {method}: "
                f"add --method {instead}"
            )


def _refuse_many_regimes(counts: Counts, nodes: tuple[str, ...], method: str) -> None:
    for node, count in zip(nodes, counts.tolist(), strict=True):
        if count > 2:
            raise DataError(
                f"node {node!r} has {count} regimes; {method} knows two, posterior and csl any"
            )


def _told_regimes(texts: tuple[str, ...]) -> dict[str, int]:
    told: dict[str, int] = {}
    for text in texts:
        node, _, count = (part.strip() for part in text.rpartition("="))
        number = int(count) if count.isdecimal() and len(count) < 10 else 0
        if not node or not 1 <= number <= MAX_REGIMES:
            raise click.BadParameter(
                f"{text!r} is not of the form NODE=K, K from 1 to {MAX_REGIMES}",
                param_hint="--regimes",
            )
        if node in told:
            raise click.BadParameter(f"node {node!r} is given twice", param_hint="--regimes")
        told[node] = number
    return told


def _warn_of_never_switched(rounds: Rounds, counts: Counts) -> None:
    """Of a table it is not known whether other nodes could have been switched."""
    fixed = counts == 1
    if 1 < fixed.sum() < len(fixed):
        warnings.warn(
            open_directions(rounds.regimes, rounds.nodes, fixed),
            IdentifiabilityWarning,
            stacklevel=2,
        )


def _check_endings(outputs: tuple[Path, ...]) -> None:
    for path in outputs:
        if path.suffix not in ENDINGS:
            raise click.BadParameter(
                f"{path}: unknown ending; there are {', '.join(ENDINGS)}", param_hint="--out"
            )


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _noise_scale(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # refused by the learner unless it is a word it knows


def _noise_mean(text: str | None) -> Any:
    if text is None:
        return None
    try:
        if "=" not in text:
            return float(text)
        pairs = [part.split("=", 1) for part in _names(text)]
        found = {name.strip(): float(value) for name, value in pairs}
        if len(found) < len(pairs):
            raise ValueError("a node is given twice")
        return found
    except ValueError as error:
        raise DataError(f"--noise-mean {text}: {error}") from error
