"""`study show`: the state of a study on one screen."""

from __future__ import annotations

from typing import Any

import numpy as np

from causalarms.cli.study_options import what_to_set
from causalarms.cli.terminal import print_json, say
from causalarms.errors import StudyError
from causalarms.study import Study
from causalarms.study.report import edges as edges_of
from causalarms.study.report import missing_in_words, missing_values

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60
EDGES = 8


def show_study(study: Study, *, as_json: bool) -> None:
    record = summary(study)
    if as_json:
        print_json(record)
        return
    counts = ", ".join(f"{n} {state}" for state, n in record["trials"].items()) or "no trial yet"
    say(f"{len(record['nodes'])} nodes, {record['direction']} {record['reward']}; {counts}")
    if record["rewards"]:
        say(f"reward  {sparkline(record['rewards'])}  last {record['rewards'][-1]:.4g}")
    best = record["best"]
    if best is not None:
        chance = best["probability"]
        sure = "" if chance != chance else f", best with probability {chance:.2f}"
        low, high = best["low"], best["high"]
        interval = "" if low != low else f" ({low:.4g} to {high:.4g})"
        words = what_to_set(best, record["factors"])
        say(f"best    switch {words}: {best['reward']:.4g}{interval}{sure}")
    for edge in record["edges"][:EDGES]:
        say(f"edge    {edge['parent']} -> {edge['child']} ({edge['when']}) {edge['weight']:+.2f}")
    if len(record["edges"]) > EDGES:
        say(f"        and {len(record['edges']) - EDGES} more: causalarms study graph")
    for alarm in record["alarms"]:
        seen = "acknowledged" if alarm["acknowledged"] else "NEW"
        say(f"alarm   {alarm['node']} ({alarm['regime']}) at trial {alarm['trial']}: {seen}")
    for far in record["far_values"]:
        say(
            f"far     {far['node']} = {far['value']:.4g} in trial {far['trial']}, others "
            f"{far['low']:.4g} to {far['high']:.4g}: {far['command']}"
        )
    if record["missing"]["values"]:
        say(f"missing {missing_in_words(record['missing'])}")
    for out in record["left_out"]:
        say(f"left out {out['message']}")
    for trial in record["pending"]:
        say(
            f"pending trial {trial['trial']} of {trial['worker']}: switch "
            f"{what_to_set(trial, record['factors'])}"
        )
    if record["problem"]:
        say(f"problem {record['problem']}")


def summary(study: Study) -> dict[str, Any]:
    """Everything the screen shows, as plain values; edges by falling weight."""
    ledger, settings = study.ledger(), study.settings
    states: dict[str, int] = {}
    for record in ledger.trials:
        states[record.state] = states.get(record.state, 0) + 1
    try:
        best = study.best().as_dict()
    except StudyError:
        best = None
    try:
        edges = sorted(edges_of(study.graph(), settings.named), key=lambda e: -abs(e["weight"]))
    except StudyError:
        edges = []
    rewards = [r.values[settings.reward_index] for r in ledger.with_values() if r.values]
    return {
        "nodes": list(settings.nodes),
        "reward": settings.reward,
        "direction": settings.direction,
        "factors": settings.named.as_list(),
        "policy": settings.policy,
        "trials": states,
        "rewards": [reward for reward in rewards if reward is not None],
        "missing": missing_values(ledger),
        "best": best,
        "edges": edges,
        "alarms": study.alarms(),
        "watches": study.watches,
        "weighs_graphs": study.weighs_graphs,
        "pending": [
            {
                "trial": n,
                "worker": ledger.trials[n].worker,
                "switch": settings.named.switched(ledger.trials[n].intervention),
                "levels": settings.named.levels(ledger.trials[n].intervention),
            }
            for n in ledger.pending
        ],
        "problem": study.problem,
        "far_values": [far.as_dict() for far in study.far_values()],
        "left_out": [out.as_dict() for out in study.left_out()],
    }


def sparkline(values: list[float]) -> str:
    """Averages of equal blocks as bars.

    >>> sparkline([0, 1, 2, 3, 4, 5, 6, 7])
    '▁▂▃▄▅▆▇█'
    """
    blocks = np.array_split(np.asarray(values, dtype=float), min(WIDTH, len(values)))
    means = np.array([block.mean() for block in blocks])
    span = means.max() - means.min()
    scaled = np.zeros(len(means)) if span == 0 else (means - means.min()) / span
    return "".join(BARS[min(int(level * len(BARS)), len(BARS) - 1)] for level in scaled)
