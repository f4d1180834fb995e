"""Edges of a study come with the probability that they exist."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from causalarms import Study, random_sem


def played(path: Path, scale: float = 1.0, n_rounds: int = 150) -> tuple[Study, np.ndarray]:
    sem = random_sem(5, seed=2)
    study = Study.create(path, nodes=list(sem.nodes), reward=sem.nodes[-1], seed=1, horizon=400)
    rng = np.random.default_rng(0)
    regimes = rng.integers(0, 2, (n_rounds, 5))
    values = scale * sem.sample(regimes, rng)
    frame = {f"do:{n}": regimes[:, i] for i, n in enumerate(sem.nodes)}
    pandas = pytest.importorskip("pandas")
    study.add_observations(
        pandas.DataFrame({n: values[:, i] for i, n in enumerate(sem.nodes)} | frame)
    )
    return study, sem.adjacency


def test_true_edges_are_likely_and_probabilities_are_probabilities(tmp_path: Path) -> None:
    study, truth = played(tmp_path / "s.db")
    probability = study.graph().measures["probability"]
    assert ((probability >= 0) & (probability <= 1)).all()
    assert probability[truth].min() > 0.9
    assert probability[~truth].mean() < 0.2


def test_units_do_not_matter(tmp_path: Path) -> None:
    metres, _ = played(tmp_path / "m.db")
    millimetres, _ = played(tmp_path / "mm.db", scale=1000.0)
    np.testing.assert_allclose(
        metres.graph().measures["probability"],
        millimetres.graph().measures["probability"],
        atol=1e-6,
    )


def test_unknown_mechanisms_have_none(tmp_path: Path) -> None:
    study, _ = played(tmp_path / "s.db", n_rounds=6)
    measures = study.graph().measures
    assert "probability" not in measures or np.isnan(measures["probability"]).all()
