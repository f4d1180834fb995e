"""Convergence of the chains: split R-hat and effective sample size of every edge's probability.

Both are those of Gelman et al., Bayesian Data Analysis, 3rd ed., Sec. 11.4-11.5, of the probability
of an edge given each kept order. An edge whose probability varies by less than `NOTICEABLE` from
order to order counts as converged, however its chains compare. A second warning tells of large
values next to which the noise is lost.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from causalarms.arrays import FloatArray
from causalarms.errors import ConvergenceWarning, ScaleWarning
from causalarms.sem.regimes import regime_names

NOTICEABLE = 0.01  # standard deviation of an edge's probability over all orders
GOOD_R_HAT = 1.1
MIN_EFFECTIVE_ORDERS = 5  # per chain
# Sums of squares of values that are r times the noise keep the noise with a relative error of
# about r^2 2^-53, times a little for every parent: 1 % at 5 million times, nothing at a hundred
# million. Dense systems of 50 nodes reach that at their last nodes, since values grow along the
# order.
MAX_NOISE_MULTIPLE = 5e6


class Diagnostics(NamedTuple):
    """How well the chains agree."""

    n_chains: int
    n_orders: int  # kept, of all chains
    worst_r_hat: float  # 1 is best
    worst_edge: tuple[int, int, int] | None  # regime, parent, child; None if all have converged
    effective_size: float  # the smallest of any edge
    acceptance: float  # fraction of moves that changed the order

    @property
    def converged(self) -> bool:
        enough = self.effective_size >= MIN_EFFECTIVE_ORDERS * self.n_chains
        return bool(self.worst_r_hat <= GOOD_R_HAT and enough)


def diagnose(edges: FloatArray, acceptance: float) -> Diagnostics:
    """Compare chains by `edges` (chains, orders, R, N, N), the probabilities given each order."""
    n_chains, n_orders = edges.shape[:2]
    flat = edges.reshape(n_chains, n_orders, -1)
    unsettled = np.flatnonzero(flat.std(axis=(0, 1)) > NOTICEABLE)
    if n_orders < 4 or not len(unsettled):
        nothing = 1.0 if n_orders >= 4 else np.nan
        total = n_chains * n_orders
        return Diagnostics(n_chains, total, nothing, None, float(total), acceptance)
    half = n_orders // 2
    halves = np.concatenate([flat[:, :half, unsettled], flat[:, -half:, unsettled]])
    r_hat, sizes = split_r_hat(halves), effective_sizes(halves)
    worst = int(np.argmax(r_hat))
    regime, parent, child = np.unravel_index(unsettled[worst], edges.shape[2:])
    return Diagnostics(
        n_chains,
        n_chains * n_orders,
        float(r_hat[worst]),
        (int(regime), int(parent), int(child)),
        float(sizes.min()),
        acceptance,
    )


def split_r_hat(chains: FloatArray) -> FloatArray:
    """R-hat of (chains, orders, ...), (...); chains must be split in halves before."""
    n = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    between = chains.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt((n - 1) / n + between / np.maximum(within, 1e-300))


def effective_sizes(chains: FloatArray) -> FloatArray:
    """Effective sample sizes of (chains, orders, edges), (edges,).

    Autocorrelations are summed in pairs up to the first negative pair (Geyer's rule).
    """
    m, n = chains.shape[:2]
    centred = chains - chains.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, 2 * n, axis=1)[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1)
    variance = within * (n - 1) / n + chains.mean(axis=1).var(axis=0, ddof=1)
    correlation = 1 - (within - covariance) / np.maximum(variance, 1e-300)
    correlation[0] = 1.0
    pairs = correlation[: n - n % 2].reshape(n // 2, 2, -1).sum(axis=1)
    positive = np.cumprod(pairs > 0, axis=0)
    time = -1 + 2 * (pairs * positive).sum(axis=0)
    return m * n / np.maximum(time, 1 / np.log10(max(m * n, 10)))


def warn_of_bad_chains(found: Diagnostics, nodes: tuple[str, ...], n_regimes: int = 2) -> None:
    """Warn if the chains do not agree, with the worst edge by the names of its nodes."""
    if found.converged:
        return
    worst = ""
    if found.worst_edge is not None:
        regime, parent, child = found.worst_edge
        name = regime_names(n_regimes)[regime]
        worst = f", worst for {nodes[parent]} -> {nodes[child]} ({name})"
    warnings.warn(
        f"the {found.n_chains} chains over orders do not agree yet: R-hat "
        f"{found.worst_r_hat:.2f} (good: at most {GOOD_R_HAT}){worst}; "
        f"{found.effective_size:.0f} effective orders (good: at least "
        f"{MIN_EFFECTIVE_ORDERS * found.n_chains}). Raise n_sweeps, or read probabilities as rough",
        ConvergenceWarning,
        stacklevel=4,
    )


def warn_of_lost_digits(gram: FloatArray, nodes: tuple[str, ...]) -> None:
    """Warn of values next to which the noise is lost; `gram` (R, N, N+1, N+1) in its units."""
    samples = np.maximum(gram[:, :, -1, -1], 1)
    own = np.einsum("rnii->rni", gram)[:, np.arange(len(nodes)), np.arange(len(nodes))]
    size = np.sqrt(own / samples).max(axis=0)
    lost = np.flatnonzero(size > MAX_NOISE_MULTIPLE)
    if len(lost):
        worst = int(np.argmax(size))
        warnings.warn(
            f"values of {len(lost)} nodes, most of all {nodes[worst]!r}, are up to "
            f"{size[worst]:.1g} times the noise: double precision keeps too little of the noise "
            "beneath them, so that their parents' weights and noise are rough",
            ScaleWarning,
            stacklevel=4,
        )
