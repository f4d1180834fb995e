"""What holds for every learner that has a name, whoever wrote it."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import pytest

from causalarms.graphs.registry import learner_names, make_learner
from causalarms.testing.parts import LEARNER_PROMISES, LearnerCase, learner_case

CASES: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in learner_names()} | {
    "csl joint": ("csl", {"joint": True}),
    "csl, stability": ("csl", {"n_bootstrap": 2, "random_state": 0}),
    "golem, unequal variances": ("golem", {"equal_variances": False, "steps": 2000}),
    "dagma, least squares": ("dagma", {"loss": "least-squares", "steps": 2000}),
    "posterior sampled": ("posterior", {"method": "sampled", "n_sweeps": 50}),
}


@cache
def case(label: str) -> LearnerCase:
    name, settings = CASES[label]
    return learner_case(partial(make_learner, name, **settings))


@pytest.mark.parametrize("promise", LEARNER_PROMISES)
@pytest.mark.parametrize("label", CASES)
def test_every_promise_is_kept(label: str, promise: str) -> None:
    LEARNER_PROMISES[promise](case(label))
