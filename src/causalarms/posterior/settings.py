"""What every posterior is told: prior knowledge of edges, and the prior as the kernels take it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError, SettingError
from causalarms.posterior.prior import EdgeMask, KernelPrior, MechanismPrior
from causalarms.sem.regimes import Counts, existing, regime_counts
from causalarms.statistics.moments import Moments

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def regimes_of(n_nodes: int, moments: Moments | None, given: npt.ArrayLike | None) -> Counts:
    """As given, else those of the moments, else two of every node."""
    if given is None and moments is not None:
        return moments.n_regimes
    counts = regime_counts(given, n_nodes)
    if moments is not None and not np.array_equal(counts, moments.n_regimes):
        raise ModelError(
            f"moments of {moments.n_regimes.tolist()} regimes do not fit {counts.tolist()}"
        )
    return counts


def edge_masks(
    regimes: Counts, allowed: npt.ArrayLike | None, required: npt.ArrayLike | None
) -> EdgeMask:
    """Allowed and required edges; none of regimes that a node does not have."""
    n_nodes = len(regimes)
    shape = (int(regimes.max()), n_nodes, n_nodes)
    every = np.ones(shape, dtype=bool) if allowed is None else _mask("allowed", allowed, shape)
    none = np.zeros(shape, dtype=bool) if required is None else _mask("required", required, shape)
    # in C order throughout: kernels are compiled anew for every other layout
    possible = np.array(np.broadcast_to(every, shape), order="C")
    possible &= ~np.eye(n_nodes, dtype=bool)
    certain = np.array(np.broadcast_to(none, shape), order="C")
    for mask in (possible, certain):
        mask &= existing(regimes)[:, None, :]
    if (certain & ~possible).any():
        regime, parent, child = np.argwhere(certain & ~possible)[0]
        raise SettingError(
            f"edge {parent} -> {child} is required and forbidden ({regime=}): allowed says no"
        )
    return EdgeMask(possible, certain)


def _mask(name: str, given: npt.ArrayLike, shape: tuple[int, int, int]) -> BoolArray:
    try:
        mask = np.asarray(given)
    except ValueError:
        mask = np.empty(0)
    shapes = (shape[1:], shape)
    if mask.shape not in shapes or mask.dtype.kind not in "biu" or not np.isin(mask, (0, 1)).all():
        raise SettingError(
            f"{name} must say True or False of every edge, in shape {shapes[0]} or {shapes[1]}"
        )
    return mask.astype(bool)


def kernel_prior(
    regimes: Counts,
    prior: MechanismPrior,
    noise_mean: npt.ArrayLike | None,
    noise_std: npt.ArrayLike | None,
) -> KernelPrior:
    return KernelPrior(
        noise_mean=per_mechanism(noise_mean, regimes),
        known_variance=per_mechanism(noise_std, regimes) ** 2,
        log_sizes=prior.log_sizes(len(regimes)),
        weight_precision=prior.weight_scale**-2.0,
        intercept_precision=prior.intercept_scale**-2.0,
        noise_shape=float(prior.noise_shape),
        regimes=np.array(regimes, dtype=np.int64),
    )


def per_mechanism(given: npt.ArrayLike | None, regimes: Counts) -> FloatArray:
    """(R, N), nan where unknown."""
    values = np.nan if given is None else np.asarray(given, dtype=float)
    return np.array(np.broadcast_to(values, (int(regimes.max()), len(regimes))), order="C")
