"""Every setting of every policy is refused by name when the policy is made, or works.

`benchmarks/fuzz.py settings` tries many more values, each policy for 100 rounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from causalarms import CSL, DAGMA, GOLEM, GraphPosterior, Study, make_policy, random_sem
from causalarms.changes.registry import REGISTRY as DETECTORS
from causalarms.changes.registry import detector_names, make_detector
from causalarms.errors import DataError, ModelError, SettingError, StudyError
from causalarms.graphs.registry import learner_names, learner_settings, make_learner
from causalarms.policies.registry import accepted_settings, policy_factory, policy_names

SEM = random_sem(3, seed=1)
ODD: list[Any] = ["x", -1, 0, 2.5, math.nan, math.inf, 1e300, 10**400, True, None, [], [1], {}]
FITTED: dict[str, dict[str, Any]] = {
    "golem-mab": {"n_explore": 30},
    "golem-mab-cd": {"n_explore": 30},
    "dagma-mab": {"n_explore": 30},
    "explore-then-commit": {"n_explore": 30},
    "ga-lcb": {"n_observe": 20},
}


def build(name: str, **settings: Any) -> Any:
    accepted = accepted_settings(policy_factory(name))
    told: dict[str, Any] = {"horizon": 150, "noise_mean": SEM.noise_mean}
    told |= {"graph": SEM.adjacency} if "graph" in accepted else {}
    told |= {"systems": [SEM]} if "systems" in accepted else {}
    told |= FITTED.get(name, {}) | settings
    return make_policy(name, n_nodes=3, reward=2, **told)


@pytest.mark.parametrize("name", policy_names())
def test_an_odd_value_is_refused_by_name_or_makes_a_policy(name: str) -> None:
    for setting in accepted_settings(policy_factory(name)):
        refusals = []
        for value in ODD:
            try:
                policy = build(name, **{setting: value})
            except SettingError as error:
                refusals.append(str(error))
            else:
                assert policy.ask(np.random.default_rng(0)).shape == (3,)
        assert all(setting in message for message in refusals), refusals
        assert len(refusals) >= 5, setting


@pytest.mark.parametrize("name", policy_names())
@pytest.mark.parametrize("setting", ["n_nodes", "reward"])
def test_odd_sizes_are_refused_by_name(name: str, setting: str) -> None:
    accepted = accepted_settings(policy_factory(name))
    told: dict[str, Any] = {"horizon": 150, "noise_mean": 1.0} | FITTED.get(name, {})
    told |= {"graph": SEM.adjacency} if "graph" in accepted else {}
    told |= {"systems": [SEM]} if "systems" in accepted else {}
    for value in [
        "x",
        2.5,
        math.nan,
        1e300,
        10**400,
        True,
        None,
        [],
        3 if setting == "reward" else 0,
    ]:
        with pytest.raises(SettingError, match=setting):
            make_policy(name, **(told | {"n_nodes": 3, "reward": 2} | {setting: value}))


@pytest.mark.parametrize("name", detector_names())
def test_an_odd_value_is_refused_by_name_or_makes_a_detector(name: str) -> None:
    own = DETECTORS.settings_of(DETECTORS.factory(name))
    for setting in [*own, "n_nodes", "n_regimes"]:
        refusals = []
        for value in [v for v in ODD if v != 10**400] + [10**30]:
            try:
                assert make_detector(name, **({"n_nodes": 3} | {setting: value})).n_regimes > 0
            except SettingError as error:
                refusals.append(str(error))
        assert all(setting in message for message in refusals), refusals
        assert len(refusals) >= 5, setting


NOT_CHECKED = {"n_jobs", "random_state"}  # joblib's and NumPy's own
LIKE_ARRAYS: list[Any] = [np.ones((3, 3)), [1, 2, 3], [[1, 2]], (0,), b"x", "x0", 0.5]


@pytest.mark.filterwarnings("ignore::causalarms.errors.CausalArmsWarning")
@pytest.mark.parametrize("name", learner_names())
def test_an_odd_value_is_refused_by_name_or_learned_with(name: str) -> None:
    A = np.repeat(np.arange(40) % 2, 3).reshape(-1, 3)
    X = SEM.sample(A, np.random.default_rng(0))
    for setting in learner_settings(name):
        refusals = []
        for value in [] if setting in NOT_CHECKED else [*ODD, *LIKE_ARRAYS]:
            try:
                make_learner(name, **{setting: value}).fit(X, interventions=A)
            except SettingError as error:
                refusals.append(str(error))
        assert all(setting in message for message in refusals), refusals
        assert setting in NOT_CHECKED or len(refusals) >= 5, setting


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"required": 3}, r"required must be pairs \(parent, child\), not 3"),
        ({"excluded": "x0"}, r"excluded must be pairs \(parent, child\), not 'x0'"),
        ({"excluded": ["x0"]}, r"excluded: an edge is a pair \(parent, child\), not 'x0'"),
        ({"required": [("x0",)]}, r"required: an edge is a pair \(parent, child\)"),
        ({"required": [(0, None)]}, "required: a node is a name or a position, not None"),
        ({"required": [(0, 1.5)]}, "required: a node is a name or a position, not 1.5"),
        ({"required": [(0, True)]}, "required: a node is a name or a position, not True"),
        ({"required": [(0, 9)]}, "required: there is no node 9"),
        ({"excluded": [("x0", "y")]}, "excluded: there is no node 'y'"),
        ({"excluded": np.zeros((2, 2), int)}, "excluded: node 'x0' cannot be its own parent"),
        ({"tiers": ["x0", "x1"]}, "tiers must be lists of nodes, not 'x0'"),
        ({"tiers": [0, 1]}, "tiers must be lists of nodes, not 0"),
        ({"tiers": [["x9"]]}, "tiers: there is no node 'x9'"),
    ],
)
@pytest.mark.parametrize("learner", [CSL, GraphPosterior])
def test_knowledge_that_makes_no_sense_names_its_setting(
    learner: Any, settings: dict[str, Any], message: str
) -> None:
    A = np.repeat(np.arange(40) % 2, 3).reshape(-1, 3)
    X = SEM.sample(A, np.random.default_rng(0))
    with pytest.raises(SettingError, match=message):
        learner(**settings).fit(X, interventions=A)


@pytest.mark.parametrize("edges", [np.array([[0, 1]]), iter([("x0", 1)]), [np.array([0, 1])]])
def test_edges_are_anything_that_can_be_gone_through(edges: Any) -> None:
    A = np.repeat(np.arange(60) % 2, 3).reshape(-1, 3)
    X = SEM.sample(A, np.random.default_rng(0))
    assert CSL(required=edges).fit(X, interventions=A).adjacency_[:, 0, 1].all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 40}, r"at least 41 are needed \(k=40 neighbours\)"),
        ({"max_samples": 3}, r"\(k=5 neighbours, and max_samples=3 keeps no more\)"),
    ],
)
def test_too_few_samples_by_setting_say_so(settings: dict[str, Any], message: str) -> None:
    A = np.repeat(np.arange(60) % 2, 3).reshape(-1, 3)
    with pytest.raises(DataError, match=message):
        CSL(**settings).fit(SEM.sample(A, np.random.default_rng(0)), interventions=A)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("csl-ucb", {"horizon": 40}, "a horizon of 40 rounds"),
        ("csl-ucb", {"max_samples": 19}, "max_samples is 19"),
        ("csl-ucb", {"required": np.ones((3, 3)) - np.eye(3) > 0}, "required edges"),
        ("posterior", {"decide": "knowledge-gradient", "method": "sampled"}, "decide='quantile'"),
        ("posterior", {"memory_limit": 5}, "memory_limit"),
        ("ga-lcb", {"noise_mean": None}, "noise_mean"),
        ("ga-lcb", {"horizon": 40}, "horizon"),
        ("golem-mab", {"n_explore": 4}, "n_explore"),
        ("golem-mab", {"horizon": 60}, "horizon of 60"),
        ("linsem-ts", {"noise_mean": None}, "noise_mean"),
        ("linsem-ts", {"regimes": 3}, "as many as regimes and nodes"),
        ("linsem-ucb", {"noise_mean": None}, "linsem-ucb must be told the noise means"),
        ("linsem-ucb", {"beta": "theory", "horizon": None}, "beta='theory' must be told the hor"),
        ("robust-linsem", {"horizon": None}, r"\(deviations\), or a horizon"),
        ("additive", {"epsilon": 5.0, "bound": 4.0}, "epsilon=5 is above the bound=4"),
        ("linsem-ts", {"restarts": [(3, 2)]}, "restarts: graph must have shape"),
        ("oracle", {"change_points": [4]}, "1 systems do not fit 1 change_points"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_as_settings(
    name: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        build(name, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"refresh": "x"}, "refresh must be an integer of at least 1, not 'x'"),
        ({"refresh_weights": 0}, "refresh_weights must be an integer of at least 1, not 0"),
        ({"k": -1}, "k must be an integer from 1 to 19"),
        ({"k": 0}, "k must be"),
        ({"k": 20}, "k must be an integer from 1 to 19"),
        ({"k": 1_000_000}, "k must be"),
        ({"k": 2.5}, "k must be"),
        ({"k": True}, "k must be"),
        ({"k": 25, "min_samples": 25}, "k must be an integer from 1 to 24"),
        ({"delta": 0}, "delta must lie between 0 and 1, not 0"),
        ({"delta": 1e-320}, "delta must lie between 0 and 1, not 1e-320"),
        ({"delta": 1.0}, "delta must lie between 0 and 1, not 1.0"),
        ({"alpha": "x"}, "alpha must be a number of at least 0, not 'x'"),
        ({"alpha": -0.1}, "alpha must be a number of at least 0"),
        ({"detector": 1}, "detector must be a Detector or the name of one, not 1"),
        ({"noise_std": -1}, "noise_std must be finite and above 0"),
        ({"noise_std": 0}, "noise_std must be finite and above 0"),
        ({"joint": 1}, "joint must be True or False, not 1"),
        ({"hold": "no"}, "hold must be True or False"),
        ({"bound": 3}, "bound must be one of theorem, parents, valid, not 3"),
        ({"max_samples": 2.0}, "max_samples must be an integer"),
        ({"min_samples": "20"}, "min_samples must be an integer"),
    ],
)
def test_settings_of_csl_ucb_are_refused_when_a_study_is_made(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        make_policy("csl-ucb", n_nodes=3, horizon=500, **settings)
    with pytest.raises(StudyError, match=message):
        Study.create(None, ["a", "b", "c"], "c", policy="csl-ucb", policy_settings=settings)


def test_the_largest_k_that_is_accepted_learns_a_graph_in_time() -> None:
    rng = np.random.default_rng(0)
    policy = make_policy("csl-ucb", n_nodes=3, horizon=500, k=19, noise_mean=SEM.noise_mean)
    for _ in range(80):
        a = policy.ask(rng)
        policy.tell(a, SEM.sample(a[None], rng)[0])
    assert policy.adjacency is not None


@pytest.mark.parametrize("given", [[1], 1, "max_interventions", {1: 2, "x": 3}])
def test_constraints_that_are_no_mapping_of_names_are_refused(given: Any) -> None:
    with pytest.raises(StudyError, match="constraint"):
        Study.create(None, ["a", "b"], "b", constraints=given)


@pytest.mark.parametrize(
    ("learner", "settings", "message"),
    [
        (CSL, {"joint": "yes"}, "joint must be True or False, not 'yes'"),
        (CSL, {"k": True}, "k must be an integer"),
        (CSL, {"max_samples": 2.5}, "max_samples must be an integer"),
        (CSL, {"n_jobs": 0}, "n_jobs must not be 0"),
        (GOLEM, {"steps": 10**9}, "steps must be an integer from 1 to 1000000"),
        (GOLEM, {"learning_rate": 2.0}, "learning_rate must be a number above 0 and at most 0.1"),
        (GOLEM, {"l1": "x"}, "l1 must be a number of at least 0, not 'x'"),
        (GOLEM, {"equal_variances": 1}, "equal_variances must be True or False"),
        (DAGMA, {"loss": "other"}, "loss must be one of likelihood, least-squares"),
        (DAGMA, {"threshold": -1.0}, "threshold must be a number of at least 0"),
        (GraphPosterior, {"miss_probability_per_edge": "x"}, "miss_probability_per_edge must be"),
        (GraphPosterior, {"n_sweeps": 0}, "n_sweeps must be an integer"),
        (GraphPosterior, {"memory_limit": "1"}, "memory_limit must be an integer"),
        (GraphPosterior, {"noise_scale": None}, "noise_scale must be a number or of shape"),
    ],
)
def test_learners_check_their_settings_when_they_fit(
    learner: Any, settings: dict[str, Any], message: str
) -> None:
    rng = np.random.default_rng(0)
    A = np.repeat(np.arange(40) % 2, 3).reshape(-1, 3)
    model = learner(**settings)
    with pytest.raises(ModelError, match=message):
        model.fit(SEM.sample(A, rng), interventions=A)


def test_a_known_noise_that_is_almost_nothing_leaves_an_answer() -> None:
    """Scores that differ by 10^200 nats are beyond any sum of exponentials."""
    rng = np.random.default_rng(0)
    policy = make_policy("posterior", n_nodes=3, noise_mean=SEM.noise_mean, noise_std=1e-99)
    for _ in range(30):
        a = policy.ask(rng)
        policy.tell(a, SEM.sample(a[None], rng)[0])
    assert np.isfinite(policy.suggest(rng).mean)
