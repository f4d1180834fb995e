"""What every posterior is told: prior knowledge of edges, and the prior as the kernels take it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.errors import ModelError, SettingError
from causalarms.graphs.posterior.prior import MechanismPrior
from causalarms.graphs.posterior.refresh import Settings

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def edge_masks(
    n_nodes: int, allowed: npt.ArrayLike | None, required: npt.ArrayLike | None
) -> tuple[BoolArray, BoolArray]:
    """Allowed and required edges, (2, N, N) each."""
    shape = (2, n_nodes, n_nodes)
    every = np.ones(shape, dtype=bool) if allowed is None else _mask("allowed", allowed, n_nodes)
    none = np.zeros(shape, dtype=bool) if required is None else _mask("required", required, n_nodes)
    # in C order throughout: kernels are compiled anew for every other layout
    possible = np.array(np.broadcast_to(every, shape), order="C")
    possible &= ~np.eye(n_nodes, dtype=bool)
    certain = np.array(np.broadcast_to(none, shape), order="C")
    if (certain & ~possible).any():
        regime, parent, child = np.argwhere(certain & ~possible)[0]
        raise ModelError(f"edge {parent} -> {child} is required and forbidden ({regime=})")
    return possible, certain


def _mask(name: str, given: npt.ArrayLike, n_nodes: int) -> BoolArray:
    try:
        mask = np.asarray(given)
    except ValueError:
        mask = np.empty(0)
    shapes = ((n_nodes, n_nodes), (2, n_nodes, n_nodes))
    if mask.shape not in shapes or mask.dtype.kind not in "biu" or not np.isin(mask, (0, 1)).all():
        raise SettingError(
            f"{name} must say True or False of every edge, in shape {shapes[0]} or {shapes[1]}"
        )
    return mask.astype(bool)


def kernel_settings(
    n_nodes: int,
    prior: MechanismPrior,
    noise_mean: npt.ArrayLike | None,
    noise_std: npt.ArrayLike | None,
) -> Settings:
    return Settings(
        noise_mean=per_mechanism(noise_mean, n_nodes),
        known_variance=per_mechanism(noise_std, n_nodes) ** 2,
        log_sizes=prior.log_sizes(n_nodes),
        weight_mean=float(prior.weight_mean),
        weight_precision=prior.weight_scale**-2.0,
        intercept_precision=prior.intercept_scale**-2.0,
        noise_shape=float(prior.noise_shape),
    )


def per_mechanism(given: npt.ArrayLike | None, n_nodes: int) -> FloatArray:
    """(2, N), nan where unknown."""
    values = np.nan if given is None else np.asarray(given, dtype=float)
    return np.array(np.broadcast_to(values, (2, n_nodes)), order="C")
