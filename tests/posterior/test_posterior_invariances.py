"""What must not matter: names, the order of rows, and how the moments came in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_systems import moments_of, posterior_of, rounds

from causalarms.errors import DataError, ModelError
from causalarms.posterior.exact import ExactPosterior, table_bytes
from causalarms.statistics.dataset import Moments


@given(st.permutations(range(6)), st.integers(0, 9), st.booleans())
@settings(max_examples=25)
def test_relabelling_nodes_relabels_probabilities(
    labels: list[int], seed: int, known_mean: bool
) -> None:
    sem, X, A = rounds(6, 25, seed)
    mean = sem.noise_mean + np.arange(6) if known_mean else None
    excluded = np.zeros((6, 6), dtype=bool)
    excluded[0, 3] = excluded[4, 1] = True
    plain = posterior_of(X, A, noise_mean=mean, allowed=~excluded)
    moved = posterior_of(
        X[:, labels],
        A[:, labels],
        noise_mean=None if mean is None else mean[labels],
        allowed=~excluded[np.ix_(labels, labels)],
    )
    np.testing.assert_allclose(
        moved.edge_probability,
        plain.edge_probability[:, labels][:, :, labels],
        rtol=1e-6,
        atol=1e-10,
    )
    assert moved.log_evidence == pytest.approx(plain.log_evidence, rel=1e-10)


@given(st.integers(0, 10**6))
@settings(max_examples=10)
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    _, X, A = rounds(5, 30, 1)
    rows = np.random.default_rng(seed).permutation(30)
    plain, moved = posterior_of(X, A), posterior_of(X[rows], A[rows])
    np.testing.assert_allclose(moved.edge_probability, plain.edge_probability, atol=1e-9)


def test_an_updated_posterior_equals_one_from_scratch_bit_for_bit() -> None:
    _, X, A = rounds(6, 40, 2)
    moments = Moments(6)
    posterior = ExactPosterior(6, moments)
    for t, (row, regimes) in enumerate(zip(X, A.astype(np.uint8), strict=True)):
        moments.add(row, regimes)
        assert posterior.update(moments) == 6
        if t == 20:
            moments.forget(1, 3)
            assert posterior.update(moments) == (0 if moments.counts[1, 3] else 1)
    assert posterior.update(moments) == 0
    scratch = ExactPosterior(6, moments)
    np.testing.assert_array_equal(posterior.tables.scores, scratch.tables.scores)
    np.testing.assert_array_equal(posterior.tables.within, scratch.tables.within)
    np.testing.assert_array_equal(posterior.edge_probability, scratch.edge_probability)
    assert posterior.log_evidence == scratch.log_evidence
    draws = [p.draw(np.random.default_rng(0), 10) for p in (posterior, scratch)]
    for a, b in zip(*draws, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_moments_given_are_copied() -> None:
    _, X, A = rounds(4, 20, 0)
    moments = moments_of(X, A)
    posterior = ExactPosterior(4, moments)
    before = posterior.draw(np.random.default_rng(0), 3).weights
    moments.gram *= 2
    np.testing.assert_array_equal(posterior.draw(np.random.default_rng(0), 3).weights, before)


def test_evidence_is_the_product_of_predictions() -> None:
    """It grows by the log predictive density of each row: never above a sum of densities."""
    sem, X, A = rounds(4, 30, 0)
    evidence = [
        posterior_of(X[:n], A[:n], noise_mean=sem.noise_mean).log_evidence for n in (0, 10, 30)
    ]
    assert evidence[0] == pytest.approx(0, abs=1e-9)
    assert evidence[2] < evidence[1] < 0


def test_memory_is_checked_before_any_is_taken() -> None:
    with pytest.raises(DataError, match=r"30 nodes needs [\d,]+ bytes, above the limit of"):
        ExactPosterior(30)
    with pytest.raises(DataError, match=f"10 nodes needs {table_bytes(10):,} bytes"):
        ExactPosterior(10, memory_limit=table_bytes(10) - 1)
    ExactPosterior(6, memory_limit=table_bytes(6))
    assert table_bytes(20) < 2**30


def test_contradicting_knowledge_is_refused() -> None:
    both = np.zeros((3, 3), dtype=bool)
    both[0, 1] = True
    with pytest.raises(ModelError, match="edge 0 -> 1 is required and excluded"):
        ExactPosterior(3, required=both, allowed=~both)
    both[1, 0] = True
    with pytest.raises(ModelError, match="no order of the nodes fits"):
        ExactPosterior(3, required=both)
