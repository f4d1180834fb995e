"""All that the policy `posterior` has learned, as plain arrays and scalars, and back again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from causalarms.changes.alarm import Alarm
from causalarms.changes.detector import Detector
from causalarms.errors import DataError
from causalarms.graphs.units import Units
from causalarms.policies.first_rounds import FIRST_ROUNDS, LATEST
from causalarms.policies.incomplete_rounds import with_gaps
from causalarms.policies.learned_system import LearnedSystem
from causalarms.policies.posterior_state import (
    check_retired,
    posterior_entries,
    posterior_state,
    restore_posterior,
)
from causalarms.policies.predictable_nodes import PredictableNodes
from causalarms.policies.state_check import FLOATS, Entry
from causalarms.policies.states import nested, unnested


def parts_state(
    system: LearnedSystem,
    nodes: PredictableNodes,
    detector: Detector,
    *,
    gaps: bool,  # incomplete rounds are learned from
    scalars: dict[str, int],
) -> dict[str, Any]:
    """In the order in which snapshots are written."""
    rounds, units = system.rounds, system.units
    return {
        **rounds.moments.state(),
        **nested("posterior", posterior_state(system.posterior)),
        **nested("recent", rounds.recent.state()),
        **nested("detector", detector.state()),
        **({} if rounds.suspects is None else nested("suspects", rounds.suspects.state())),
        "scale": np.zeros(0) if units is None else units.scale,
        "shift": np.zeros(0) if units is None else units.shift,
        "origin": rounds.origin.copy(),
        "began": rounds.began.copy(),
        **scalars,
        "predictors": nodes.predictors.copy(),
        "settled": nodes.settled.copy(),
        **(nested("gaps", rounds.gaps.state()) if gaps else {}),
    }


def parts_entries(system: LearnedSystem, *, gaps: bool) -> dict[str, Entry]:
    """What the state of fresh parts does not show."""
    rounds, n_nodes = system.rounds, system.rounds.n_nodes
    n_units = None if system.units is None else n_nodes
    own: dict[str, Entry] = {}
    if gaps:
        own = nested("gaps", rounds.gaps.entries())
        own["recent.values"] = with_gaps((None, n_nodes))
    if rounds.suspects is not None:
        own |= nested("suspects", rounds.suspects.entries(gaps=gaps))
    return own | {
        **nested("posterior", posterior_entries(system.posterior)),
        "scale": Entry(FLOATS, (n_units,), np.finfo(float).tiny),
        "shift": Entry(FLOATS, (n_units,)),
    }


def restore_parts(
    system: LearnedSystem,
    nodes: PredictableNodes,
    detector: Detector,
    state: dict[str, Any],
    *,
    gaps: bool,
    n_told: int,
    alarms: Sequence[Alarm],
) -> None:
    """Into parts made with the same settings that know nothing yet."""
    rounds = system.rounds
    rounds.moments.restore(state)
    rounds.origin = np.array(state.get("origin", np.zeros(rounds.n_nodes)))
    system.use(_units(state, rounds.n_nodes, n_told, LATEST if gaps else FIRST_ROUNDS))
    check_retired(unnested("posterior", state), alarms, rounds.regimes)
    restore_posterior(system.posterior, unnested("posterior", state))
    rounds.recent.restore(unnested("recent", state))
    if gaps:
        rounds.gaps.restore(unnested("gaps", state))
        rounds.gaps.check_recent(state["recent.rounds"], state["recent.values"])
    detector.restore(unnested("detector", state))
    rounds.began = np.array(state.get("began", np.zeros_like(rounds.began)), dtype=np.int64)
    if rounds.suspects is not None:
        rounds.suspects.restore(unnested("suspects", state))
        rounds.suspects.check_recent(
            n_told, np.asarray(state["recent.rounds"]), np.asarray(state["recent.values"])
        )
    nodes.predictors = np.array(state["predictors"], dtype=bool)
    nodes.settled = np.array(state["settled"], dtype=bool)


def _units(state: dict[str, Any], n_nodes: int, n_told: int, latest: int) -> Units | None:
    """None where they are not known yet, which is so before the `latest` round only."""
    scale, shift = np.array(state["scale"]), np.array(state["shift"])
    lengths = {len(scale), len(shift)}
    if lengths != {n_nodes} and (lengths != {0} or n_told >= latest):
        raise DataError(f"the units of {n_nodes} nodes are missing or too many")
    return Units(shift=shift, scale=scale) if len(scale) else None
