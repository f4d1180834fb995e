"""Units of work: what each policy is told, what a record holds, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from small_experiment import SMALL, text

from causalarms.errors import ModelError
from causalarms.policies.registry import POLICIES
from causalarms.simulation.experiment import Contestant, Experiment, run_unit


def experiment(*contestants: Contestant, **settings: Any) -> Experiment:
    given: dict[str, Any] = {"n_nodes": 4, "horizon": 120, "block": 20, "seed": 1}
    return Experiment(**(given | settings), contestants=contestants)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_makes_a_record_of_plain_json_values(name: str) -> None:
    settings = {"n_explore": 20} if "mab" in name or "commit" in name else {}
    settings |= {"cycles": 3, "n_observe": 20} if name == "ga-lcb" else {}
    contestant = Contestant(name, settings=settings)
    record = run_unit(experiment(contestant, changes=(60,), n_changed=1), contestant, 0)
    assert json.loads(json.dumps(record)) == record
    assert (record["policy"], record["repetition"]) == (name, 0)
    assert len(record["regret_curve"]) == 12
    assert len(record["optimal_curve"]) == 6
    assert record["regret_curve"][-1] == pytest.approx(record["regret"], abs=1e-6)
    assert record["optimal_share"] == pytest.approx(np.mean(record["optimal_curve"]))
    assert record["changes"][0]["after"] == 60
    assert [len(p) for p in record["played_after"]] == [len(record["changes"][0]["mechanisms"])]
    if name == "oracle":
        assert (record["regret"], record["optimal_share"]) == (0.0, 1.0)


def test_a_unit_depends_on_nothing_but_settings_repetition_and_policy() -> None:
    ucb = Contestant("ucb")
    alone = run_unit(experiment(ucb), ucb, 3)
    after_others = experiment(Contestant("random"), ucb)
    run_unit(after_others, after_others.contestants[0], 3)
    assert text([run_unit(after_others, ucb, 3)]) == text([alone])


def test_all_policies_of_a_repetition_meet_the_same_systems() -> None:
    given = experiment(Contestant("ucb"), changes=(60, 90))
    for one, other in zip(given.world(2).systems, given.world(2).systems, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
    assert not np.array_equal(given.world(2).systems[0].weights, given.world(3).systems[0].weights)


def test_policies_are_told_what_they_ask_for_and_no_more() -> None:
    given = experiment(Contestant("ucb"))
    world = given.world(0)
    linsem: Any = given.policy(Contestant("linsem-ts"), world)
    np.testing.assert_array_equal(linsem.adjacency, world.systems[0].adjacency)
    csl: Any = given.policy(Contestant("csl-ucb"), world)
    np.testing.assert_array_equal(csl.noise_mean[0], world.systems[0].noise_mean)
    assert csl.noise_std is None
    csl = given.policy(Contestant("csl-ucb", settings={"noise_std": "true"}), world)
    np.testing.assert_array_equal(csl.noise_std[1], world.systems[0].noise_std)
    ignorant = experiment(Contestant("ucb"), knows_noise_mean=False)
    csl = ignorant.policy(Contestant("csl-ucb"), world)
    assert csl.noise_mean is None


def test_alarms_and_changes_are_recorded_by_mechanism() -> None:
    cd = Contestant("csl-ucb-cd", settings={"detector": "paper", "zeta": 1e-6})
    given = experiment(cd, horizon=400, changes=(250,), n_changed=2, seed=4)
    records = [run_unit(given, cd, repetition) for repetition in range(4)]
    alarms = [alarm for record in records for alarm in record["alarms"]]
    assert alarms
    for round_, regime, node, change_point, statistic in alarms:
        assert 200 < round_ <= 400
        assert regime in (0, 1)
        assert node in range(4)
        assert 0 <= change_point < round_
        assert statistic >= -np.log(1e-6)


def test_settings_are_plain_and_tell_experiments_apart() -> None:
    settings = SMALL.settings()
    assert json.loads(json.dumps(settings)) == settings
    assert experiment(Contestant("ucb")).settings() == experiment(Contestant("ucb")).settings()
    different = [
        experiment(Contestant("ucb")),
        experiment(Contestant("ucb"), seed=2),
        experiment(Contestant("ucb"), changes=(50,)),
        experiment(Contestant("ucb", settings={"alpha": 2.0})),
        experiment(Contestant("ucb"), Contestant("random")),
    ]
    assert len({json.dumps(given.settings(), sort_keys=True) for given in different}) == 5


@pytest.mark.parametrize(
    ("contestants", "settings", "message"),
    [
        ((), {}, "needs at least one policy"),
        ((Contestant("ucb"), Contestant("ucb")), {}, "two policies are called 'ucb'"),
        ((Contestant("ucb", label="random"), Contestant("random")), {}, "are called 'random'"),
        ((Contestant("ucb"),), {"horizon": 19}, "19 rounds is shorter than a block of 20"),
        ((Contestant("ucb"),), {"changes": (50, 120)}, "after round 120 is not within"),
    ],
)
def test_an_experiment_that_makes_no_sense_is_refused(
    contestants: tuple[Contestant, ...], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        experiment(*contestants, **settings)


def test_the_same_policy_twice_under_two_labels_is_welcome() -> None:
    given = experiment(
        Contestant("ucb"), Contestant("ucb", label="ucb, last 5", settings={"window": 5})
    )
    names = [run_unit(given, c, 0)["policy"] for c in given.contestants]
    assert names == ["ucb", "ucb, last 5"]
