"""Policies number their nodes; what a study says of a trial has their names."""

from __future__ import annotations

import re

import numpy as np
import pytest

from causalarms import Study, random_sem
from causalarms.errors import StudyError
from causalarms.policies.base import TEST, Reason


def test_a_test_is_explained_with_the_names_of_nodes() -> None:
    sem, rng = random_sem(4, seed=3), np.random.default_rng(0)
    nodes = ["heat", "flow", "acid", "yield"]
    study = Study.create(
        None, nodes=nodes, reward="yield", intervenable=nodes, policy="posterior",
        policy_settings={"decide": "knowledge-gradient"},
    )  # fmt: skip
    said = []
    for _ in range(12):
        trial = study.ask()
        said.append(str(study.explain(trial)))
        values = sem.sample(np.array([list(trial.intervention.values())]), rng)[0]
        study.tell(trial, dict(zip(nodes, values.tolist(), strict=True)))
    tests = [words for words in said if "tests '" in words]
    assert tests
    for words in tests:
        assert re.search(r"tests '(heat|flow|acid|yield)'", words)
        assert "'x" not in words


def test_a_test_names_the_factor_that_a_person_would_change() -> None:
    settings = Study.create(
        None, nodes=["rate", "purity", "yield"], reward="yield",
        factors={
            "catalyst": {"acts_on": ["rate", "purity"], "effect": "free"},
            "yield": {},
            "load": {"acts_on": ["yield"], "effect": "free"},
        },
    ).settings  # fmt: skip
    why = Reason(TEST, nodes=(0, 1, 2), saved=123456.0, rounds=7, cost=0.25)
    assert why.in_words(settings.named.moved_by) == (
        "tests 'catalyst' and 'yield' at other levels than the best so far: "
        "expected to save 123456 over the next 7 rounds, costs 0.25"
    )


def test_refused_settings_name_the_node() -> None:
    with pytest.raises(StudyError, match="but node 'load' can never be in regime 1"):
        Study.create(
            None, nodes=["heat", "load", "yield"], reward="yield", policy="csl-ucb",
            noise_mean=1.0, intervenable=["heat"], factors={"heat": {}, "load": {}, "yield": {}},
        )  # fmt: skip
