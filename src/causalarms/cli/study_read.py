"""Commands that look at a study; they never wait for those who write to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from causalarms.cli.options import FORCE
from causalarms.cli.study_options import FILE, JSON, levels, switched, what_to_set
from causalarms.cli.study_place import StudyPlace, inputs_of, open_study
from causalarms.cli.study_screen import show_study
from causalarms.cli.terminal import out, print_json, say, table
from causalarms.sem.factors import NamedFactors
from causalarms.study.ledger import Record
from causalarms.study.report import columns, edges
from causalarms.study.report import unknown as unknown_of


@click.command()
@FILE
@JSON
def show(file: StudyPlace, as_json: bool) -> None:
    """Reward so far, best intervention, learned edges, alarms."""
    with open_study(file, read_only=True) as study:
        show_study(study, as_json=as_json)


@click.command()
@FILE
@JSON
def best(file: StudyPlace, as_json: bool) -> None:
    """The best intervention known, its probability and what being wrong would cost."""
    with open_study(file, read_only=True) as study:
        found, settings = study.best(), study.settings
    if as_json:
        print_json(found.as_dict())
        return
    words = settings.named.words(list(found.intervention.values()))
    say(f"switch {switched(words)}")
    interval = ""
    if found.low == found.low:
        interval = f" (95 % interval {found.low:.4g} to {found.high:.4g})"
    say(f"{settings.reward} {found.reward:.4g}{interval}, from {found.basis}")
    if found.probability == found.probability:
        say(
            f"best with probability {found.probability:.3f}, expected loss "
            f"{found.expected_loss:.3g} per round"
        )


@click.command()
@FILE
@click.option(
    "--switch", default="", metavar="A,B=LEVEL,...", help="Factors that are on, or their levels."
)
@JSON
def predict(file: StudyPlace, switch: str, as_json: bool) -> None:
    """Expected value of every node with its 95 % interval."""
    with open_study(file, read_only=True) as study:
        found = study.predict([levels(switch) or {}])[0]
    if as_json:
        print_json(found)
        return
    rows = [
        [node, *(f"{e[k]:.4g}" for k in ("mean", "low", "high"))]
        for node, e in found["expected"].items()
    ]
    _print(["node", "expected", "low", "high"], rows)


@click.command()
@FILE
@click.option("--out", "path", type=click.Path(path_type=Path), help="JSON, CSV, GraphML, DOT.")
@FORCE
@JSON
def graph(file: StudyPlace, path: Path | None, force: bool, as_json: bool) -> None:
    """The learned edges of every regime."""
    with open_study(file, read_only=True) as study:
        found, named = study.graph(), study.settings.named
    if path is not None:
        found.save(path, inputs=inputs_of(file), force=force)
    if as_json:
        unknown = [{"regime": r, "node": node} for r, node in found.unknown()]
        print_json({"nodes": found.nodes, "edges": edges(found, named), "unknown": unknown})
        return
    rows = [
        [
            e["when"],
            e["parent"],
            e["child"],
            f"{e['weight']:+.3f}",
            _number(e["standard_error"]),
            _number(e.get("probability")),
        ]
        for e in edges(found, named)
    ]
    _print(["when", "parent", "child", "weight", "+-", "probability"], rows)
    if found.unknown():
        few = unknown_of(found, named)
        say("too few rounds: " + ", ".join(f"{node} ({when})" for node, when in few))


@click.command()
@FILE
@JSON
def alarms(file: StudyPlace, as_json: bool) -> None:
    """Mechanisms that seem to have changed."""
    with open_study(file, read_only=True) as study:
        found, watches, policy = study.alarms(), study.watches, study.settings.policy
    if as_json:
        print_json(found)
    elif not found:
        say("no alarm" if watches else f"no alarm: policy {policy} does not watch for any")
    else:
        keys = ["alarm", "trial", "regime", "node", "changed_after", "acknowledged", "note"]
        _print(keys, [[str(a[key]) for key in keys] for a in found])


@click.command()
@FILE
@click.argument("trial", type=int)
@JSON
def explain(file: StudyPlace, trial: int, as_json: bool) -> None:
    """Why a TRIAL was suggested."""
    with open_study(file, read_only=True) as study:
        found, factors = study.explain(trial), study.settings.named.as_list()
    if as_json:
        print_json(found)
        return
    say(f"trial {trial} ({found['state']}): switch {what_to_set(found, factors)}")
    say(found["text"])
    if found.get("edges"):
        say("edges that carry most of the expected reward:")
        for e in found["edges"]:
            say(
                f"  {e['parent']} -> {e['child']} ({e['regime']}): weight {e['weight']:+.2f}, "
                f"carries {e['carries']:+.3g}"
            )
    for m in found.get("mechanisms", [])[:3]:
        share = 100 * m["share_of_uncertainty"]
        say(f"  {share:.0f} % of the uncertainty comes from {m['node']} ({m['regime']})")


@click.command()
@FILE
@click.option("--last", type=click.IntRange(min=1), help="Only the newest so many.")
@JSON
def history(file: StudyPlace, last: int | None, as_json: bool) -> None:
    """All trials; every value with --json or `export`."""
    with open_study(file, read_only=True) as study:
        ledger, settings = study.ledger(), study.settings
    if as_json:
        found = columns(ledger)
        rows = list(zip(*found.values(), strict=True))[-(last or 0) :]
        print_json([dict(zip(found, row, strict=True)) for row in rows])
        return
    lines = [
        [
            str(r.number),
            r.state,
            r.worker,
            _switched(r, settings.named),
            _cell(r.values[settings.reward_index] if r.values else None),
            r.done_at or r.asked_at,
            r.reason,
        ]
        for r in ledger.trials[-(last or 0) :]
    ]
    _print(["trial", "state", "worker", "switched", settings.reward, "at", "remark"], lines)


def _switched(record: Record, named: NamedFactors) -> str:
    played, asked = (
        switched(named.words(regimes))
        for regimes in (record.intervention, record.asked_intervention)
    )
    return played if played == asked else f"{played} (asked: {asked})"


def _print(header: list[str], rows: list[list[str]]) -> None:
    out().print(table(header, rows))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
