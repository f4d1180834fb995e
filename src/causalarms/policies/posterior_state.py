"""A posterior as plain arrays and scalars, from which it continues with the same bits."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from causalarms.graphs.posterior.exact import ExactPosterior
from causalarms.graphs.posterior.mixed import MixedPosterior
from causalarms.graphs.posterior.sampled import SampledPosterior
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


def restore_posterior(posterior: AnyPosterior, state: dict[str, Any]) -> None:
    """Into a posterior made with the same settings that knows nothing yet."""
    if isinstance(posterior, MixedPosterior):
        held = [int(k) for k in state["held"]]
        for k in held:
            restore_posterior(posterior.parts[k], state)
        posterior.hold_only(held)
        return
    if isinstance(posterior, SampledPosterior):
        text = np.asarray(state[GENERATOR], dtype=np.uint8).tobytes()
        posterior.restore(state | {GENERATOR: json.loads(text)})
        return
    seen = Moments(posterior.n_nodes)
    for (regime, node), gram in zip(state["retired"], state["retired_gram"], strict=True):
        seen.gram[regime, node] = gram
        posterior.update(seen)
        posterior.retire(int(regime), int(node))
        seen.forget(int(regime), int(node))
    seen.gram[:] = state["gram"]
    posterior.update(seen)
