"""A posterior as plain arrays and scalars, from which it continues with the same bits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from causalarms.changes.alarm import Alarm
from causalarms.errors import DataError
from causalarms.policies.state_check import BITS, FLAGS, FLOATS, INTEGERS, REAL, WHOLE, Entry
from causalarms.posterior.exact import ExactPosterior
from causalarms.posterior.mixed import MixedPosterior
from causalarms.posterior.sampled import LARGEST_SEED, SampledPosterior
from causalarms.sem.regimes import Counts
from causalarms.statistics.moments import Moments

GENERATOR = "rng"

AnyPosterior = ExactPosterior | MixedPosterior | SampledPosterior


def posterior_state(posterior: AnyPosterior) -> dict[str, Any]:
    """Moments, present and retired; of a sampled one the chains too, of a mixed one its priors."""
    if isinstance(posterior, MixedPosterior):
        return posterior_state(posterior.likeliest) | {"held": np.array(posterior.held)}
    if isinstance(posterior, SampledPosterior):
        state = posterior.state()
        text = json.dumps(state[GENERATOR]).encode()  # its numbers are longer than 64 bits
        return state | {GENERATOR: np.frombuffer(text, dtype=np.uint8).copy()}
    mechanisms = [(regime, node) for regime, node, _ in posterior.retired]
    size = posterior.n_nodes + 1
    return {
        "gram": posterior.gram.copy(),
        "retired": np.array(mechanisms, dtype=np.int64).reshape(-1, 2),
        "retired_gram": np.array([m[2] for m in posterior.retired]).reshape(-1, size, size),
    }


def posterior_entries(posterior: AnyPosterior) -> dict[str, Entry]:
    """What the state of a fresh posterior does not show; chains check their own ranges."""
    n, r = posterior.n_nodes, int(posterior.regimes.max())
    if isinstance(posterior, SampledPosterior):
        return {
            "orders": Entry(INTEGERS, (posterior.n_chains, n), 0, n - 1),
            "kept": Entry(INTEGERS, (posterior.n_chains, None, n), 0, n - 1),
            "acceptance": Entry(REAL, low=0, high=1),
            "step_seed": Entry(WHOLE, low=0, high=LARGEST_SEED),
            "members": Entry(INTEGERS, (r, n, n), 0, n - 1),
            "n_free": Entry(INTEGERS, (r, n), 0, n),
            "n_core": Entry(INTEGERS, (r, n), 0, n),
            "needed": Entry(INTEGERS, (r, n), 0),
            "log_odds": Entry(FLOATS, (r, n, n), finite=False),
            "allowed": Entry(FLAGS, (r, n, n)),
            GENERATOR: Entry(BITS, (None,), 1, 127),
        }
    entries = {
        "retired": Entry(INTEGERS, (None, 2), 0, max(n - 1, r - 1)),
        "retired_gram": Entry(FLOATS, (None, n + 1, n + 1)),
    }
    if isinstance(posterior, MixedPosterior):
        entries["held"] = Entry(INTEGERS, (None,), 0, len(posterior.parts) - 1)
    return entries


def check_retired(state: dict[str, Any], alarms: Sequence[Alarm], regimes: Counts) -> None:
    """Every alarm retires its mechanism; those of an exact posterior are part of its state."""
    if "retired" in state:
        mechanisms = [list(m) for alarm in alarms for m in alarm.mechanisms(regimes)]
        if np.asarray(state["retired"]).tolist() != mechanisms:
            raise DataError("the retired mechanisms are not those of the alarms")


def restore_posterior(posterior: AnyPosterior, state: dict[str, Any]) -> None:
    """Into a posterior made with the same settings that knows nothing yet."""
    if isinstance(posterior, MixedPosterior):
        held = [int(k) for k in state["held"]]
        if not held or held != sorted(set(held)):
            raise DataError(f"{held} are no priors that may be held")
        for k in held:
            restore_posterior(posterior.parts[k], state)
        posterior.hold_only(held)
        return
    if isinstance(posterior, SampledPosterior):
        text = np.asarray(state[GENERATOR], dtype=np.uint8).tobytes()
        posterior.restore(state | {GENERATOR: json.loads(text)})
        return
    seen = Moments(posterior.n_nodes, regimes=posterior.regimes)
    for (regime, node), gram in zip(state["retired"], state["retired_gram"], strict=True):
        seen.gram[regime, node] = gram
        posterior.update(seen)
        posterior.retire(int(regime), int(node))
        seen.forget(int(regime), int(node))
    seen.gram[:] = state["gram"]
    posterior.update(seen)
