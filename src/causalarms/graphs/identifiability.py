"""Say which nodes the data cannot tell causes from effects for.

In a Gaussian model the residual of a regression in the wrong direction is uncorrelated with its
regressors, hence independent of them, while the regime of every node stays the same. It is the
variation of the other nodes' regimes that makes wrong directions visible to CSL.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from causalarms.errors import IdentifiabilityWarning
from causalarms.sem.regimes import Counts, mechanism_name, regime_counts, regime_names


def warn_of_constant_regimes(
    regimes: npt.NDArray[np.uint8],
    nodes: tuple[str, ...],
    counts: Counts | None = None,
    stacklevel: int = 4,
) -> None:
    """`counts` says how many regimes each node has (two).

    Those without a switch are not meant, unless nothing at all varies.
    """
    counts = regime_counts(counts, len(nodes))
    constant = (regimes == regimes[0]).all(axis=0)
    if not constant.all() and not constant[counts > 1].any():
        return
    constant &= counts > 1
    unknown = {
        name: [
            nodes[i] for i in np.flatnonzero(constant & (regimes[0] != regime) & (regime < counts))
        ]
        for regime, name in enumerate(regime_names(int(counts.max())))
    }
    parts = [f"{', '.join(names)} ({regime})" for regime, names in unknown.items() if names]
    unseen = f"; these mechanisms are unknown, not absent: {'; '.join(parts)}" if parts else ""
    message = open_directions(regimes, nodes, constant) + unseen
    warnings.warn(message, IdentifiabilityWarning, stacklevel=stacklevel)


def open_directions(
    regimes: npt.NDArray[np.uint8], nodes: tuple[str, ...], constant: npt.NDArray[np.bool_]
) -> str:
    """What constant regimes of these nodes mean, in words."""
    n_rows = len(regimes)
    if (regimes == regimes[0]).all():
        subject = f"no node's regime varies over the {n_rows} rows"
    else:
        names = ", ".join(repr(nodes[i]) for i in np.flatnonzero(constant))
        subject = f"the regime of {names} never varies over the {n_rows} rows"
    return (
        f"{subject}: directions are told apart by varying regimes, so edges between such nodes may "
        "be reversed"
    )


def warn_of_few_samples(
    counts: npt.NDArray[np.int64],
    needed: npt.NDArray[np.int64],
    nodes: tuple[str, ...],
) -> None:
    """Name the mechanisms that have samples, but too few to be learned."""
    few = np.argwhere((counts > 0) & (counts < needed))
    if len(few):
        names = ", ".join(
            f"{mechanism_name(nodes, r, i, len(counts))} with {counts[r, i]} of {needed[i]}"
            for r, i in few
        )
        warnings.warn(
            f"too few samples, left unknown: {names}", IdentifiabilityWarning, stacklevel=4
        )
