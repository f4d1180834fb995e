"""What only the posterior can say: how likely edges are that the graph does not have."""

from __future__ import annotations

from typing import Any

import numpy as np

from causalarms.cli.terminal import out, say, table
from causalarms.posterior.chains.convergence import GOOD_R_HAT
from causalarms.posterior.estimator import GraphPosterior

WORTH_PRINTING = 0.01


def posterior_summary(learner: Any) -> dict[str, Any]:
    """Nothing for other learners."""
    if not isinstance(learner, GraphPosterior):
        return {}
    chains = learner.diagnostics_
    return {
        "log_evidence": learner.log_evidence_,
        "chains": None if chains is None else chains._asdict() | {"converged": chains.converged},
        "whole_graph_miss_probability": learner.whole_graph_miss_probability_,
        "largest_dropped_probability": learner.largest_dropped_probability_,
        "left_out_edges": learner.left_out_,
        "edge_probability": dict(
            zip(learner.result_.regime_names, learner.edge_probability_.tolist(), strict=True)
        ),
    }


def print_posterior(learner: Any) -> None:
    if not isinstance(learner, GraphPosterior):
        return
    probability = learner.edge_probability_
    absent = ~learner.adjacency_ & learner.known_[:, None, :] & (probability > WORTH_PRINTING)
    rows = [
        [
            learner.result_.regime_names[r],
            f"{learner.nodes_[p]} -> {learner.nodes_[c]}",
            f"{probability[r, p, c]:.2f}",
        ]
        for r, p, c in sorted(np.argwhere(absent).tolist(), key=lambda e: -probability[tuple(e)])
    ]
    if rows:
        out().print(table(["regime", "edge left out", "probability"], rows))
    said = f"probability that the graph lacks an edge: {learner.whole_graph_miss_probability_:.2g}"
    chains = learner.diagnostics_
    if chains is None:
        say(f"{said}; log evidence {learner.log_evidence_:.1f}")
        return
    say(said)
    say(
        f"sampled: {chains.n_orders} orders of {chains.n_chains} chains, worst R-hat "
        f"{chains.worst_r_hat:.2f} (good: at most {GOOD_R_HAT}), at least "
        f"{chains.effective_size:.0f} effective orders per edge"
    )
