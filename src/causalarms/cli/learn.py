"""`causalarms learn data.csv`: the graph behind logged rounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from causalarms.cli.rounds_from_file import read_rounds
from causalarms.cli.terminal import collected_warnings, err, out, print_json, table
from causalarms.errors import DataError
from causalarms.graphs import CSL
from causalarms.graphs.csl import Removal
from causalarms.graphs.inputs import Rounds
from causalarms.graphs.model_checks import MechanismCheck, check_mechanisms

METHODS: dict[str, dict[str, Any]] = {
    "csl": {},
    "csl-nw": {"edge_weighting": False},
    "csl-literal": {"joint": False},
}
PICTURES = (".png", ".pdf")
SUSPICIOUS = 1e-3  # p-value below which a mechanism is called a bad fit


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--method", type=click.Choice(list(METHODS)), default="csl", show_default=True)
@click.option(
    "--interventions",
    type=click.Path(path_type=Path),
    help="Second table with a 0/1 column per node.",
)
@click.option(
    "--intervened",
    metavar="COLUMN",
    help="Column that names the intervened nodes, separated by ';'.",
)
@click.option("--nodes", metavar="A,B,...", help="Columns to use as nodes (default: all others).")
@click.option("--ignore", multiple=True, metavar="COLUMN", help="Column to leave out.")
@click.option(
    "--noise-mean",
    metavar="NUMBER|NODE=NUMBER,...",
    help="Known means of the noise (default: estimated).",
)
@click.option("--forbid", multiple=True, metavar="A->B", help="Edge that cannot be.")
@click.option("--require", multiple=True, metavar="A->B", help="Edge that must be.")
@click.option(
    "--tier",
    multiple=True,
    metavar="A,B,...",
    help="Nodes of a tier, earliest first; no edge goes back.",
)
@click.option(
    "--max-samples", type=click.IntRange(min=1), help="At most so many samples per mechanism."
)
@click.option("--standardize", is_flag=True, help="Divide nodes by their standard deviation.")
@click.option(
    "--few-samples",
    type=click.Choice(["raise", "unknown"]),
    default="raise",
    show_default=True,
    help="What to do with mechanisms that have too few samples.",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(min=0),
    default=0,
    help="Refits on part of the rounds, for the stability of edges.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes for --bootstrap.")
@click.option(
    "--out",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Write .json, .csv, .graphml, .dot, .png or .pdf; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def learn(
    data: Path,
    method: str,
    interventions: Path | None,
    intervened: str | None,
    nodes: str | None,
    ignore: tuple[str, ...],
    noise_mean: str | None,
    forbid: tuple[str, ...],
    require: tuple[str, ...],
    tier: tuple[str, ...],
    max_samples: int | None,
    standardize: bool,
    few_samples: str,
    bootstrap: int,
    seed: int,
    jobs: int,
    outputs: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Learn who causes what from a table of rounds (CSV or Parquet).

    Rows are rounds, columns are nodes. Interventions are 0/1 columns do:NAME, or a column
    'intervened' that names the intervened nodes separated by ';', or a second table.
    """
    _check_endings(outputs)
    rounds, source = read_rounds(
        data,
        interventions=interventions,
        intervened=intervened,
        nodes=_names(nodes) or None,
        ignore=ignore,
    )
    learner = CSL(
        **METHODS[method],
        max_samples=max_samples,
        standardize=standardize,
        forbidden=[_edge(text) for text in forbid],
        required=[_edge(text) for text in require],
        tiers=[_names(text) for text in tier] or None,
        on_few_samples=few_samples,
        n_bootstrap=bootstrap,
        n_jobs=jobs,
        random_state=seed,
    )
    messages: list[str] = []
    with (
        collected_warnings(messages, show=not as_json),
        _live_line(len(rounds.nodes)) as on_removal,
    ):
        learner.fit_rounds(rounds, _noise_mean(noise_mean), on_removal)
    checks = check_mechanisms(
        rounds.values,
        rounds.regimes,
        rounds.nodes,
        learner.adjacency_,
        learner.weights_,
        learner.known_,
    )
    for path in outputs:
        _write(learner, path)
    if as_json:
        print_json(_record(learner, rounds, source, method, checks, messages))
    else:
        _print(learner, rounds, source, method, checks, outputs)


class _live_line:  # noqa: N801 — reads as a verb where it is used
    """A bar that moves as nodes find their place in the order; silent off a terminal."""

    def __init__(self, n_nodes: int) -> None:
        self._progress = Progress(
            TextColumn("learning"),
            BarColumn(),
            TextColumn("{task.fields[edge]}"),
            TimeRemainingColumn(),
            console=err(),
            transient=True,
            disable=not err().is_terminal,
        )
        self._task = self._progress.add_task("learn", total=n_nodes * (n_nodes - 1), edge="")

    def __enter__(self) -> Callable[[Removal, int], None]:
        self._progress.start()
        return self._removed

    def __exit__(self, *exc: object) -> None:
        self._progress.stop()

    def _removed(self, removal: Removal, n_ordered: int) -> None:
        self._progress.update(self._task, advance=1, edge=f"{n_ordered} nodes in order")


def _record(
    learner: CSL,
    rounds: Rounds,
    source: str,
    method: str,
    checks: list[MechanismCheck],
    messages: list[str],
) -> dict[str, Any]:
    result = learner.result_
    return {
        "method": method,
        "n_rounds": len(rounds.values),
        "nodes": list(rounds.nodes),
        "interventions": source,
        "order": learner.order_,
        "edges": result.edges(),
        "unknown": [{"regime": r, "node": node} for r, node in result.unknown()],
        "checks": [
            {key: None if value != value else value for key, value in check._asdict().items()}
            for check in checks
        ],
        "varsortability": None if np.isnan(learner.varsortability_) else learner.varsortability_,
        "warnings": messages,
    }


def _print(
    learner: CSL,
    rounds: Rounds,
    source: str,
    method: str,
    checks: list[MechanismCheck],
    outputs: tuple[Path, ...],
) -> None:
    console = out()
    result = learner.result_
    edges = result.edges()
    n_intervened = int(rounds.regimes.any(axis=1).sum())
    console.print(
        f"{len(rounds.values)} rounds of {len(rounds.nodes)} nodes, {n_intervened} with an "
        f"intervention ({source}); method {method}"
    )
    measures = [name for name in ("score", "stability") if name in result.measures]
    rows = [
        [e["regime"], f"{e['parent']} -> {e['child']}", f"{e['weight']:.3f}"]
        + ["" if e[name] is None else f"{e[name]:.2f}" for name in measures]
        for e in edges
    ]
    console.print(table(["regime", "edge", "weight", *measures], rows))
    if learner.order_ is None:
        console.print(
            "The two regimes mix into a cycle: some interventions have no expected reward. "
            "--method csl learns one common order."
        )
    else:
        console.print("order: " + ", ".join(learner.order_))
    unknown = result.unknown()
    if unknown:
        console.print("unknown (no data): " + ", ".join(f"{node} ({r})" for r, node in unknown))
    _print_checks(checks)
    console.print(
        f"varsortability {learner.varsortability_:.2f} "
        "(near 1: the variances alone give the order away)"
    )
    for path in outputs:
        console.print(f"wrote {path}")


def _print_checks(checks: list[MechanismCheck]) -> None:
    console = out()
    for name, words in (
        ("gaussian_p", "residuals are not Gaussian"),
        ("linear_p", "the relation to the parents bends"),
    ):
        bad = [c for c in checks if getattr(c, name) < SUSPICIOUS]
        if bad:
            names = ", ".join(f"{c.node} ({c.regime})" for c in bad)
            console.print(
                f"model check: in {len(bad)} of {len(checks)} mechanisms {words} "
                f"(p < {SUSPICIOUS:g}): {names}"
            )
    if any(min(c.gaussian_p, c.linear_p) < SUSPICIOUS for c in checks):
        console.print(
            "The linear Gaussian model is an approximation here; read edges as hypotheses."
        )


def _write(learner: CSL, path: Path) -> None:
    if path.suffix in PICTURES:
        from causalarms.pictures.graph import draw_graph
        from causalarms.pictures.style import save_figure

        save_figure(draw_graph(learner.result_), path)
    else:
        learner.result_.save(path)


def _check_endings(outputs: tuple[Path, ...]) -> None:
    known = (".json", ".csv", ".graphml", ".dot", *PICTURES)
    for path in outputs:
        if path.suffix not in known:
            raise click.BadParameter(
                f"{path}: unknown ending; there are {', '.join(known)}", param_hint="--out"
            )


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _edge(text: str) -> tuple[str, str]:
    parent, arrow, child = text.partition("->")
    if not arrow or not parent.strip() or not child.strip():
        raise click.BadParameter(f"{text!r} is not of the form A->B")
    return parent.strip(), child.strip()


def _noise_mean(text: str | None) -> Any:
    if text is None:
        return None
    try:
        if "=" not in text:
            return float(text)
        pairs = (part.split("=", 1) for part in _names(text))
        return {name.strip(): float(value) for name, value in pairs}
    except ValueError as error:
        raise DataError(f"--noise-mean {text}: {error}") from error
