"""`causalarms learn data.csv`: the graph behind logged rounds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from causalarms.cli.learn_report import (
    graph_record,
    posterior_record,
    print_posterior,
    print_record,
)
from causalarms.cli.options import (
    FORCE,
    JSON,
    PATH,
    PROCESSES,
    RANDOM,
    SAMPLES,
    TABLE,
    TIERS,
    edges,
    knowledge,
    names,
    refuse_given,
    refuse_picture,
)
from causalarms.cli.terminal import collected_warnings, print_json, progress, say
from causalarms.errors import (
    CausalArmsError,
    CausalArmsWarning,
    DataError,
    IdentifiabilityWarning,
    SettingError,
)
from causalarms.files import refuse_output
from causalarms.graphs.diagnostics import open_directions
from causalarms.graphs.graph import MARKS, Graph
from causalarms.graphs.inputs import Rounds, checked_rounds
from causalarms.graphs.registry import learner_names, make_learner
from causalarms.limits import MAX_REGIMES
from causalarms.posterior.estimator import GraphPosterior
from causalarms.registry import part_of
from causalarms.sem.factor import UNKNOWN
from causalarms.sem.factors import PREFIX
from causalarms.sem.regimes import Counts, as_interventions, topological_order
from causalarms.study.far_values import Seen, far_from
from causalarms.tables.cells import SAME_NAME, FactorLevels
from causalarms.tables.rounds import TableRounds, rounds_of

if TYPE_CHECKING:
    from causalarms.graphs.csl import Removal

MADE_BY = "causalarms learn"
PICTURES = (".png", ".pdf")
MAX_FAR_VALUES = 3  # of a node, which may be typing errors; more are a long tail
OFTEN = 10  # times as many rows of a level make another that is written nearly so a slip
LEFT_OUT, KEPT = "left-out", "kept"
# The paper's CSL and CSL-nw, and CSL with one order for all regimes, which is ours.
CSL_METHODS: dict[str, dict[str, Any]] = {
    "csl": {},
    "csl-nw": {"edge_weighting": False},
    "csl-joint": {"joint": True},
}
CONTINUOUS = ("golem", "dagma")
METHODS = ["posterior", *CSL_METHODS, *CONTINUOUS]
# Options that are settings of one learner have its names for them.
CSL_ONLY = ("max_samples", "n_bootstrap", "on_few_samples")
KNOWLEDGE = ("exclude_edge", "require_edge", "tier")
POSTERIOR_ONLY = (
    "miss_probability_per_edge", "miss_probability_whole_graph", "noise_scale", "context",
)  # fmt: skip


@click.command()
@click.argument("data", type=PATH)
@click.option(
    "--method",
    default="posterior",
    metavar="|".join(METHODS),
    help="posterior gives probabilities of edges, in any units; csl is the paper's. A learner of "
    "another package is given by its name, your own as MODULE:CLASS.",
)
@TABLE
@click.option(
    "--regimes",
    multiple=True,
    metavar="NODE=K",
    help="Number of regimes of a node (default: those seen); may be repeated.",
)
@click.option("--nodes", metavar="A,B,...", help="Columns to use as nodes (default: all others).")
@click.option(
    "--skip-incomplete",
    is_flag=True,
    help="Leave out rows with an empty cell, which are refused otherwise.",
)
@click.option(
    "--typing-errors",
    type=click.Choice([LEFT_OUT, KEPT]),
    default=LEFT_OUT,
    help="What happens to a row with a value far outside all others, probably a typing error.",
)
@click.option(
    "--noise-mean",
    metavar="NUMBER|NODE=NUMBER,...",
    help="Known means of the noise (default: estimated).",
)
@edges("--exclude-edge", words="Edge that does not exist.")
@edges("--require-edge", words="Edge that exists.")
@TIERS
@click.option(
    "--context",
    callback=lambda context, option, text: names(text) or None,
    metavar="A,B,...",
    help="posterior: nodes that only each other cause, and no factor moves, such as the weather.",
)
@click.option("--max-samples", type=SAMPLES, help="csl: largest number of samples per mechanism.")
@click.option(
    "--few-samples",
    "on_few_samples",
    type=click.Choice(["raise", "unknown"]),
    default="raise",
    help="csl: what to do with mechanisms that have too few samples.",
)
@click.option(
    "--bootstrap",
    "n_bootstrap",
    type=click.IntRange(0, 100_000),
    default=0,
    help="csl: number of refits on part of the rounds, for the stability of edges.",
)
@click.option(
    "--miss-per-edge",
    "miss_probability_per_edge",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.5,
    help="posterior: leave out edges at most this probable.",
)
@click.option(
    "--miss-whole-graph",
    "miss_probability_whole_graph",
    type=click.FloatRange(0, 1, max_open=True),
    help="posterior: instead, miss any edge at all with at most this probability.",
)
@click.option(
    "--noise-scale",
    default="estimate",
    callback=lambda context, option, text: _noise_scale(text),
    metavar="NUMBER|estimate",
    help="posterior: about the standard deviation of the noise; estimated from any units.",
)
@RANDOM
@click.option(
    "--jobs", type=PROCESSES, default=1, help="Processes for --bootstrap; -1 is one per core."
)
@click.option(
    "--out",
    "outputs",
    multiple=True,
    type=PATH,
    help="File to write: .json, .csv, .graphml, .dot, .png or .pdf; may be repeated.",
)
@FORCE
@JSON
def learn(
    data: Path,
    method: str,
    interventions: Path | None,
    intervened: str | None,
    regimes: tuple[str, ...],
    nodes: str | None,
    ignore: tuple[str, ...],
    skip_incomplete: bool,
    typing_errors: str,
    noise_mean: str | None,
    exclude_edge: tuple[str, ...],
    require_edge: tuple[str, ...],
    tier: tuple[str, ...],
    seed: int,
    jobs: int,
    outputs: tuple[Path, ...],
    force: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Learn who causes what from a table of rounds (CSV or Parquet).

    Rows are rounds, columns are nodes. Interventions are columns do:NAME with the regime of the
    node (0 natural, 1 intervened, more if there are more settings), or a column 'intervened'
    or 'intervention_targets' that names the intervened nodes separated by ';', or a second table.
    A node that was never switched has one mechanism. If NAME is not a node, do:NAME holds the
    levels of a factor, numbers or names, and it is learned which nodes the factor shifts. A row
    with an empty cell is refused by its number, or left out with --skip-incomplete.
    """
    if method not in METHODS and ":" not in method and method not in learner_names():
        there = ", ".join(dict.fromkeys([*METHODS, *learner_names()]))
        raise SettingError(f"there is no method {method!r}; there are {there}")
    inputs = [path for path in (data, interventions) if path is not None]
    # Before anything is learned: that may take an hour, and would be lost.
    for path in outputs:
        _refuse(path, inputs, force)
    found = rounds_of(
        data,
        interventions,
        intervened=intervened,
        nodes=names(nodes) or None,
        factors=UNKNOWN,
        ignore=ignore,
        incomplete="skip" if skip_incomplete else "refuse",
    )
    found, remarks = _far_values(found, leave_out=typing_errors == LEFT_OUT)
    counts = found.shown_regimes(_told_regimes(regimes))
    rows = as_interventions(found.regimes, found.nodes, counts)
    rounds = checked_rounds(found.values, rows, found.nodes)
    known = knowledge(tier, exclude_edge, require_edge)
    if method != "posterior":
        _refuse_factors(found, method)
    if method not in CSL_METHODS:
        refuse_given(CSL_ONLY, f"for CSL, not for {method}: add --method csl")
    if method != "posterior":
        refuse_given(POSTERIOR_ONLY, f"for posterior, not for {method}: add --method posterior")
    if method not in CSL_METHODS and method != "posterior":
        refuse_given(KNOWLEDGE, f"for CSL and posterior, not for {method}: add --method posterior")
        _refuse_many_regimes(counts, found.nodes, method)
        learner: Any = make_learner(part_of("learner", method))
    elif method == "posterior":
        own = {name: settings[name] for name in POSTERIOR_ONLY}
        learner = GraphPosterior(**known, **own, random_state=seed)
    else:
        learner = make_learner(
            "csl",
            **CSL_METHODS[method],
            **known,
            **{name: settings[name] for name in CSL_ONLY},
            n_jobs=jobs,
            random_state=seed,
        )
    messages: list[str] = []
    # Other learners know two regimes, and have no removals of edges to tell of.
    told: dict[str, Any] = {} if method in CONTINUOUS else {"regimes": counts}
    with (
        collected_warnings(messages, show=not as_json),
        _live_line(len(rounds.nodes), counted=method in CSL_METHODS) as on_removal,
    ):
        if found.factors is None:
            _warn_of_never_switched(rounds, counts)
        else:
            remarks += _near_levels(found.factors)
        for text in remarks:
            warnings.warn(text, CausalArmsWarning, stacklevel=2)
        mean = _noise_mean(noise_mean)
        if method in CSL_METHODS:
            told["on_removal"] = on_removal
        if found.factors is not None:
            told["factors"] = found.factors
        if method in METHODS:
            graph = learner.fit_rounds(rounds, mean, **told).result_
        else:
            graph = _fit_other(learner, method, rounds, mean)
    for path in outputs:
        _write_graph(graph, path, inputs, force)
    record = graph_record(graph, learner, rounds, found, method)
    if as_json:
        print_json(record | posterior_record(learner) | {"warnings": messages})
        return
    n_intervened = int(rounds.regimes.any(axis=1).sum())
    print_record(record, list(graph.measures), n_intervened, learner)
    print_posterior(learner)
    for path in outputs:
        say(f"wrote {path}")


@contextmanager
def _live_line(n_nodes: int, *, counted: bool) -> Iterator[Callable[[Removal, int], None]]:
    """A bar and the time; it moves as nodes find their place, if that is `counted`."""
    time = "time left" if counted else "time spent"
    with progress("learning", "bar", "{task.fields[edge]}", time) as bar:
        total = n_nodes * (n_nodes - 1) if counted else None
        task = bar.add_task("learn", total=total, edge=f"{n_nodes} nodes")

        def removed(removal: Removal, n_ordered: int) -> None:
            bar.update(task, advance=1, edge=f"{n_ordered} nodes in order")

        yield removed


def _fit_other(learner: Any, method: str, rounds: Rounds, noise_mean: Any) -> Graph:
    """What it has learned, with the names of the table; its own refusals in words."""
    values, regimes, nodes = rounds
    try:
        learner.fit(values, interventions=regimes, noise_mean=noise_mean)
        adjacency = np.asarray(learner.adjacency_) != 0
        weights = np.asarray(learner.weights_, dtype=float)
    except CausalArmsError:
        raise
    # A learner of somebody else may raise anything; its text is all there is to tell.
    except Exception as error:
        raise DataError(
            f"learner {method!r} cannot learn from this: {type(error).__name__}: {error}"
        ) from error
    # Two: more regimes were refused before it was made.
    shape = (2, len(nodes), len(nodes))
    # Tables and pictures look both up by node: another shape would fail far from its cause.
    for name, found in (("adjacency_", adjacency), ("weights_", weights)):
        if found.shape != shape:
            raise DataError(f"learner {method!r} leaves {name} of shape {found.shape}, not {shape}")
    order = topological_order(adjacency.any(axis=0))
    return Graph(
        nodes=nodes,
        adjacency=adjacency,
        weights=weights,
        known=np.isfinite(weights).all(axis=1),
        order=None if order is None else tuple(nodes[i] for i in order),
        measures={},
    )


def _refuse(path: Path, inputs: list[Path], force: bool) -> None:
    if path.suffix in MARKS:
        refuse_output(path, MARKS[path.suffix], inputs=inputs, force=force)
    elif path.suffix in PICTURES:
        refuse_picture(path, MADE_BY, inputs, force=force)
    else:
        endings = ", ".join((*MARKS, *PICTURES))
        raise click.BadParameter(f"{path}: unknown ending; there are {endings}", param_hint="--out")


def _write_graph(graph: Graph, path: Path, inputs: list[Path], force: bool) -> None:
    if path.suffix in MARKS:
        graph.save(path, inputs=inputs, force=force)
        return
    from causalarms.pictures.graph import draw_graph
    from causalarms.pictures.style import save_figure

    save_figure(draw_graph(graph), path, made_by=MADE_BY, inputs=inputs, force=force)


def _refuse_factors(found: TableRounds, method: str) -> None:
    for name in () if found.factors is None else found.factors.names:
        raise DataError(
            f"column {PREFIX}{name}: there is no node {name!r}, and {method} cannot learn what a "
            f"factor acts on: leave it out (--ignore {PREFIX}{name}), or use --method posterior"
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
        # Short ones only: int() refuses thousands of digits with a message of its own.
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
    """A table does not say whether nodes that were never switched have a switch."""
    fixed = counts == 1
    if 1 < fixed.sum() < len(fixed):
        warnings.warn(
            open_directions(rounds.regimes, rounds.nodes, fixed),
            IdentifiabilityWarning,
            stacklevel=2,
        )


def _far_values(found: TableRounds, *, leave_out: bool) -> tuple[TableRounds, list[str]]:
    """The rounds without probable typing errors, and what to say of values far from all others.

    One value of 1000 among values of ten makes edges that do not exist. What a regime or level does
    that was hardly played may be far without an error: the value must be far from all others of
    every regime and level of its row, too.
    """
    levels = found.factors
    settings = [*found.regimes.T, *(() if levels is None else levels.numbers.T)]
    keep, said = np.ones(len(found.rows), dtype=bool), list[str]()
    for node, column in zip(found.nodes, found.values.T, strict=True):
        far = list[tuple[int, Seen]]()
        for at in np.argsort(-np.abs(column - np.median(column)))[: MAX_FAR_VALUES + 1].tolist():
            seen = far_from(column[at], np.delete(column, at))
            far += [] if seen is None else [(at, seen)]
        for at, seen in far[:MAX_FAR_VALUES]:
            others = np.arange(len(column)) != at
            alike = (column[others & (setting == setting[at])] for setting in settings)
            # of a node whose values have a long tail more are far, and right
            few = leave_out and len(far) <= MAX_FAR_VALUES
            then = "edges may be wrong because of it; if it is a typing error, correct it"
            if few and all(far_from(column[at], each) for each in alike):
                keep[at] = False
                then = f"left out as a probable typing error; --typing-errors {KEPT} learns from it"
            said.append(
                f"row {found.rows[at]}: {node!r} is {column[at]:g}, far outside the {seen.low:g} "
                f"to {seen.high:g} of the other rows: {then}"
            )
    if not keep.all():
        remark = f"{np.sum(~keep)} of {len(keep)} rows left out for a probable typing error"
        found = found._replace(
            values=found.values[keep],
            regimes=found.regimes[keep],
            rows=found.rows[keep],
            left_out=(*found.left_out, remark),
            factors=None if levels is None else levels._replace(numbers=levels.numbers[keep]),
        )
    return found, said


def _near_levels(factors: FactorLevels) -> Iterator[str]:
    """Levels of few rows that are written nearly as one of many, which is probably meant."""
    for (name, levels), column in zip(factors.levels.items(), factors.numbers.T, strict=True):
        n_rows = np.bincount(column, minlength=len(levels)).tolist()
        for level, few in zip(levels, n_rows, strict=True):
            # in small letters, which slips of the shift key do not change
            usual = {
                str(o).casefold(): o
                for o, n in zip(levels, n_rows, strict=True)
                if n >= OFTEN * few > 0
            }
            for near in get_close_matches(str(level).casefold(), usual, 1, SAME_NAME):
                rows = "one row" if few == 1 else f"{few} rows"
                yield f"level {level!r} of {name} is in {rows}; did you mean {usual[near]!r}?"


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
        pairs = [part.split("=", 1) for part in names(text) or []]
        found = {name.strip(): float(value) for name, value in pairs}
        if len(found) < len(pairs):
            raise ValueError("a node is given twice")
        return found
    except ValueError as error:
        raise DataError(f"--noise-mean {text}: {error}") from error
