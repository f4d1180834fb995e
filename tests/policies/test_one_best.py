"""Whoever asks what is best and how sure that is gets one answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from causalarms import Study, make_policy, random_sem
from causalarms.errors import TooEarlyError
from causalarms.policies.posterior import PosteriorPolicy
from causalarms.policies.stopping import StopRule


@pytest.mark.parametrize("seed", range(6))
def test_the_policy_a_study_and_a_stop_rule_agree(seed: int, tmp_path: Path) -> None:
    sem = random_sem(5, seed=seed)
    policy = make_policy("posterior", n_nodes=5)
    assert isinstance(policy, PosteriorPolicy)
    noise = np.random.default_rng(seed)
    names = list(sem.nodes)
    with Study.create(
        tmp_path / "study.db", names, names[-1], seed=seed, factors={n: {} for n in names}
    ) as study:
        for _ in range(60):
            trial = study.ask()
            a = np.array([trial.intervention[n] for n in names], dtype=np.uint8)
            x = sem.sample(a[None], noise)[0]
            study.tell(trial, dict(zip(names, x.tolist(), strict=True)))
            policy.tell(a, x)
        best = study.best()
        stop = StopRule(probability=best.probability) if best.probability < 1 else None
        assert stop is None or study.should_stop(stop)
    advice = policy.recommend()
    seen = StopRule(probability=0.9).look(policy)
    assert seen is not None
    for found in (advice, seen):
        assert dict(zip(names, found.intervention.tolist(), strict=True)) == best.intervention
        assert found.probability == best.probability
        assert found.expected_loss == best.expected_loss
        assert found.reward.mean == best.reward


def test_before_units_are_known_nothing_is_recommended_and_nothing_stops() -> None:
    policy = make_policy("posterior", n_nodes=3)
    assert isinstance(policy, PosteriorPolicy)
    with pytest.raises(TooEarlyError, match="0 of the first 4 results are in"):
        policy.recommend()
    rule = StopRule(probability=0.5)
    assert rule.look(policy) is None
    assert not rule.met(None)
