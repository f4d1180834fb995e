"""The report of a study: one web page without anything outside it, every text escaped."""

from __future__ import annotations

import base64
import io
import math
from html import escape as html_escape
from typing import Any

import numpy as np

from causalarms.cli.study_options import what_to_set
from causalarms.cli.study_screen import summary
from causalarms.errors import StudyError
from causalarms.graphs.graph import Graph
from causalarms.outputs import Mark
from causalarms.plain_text import printable
from causalarms.sem.factors import NamedFactors
from causalarms.study import Study
from causalarms.study.beliefs import edges, unknown
from causalarms.study.history import columns, missing_in_words
from causalarms.study.model_fit import verdicts

STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:68rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;font-size:.85rem;display:block;overflow-x:auto}"
    "td,th{padding:.2rem .6rem;text-align:left;border-bottom:1px solid #ddd;white-space:nowrap}"
    "img{max-width:100%}.bad{color:#a03000}"
)
GENERATOR = '<meta name="generator" content="causalarms study report">'
MARK = Mark("`causalarms study report`", b"<!doctype html>", GENERATOR.encode())
MAX_TRIALS = 2000
WEIGHED = (
    "Weights and errors are averages over the draws that have the edge, probabilities over all."
)
GIVEN = "The policy believes in one graph: errors, intervals and probabilities take it as given."


def escape(text: str) -> str:
    return html_escape(printable(text))


def page(study: Study, name: str) -> str:
    """The whole page."""
    facts = summary(study)
    try:
        graph = study.graph()
    except StudyError:
        graph = None
    parts = [_head(facts, name), _best(facts), _rewards(facts)]
    parts.append(_graph(graph, facts, study.settings.named))
    parts += [_alarms(facts), _far_values(facts), _checks(study, graph), _trials(study)]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"{GENERATOR}<title>{escape(name)}</title><style>{STYLE}</style>"
        + "".join(parts)
        + "</html>\n"
    )


def _head(facts: dict[str, Any], name: str) -> str:
    counts = ", ".join(f"{n} {state}" for state, n in facts["trials"].items()) or "no trial yet"
    problem = (
        f'<p class="bad">The policy could not learn from its last round: '
        f"{escape(facts['problem'])}</p>"
        if facts["problem"]
        else ""
    )
    gaps = facts["missing"]
    missing = f"<p>{escape(missing_in_words(gaps))}.</p>" if gaps["values"] else ""
    return (
        f"<h1>{escape(name)}</h1><p>{escape(facts['direction'])} {escape(facts['reward'])} of "
        f"{len(facts['nodes'])} nodes with policy {escape(facts['policy'])}: {counts}.</p>{missing}"
        f"{problem}"
    )


def _best(facts: dict[str, Any]) -> str:
    best = facts["best"]
    if best is None:
        return "<h2>Best intervention</h2><p>It is too early to say.</p>"
    switch = escape(what_to_set(best, facts["factors"]))
    sure = (
        ""
        if math.isnan(best["probability"])
        else f" Best with probability {best['probability']:.2f}, expected loss "
        f"{best['expected_loss']:.3g} per round."
    )
    low, high = best["low"], best["high"]
    interval = "" if math.isnan(low) else f" (95 % interval {low:.4g} to {high:.4g})"
    return (
        f"<h2>Best intervention</h2><p>Switch <b>{switch}</b>: {escape(facts['reward'])} "
        f"{best['reward']:.4g}{interval}, from {escape(best['basis'])}.{sure}</p>"
    )


def _rewards(facts: dict[str, Any]) -> str:
    if not facts["rewards"]:
        return ""
    from matplotlib.figure import Figure

    from causalarms.pictures import style

    rewards = np.array(facts["rewards"])
    block = max(1, len(rewards) // 50)
    whole = len(rewards) // block * block
    with style.figure_style():
        figure = Figure(figsize=(style.TWO_COLUMNS, 2.4), layout="constrained")
        axes = figure.add_subplot()
        axes.plot(np.arange(1, len(rewards) + 1), rewards, ".", markersize=2, color=style.GREY)
        means = rewards[:whole].reshape(-1, block).mean(axis=1)
        axes.plot((np.arange(len(means)) + 0.5) * block + 0.5, means)
        axes.set_xlabel("round")
        axes.set_ylabel(printable(facts["reward"]), parse_math=False)
        picture = _image(figure, "reward of every round, and averages")
    return f"<h2>Reward so far</h2>{picture}"


def _graph(graph: Graph | None, facts: dict[str, Any], named: NamedFactors) -> str:
    if graph is None or not graph.adjacency.any():
        return "<h2>Learned graph</h2><p>Not yet: too few rounds of some mechanism.</p>"
    from causalarms.pictures.graph import draw_graph

    rows = [
        [
            e["when"],
            e["parent"],
            e["child"],
            _shown(e["weight"]),
            _shown(e["standard_error"]),
            _shown(e.get("probability")),
        ]
        for e in edges(graph, named)
    ]
    missing = ", ".join(f"{node} ({when})" for node, when in unknown(graph, named))
    note = f"<p>Too few rounds to say anything of {escape(missing)}.</p>" if missing else ""
    picture = _image(draw_graph(graph, reward=facts["reward"]), "who causes whom, per regime")
    return (
        f"<h2>Learned graph</h2>{picture}{note}"
        + _table(["when", "parent", "child", "weight", "standard error", "probability"], rows)
        + f"<p>{WEIGHED if facts['weighs_graphs'] else GIVEN}</p>"
    )


def _alarms(facts: dict[str, Any]) -> str:
    if not facts["alarms"]:
        words = "None." if facts["watches"] else "Nobody looks for changes in this study."
        return f"<h2>Alarms</h2><p>{words}</p>"
    keys = ["alarm", "trial", "regime", "node", "changed_after", "acknowledged", "note"]
    return "<h2>Alarms</h2>" + _table(keys, [[str(a[k]) for k in keys] for a in facts["alarms"]])


def _far_values(facts: dict[str, Any]) -> str:
    if not facts["far_values"] and not facts["left_out"]:
        return ""
    keys = ["trial", "node", "value", "low", "high", "command"]
    out = [f"<p>{escape(out['message'])}</p>" for out in facts["left_out"]]
    words = "All others are used" if out else "They are used"
    return (
        f"<h2>Values far outside the rest</h2>{''.join(out)}"
        f"<p>{words}; if one is a typing error:</p>"
        + _table(keys, [[_shown(far[key]) for key in keys] for far in facts["far_values"]])
    )


def _checks(study: Study, graph: Graph | None) -> str:
    if graph is None or not graph.known.any():
        return ""
    rows = [[v.node, v.regime, str(v.rounds), v.words] for v in verdicts(study.beliefs(), graph)]
    return "<h2>Does the model fit?</h2>" + _table(["node", "regime", "rounds", "verdict"], rows)


def _trials(study: Study) -> str:
    table = columns(study.ledger())
    rows = [[_shown(cell) for cell in row] for row in zip(*table.values(), strict=True)]
    note = f"<p>The last {MAX_TRIALS} of {len(rows)}.</p>" if len(rows) > MAX_TRIALS else ""
    return f"<h2>Trials</h2>{note}" + _table(list(table), rows[-MAX_TRIALS:])


def _table(header: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _image(figure: Any, text: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{escape(text)}" src="data:image/png;base64,{data}">'
