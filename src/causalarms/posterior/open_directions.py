"""Say what a graph without cycles had to give up where the data leave directions open."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.errors import IdentifiabilityWarning
from causalarms.posterior.kept_graph import KeptGraph
from causalarms.sem.regimes import regime_names


def left_out_edges(
    kept: KeptGraph, nodes: tuple[str, ...], probability: npt.NDArray[np.float64]
) -> list[dict[str, Any]]:
    """The edges above the tolerance that run against the order, most probable first."""
    names = regime_names(len(kept.left_out))
    edges = [
        {
            "regime": names[r],
            "parent": nodes[p],
            "child": nodes[c],
            "probability": float(probability[r, p, c]),
        }
        for r, p, c in np.argwhere(kept.left_out)
    ]
    return sorted(edges, key=lambda edge: -edge["probability"])


def warn_of_open_directions(kept: KeptGraph, left_out: list[dict[str, Any]]) -> None:
    if kept.honoured:
        return
    example = ""
    if left_out:
        edge = left_out[0]
        example = (
            f"; given up, among others: {edge['parent']} -> {edge['child']} ({edge['regime']}) "
            f"with probability {edge['probability']:.2f}"
        )
    warnings.warn(
        "the data leave directions open and no graph without cycles keeps the promise: some edge "
        f"runs against the order of this one with probability {kept.order_misses:.2g}{example}",
        IdentifiabilityWarning,
        stacklevel=4,
    )
