"""Studies whose factors nobody has to explain, and context."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from causalarms import Study
from causalarms.errors import FarValueWarning, StudyError, TooEarlyError
from causalarms.models.draws import least_ratio, most_optimistic
from causalarms.policies import posterior
from causalarms.study.report import edges

FACTORS: dict[str, Any] = {"load": {"levels": [1, 2, 4]}, "kind": {"levels": ["x", "z"]}}
NODES = ["weather", "heat", "yield"]


def made(path: Path | None = None, **more: Any) -> Study:
    settings: dict[str, Any] = {"nodes": NODES, "reward": "yield", "factors": FACTORS, "seed": 1}
    return Study.create(path, **settings | more)


def measured(levels: dict[str, Any], rng: np.random.Generator) -> dict[str, float]:
    """Heat follows the load; the yield follows heat, kind and weather."""
    weather = 950 + 10 * rng.normal()
    heat = 300 + 20 * levels["load"] + 3 * rng.normal()
    kind = 4.0 if levels["kind"] == "z" else 0.0
    return {
        "weather": weather,
        "heat": heat,
        "yield": 0.1 * heat + kind + 0.2 * (weather - 950) + rng.normal(),
    }


def play(study: Study, rounds: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, measured(trial.levels, rng))


@pytest.fixture(scope="module")
def played() -> Study:
    study = made(context=["weather"])
    play(study, 30)
    return study


def test_it_learns_what_factors_act_on_and_what_is_best(played: Study) -> None:
    assert played.best().levels == {"load": 4, "kind": "z"}
    load, kind = played.effects()
    assert load["acts_on"]["heat"] > 0.95
    assert kind["acts_on"]["yield"] > 0.95
    assert kind["acts_on"]["heat"] < 0.5
    assert load["acts_on"]["weather"] == 0.0
    assert kind["reward"]["z"]["low"] < 4.0 < kind["reward"]["z"]["high"]
    assert load["reward"]["4"]["low"] < 6.0 < load["reward"]["4"]["high"]


def test_factors_are_roots_of_the_graph(played: Study) -> None:
    graph = played.graph()
    assert graph.nodes == (*NODES, "load", "kind")
    edges = {(e["parent"], e["child"]): e for e in graph.edges()}
    assert ("load", "heat") in edges
    assert ("kind", "yield") in edges
    # from its first level to its last
    assert edges["load", "heat"]["weight"] == pytest.approx(60, abs=10)


def test_trials_are_chosen_by_what_they_tell_unless_others_are_pending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = made()
    play(study, 5)
    rules = []
    for rule in (least_ratio, most_optimistic):

        def noted(*given: Any, rule: Any = rule) -> Any:
            rules.append(rule.__name__)
            return rule(*given)

        monkeypatch.setattr(posterior, rule.__name__, noted)
    study.ask(2)
    assert rules == ["least_ratio", "most_optimistic"]
    plain = made(policy_settings={"decide": "quantile"})
    play(plain, 5)
    plain.ask()
    assert set(rules[2:]) == {"most_optimistic"}


def test_a_trial_says_which_factors_it_tests() -> None:
    why = []
    for seed in range(3):
        study, rng = made(seed=seed), np.random.default_rng(seed)
        for number in range(14):
            trial = study.ask()
            why += [str(trial.why)] if number >= 4 else []
            values = {"weather": 0.0, "heat": rng.normal(), "yield": rng.normal()}  # no effect
            study.tell(trial, values)
    tested = [words for words in why if words.startswith("tests ")]
    assert tested
    assert all(
        re.match("tests .(load|kind).( and .kind.)? at (an)?other levels?", w) for w in tested
    )
    assert all("better with probability 0." in words for words in tested)
    assert any(words.startswith("nothing known is better on average") for words in why)


def test_levels_of_factors_that_shift_are_no_mechanisms_of_their_own() -> None:
    """Claims are tempered by rounds per mechanism, and all levels have the same one."""
    study, rng = made(), np.random.default_rng(0)
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, {"weather": rng.normal(), "heat": rng.normal(), "yield": rng.normal()})
    belief = study.policy.belief()
    assert belief is not None
    assert belief.rounds_per_mechanism(study.settings.constraints.regimes) == 12


def test_the_first_rounds_are_balanced() -> None:
    study = made()
    trials = study.ask(4)
    kinds = [trial.levels["kind"] for trial in trials]
    assert sorted(kinds) == ["x", "x", "z", "z"]
    assert {trial.levels["load"] for trial in trials[:3]} == {1, 2, 4}


def test_the_first_rounds_keep_constraints() -> None:
    study = made(constraints={"forbidden": [{"load": 4, "kind": "z"}]})
    for trial in study.ask(4):
        assert trial.levels != {"load": 4, "kind": "z"}


def test_it_is_the_same_in_other_units() -> None:
    plain, other = made(), made()
    rng = np.random.default_rng(3)
    for _ in range(12):
        one, two = plain.ask(), other.ask()
        assert one.levels == two.levels
        values = measured(one.levels, rng)
        plain.tell(one, values)
        moved = {node: 1e4 + 2.0**10 * x if node == "heat" else x for node, x in values.items()}
        other.tell(two, moved)


def test_units_follow_the_spread_of_what_is_measured() -> None:
    """The first rounds may be far from typical."""
    study, rng, heats = made(), np.random.default_rng(4), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FarValueWarning)
        for number in range(60):
            trial = study.ask()
            values = measured(trial.levels, rng)
            values["heat"] += (0.0 if number < 6 else 400.0) * rng.normal()
            heats.append(values["heat"])
            study.tell(trial, values)
    learner, spread = study._learner, float(np.std(heats))
    assert learner is not None
    system = cast(Any, learner.policy)._system
    mean = system.units.shift[1] + system.rounds.origin[1]
    assert system.units.scale[1] == pytest.approx(spread, rel=0.25)
    assert mean == pytest.approx(np.mean(heats), abs=0.25 * spread)


def test_replay_is_live(tmp_path: Path) -> None:
    study = made(tmp_path / "study.db")
    play(study, 8)
    study.close()
    with Study.open(tmp_path / "study.db") as again, made() as live:
        play(live, 8)
        assert again.ask().levels == live.ask().levels
        assert again.predict() == live.predict()


def test_missing_values_and_rubbish_are_no_problem() -> None:
    study = made()
    rng = np.random.default_rng(0)
    for number in range(14):
        trial = study.ask()
        values: dict[str, Any] = dict(measured(trial.levels, rng))
        if number == 9:
            values["heat"] = None
        if number == 11:
            values["heat"] = 1e9
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            study.tell(trial, values)
    found = study.best()
    assert np.isfinite(found.reward)
    assert study.explain(13)["text"]


def test_edges_are_ranked_by_what_they_do_to_the_reward(played: Study) -> None:
    """Over the range that was seen, which is wide for heat and for a factor all its levels."""
    found = edges(played.graph(), played.settings.named)
    assert [abs(e["reward_effect"]) for e in found] == sorted(
        (abs(e["reward_effect"]) for e in found), reverse=True
    )
    by = {(e["parent"], e["child"]): e["reward_effect"] for e in found}
    assert by["load", "heat"] == pytest.approx(6.0, rel=0.4)
    assert by["kind", "yield"] == pytest.approx(4.0, rel=0.4)
    heat = np.quantile([r.values[1] for r in played.ledger().trials if r.values], (0.025, 0.975))
    weight = next(e["weight"] for e in found if e["parent"] == "heat")
    assert by["heat", "yield"] == pytest.approx(weight * np.ptp(heat))
    of_setting = edges(played.graph({"load": 2}), played.settings.named)
    (half,) = [e["reward_effect"] for e in of_setting if e["parent"] == "load"]
    assert 0 < half < by["load", "heat"]


def test_an_edge_that_leads_nowhere_does_nothing_to_the_reward() -> None:
    study = Study.create(None, nodes=["a", "y", "z"], reward="y", seed=1, intervenable=["a"])
    rng = np.random.default_rng(0)
    for _ in range(30):
        trial = study.ask()
        y = rng.normal() + 3 * trial.intervention["a"]
        study.tell(trial, [3.0 * trial.intervention["a"], y, 2 * y + 0.1 * rng.normal()])
    by = {(e["parent"], e["child"]): e["reward_effect"]
          for e in edges(study.graph(), study.settings.named)}  # fmt: skip
    assert by["y", "z"] == 0.0


def test_context_of_the_day_moves_the_prediction(played: Study) -> None:
    usual, wet = (
        played.predict([{"load": 4}], context=context)[0]["expected"]
        for context in (None, {"weather": 980.0})
    )
    assert wet["weather"]["mean"] == pytest.approx(980)
    assert wet["yield"]["mean"] - usual["yield"]["mean"] == pytest.approx(6, abs=2)
    assert played.best(context={"weather": 980.0}).reward > played.best().reward + 3


def test_context_at_ask_is_kept_in_the_log() -> None:
    study = made(context=["weather"])
    play(study, 6)
    trial = study.ask(context={"weather": 955.0})
    asked = study.ledger().trials[trial.number].asked
    assert asked["context"] == {"weather": 955.0}


@pytest.fixture(scope="module")
def played_by_the_weather() -> Study:
    """Which kind is better depends on the weather, and that is known at every ask."""
    kind = {"levels": ["x", "z"], "acts_on": ["yield"], "effect": "free"}
    study = made(context=["weather"], factors={"kind": kind, "load": FACTORS["load"]})
    rng = np.random.default_rng(0)
    for _ in range(12):
        weather = 950 + 10 * rng.normal()
        trial = study.ask(context={"weather": weather})
        values = measured(trial.levels, rng)
        slope = -0.4 if trial.levels["kind"] == "z" else 0.2
        reward = 0.1 * values["heat"] + slope * (weather - 950) + rng.normal()
        study.tell(trial, values | {"weather": weather, "yield": reward})
    return study


def test_a_study_asked_with_context_is_not_damaged(played_by_the_weather: Study) -> None:
    verdict = played_by_the_weather.verify(replay=True)
    assert verdict.ok, verdict.message


def test_an_explanation_knows_the_context_of_the_ask(played_by_the_weather: Study) -> None:
    study, today = played_by_the_weather, {"weather": 955.0}
    trial = study.ask(context=today)
    told = study.explain(trial)
    settings = [trial.levels, told["runner_up"]["levels"]]
    asked, other = (found["expected"]["yield"] for found in study.predict(settings, context=today))
    assert told["expected"] == asked
    assert told["runner_up"]["mean"] == other["mean"]
    assert told["expected"]["mean"] == pytest.approx(trial.predicted, abs=0.5)


def test_a_trial_is_explained_if_its_context_is_none_any_more() -> None:
    study = made(context=["weather"])
    play(study, 6)
    trial = study.ask(context={"weather": 955.0})
    study.change_settings(context=[])
    assert "runner_up" in study.explain(trial)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"heat": 3.0}, "'heat' is not context of this study; context: weather"),
        ({"weather": "wet"}, "'weather' is 'wet', not a number"),
        ({"weather": float("nan")}, "'weather' is nan, which is not finite"),
        ([1.0], "context is a value per node"),
    ],
)
def test_wrong_values_of_the_context_are_refused(played: Study, given: Any, message: str) -> None:
    seen = played.seen
    for call in (played.ask, played.best, played.predict):
        with pytest.raises(StudyError, match=message):
            call(context=given)
    assert played.seen == seen


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"context": ["yield"]}, "the reward 'yield'"),
        ({"context": ["rain"]}, "rain"),
        ({"context": ["weather"], "policy": "random"}, "'random' cannot use context"),
        ({"context": ["heat"], "factors": {"heat": {}}}, "acts on 'heat'"),
        (
            {"context": ["weather"], "factors": {"load": {"acts_on": ["heat", "weather"]}}},
            "factor 'load' acts on 'weather'",
        ),
        (
            {"context": ["heat"], "factors": {"heat": {"acts_on": "unknown"}}},
            "factor 'heat' has the name of a node that is context",
        ),
        (
            {"context": ["heat"], "knowledge": {"required": [("weather", "heat")]}},
            "weather -> heat is required",
        ),
    ],
)
def test_wrong_context_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        made(**more)


def test_nothing_but_context_causes_context(played: Study) -> None:
    probability = played.graph().measures["probability"].max(axis=0)
    assert probability[1:, 0].max() == 0.0


def test_the_mean_of_the_context_given_a_part_of_it(played: Study) -> None:
    """Against the formula of two normal variables."""
    draws = played.beliefs().known.draws
    heat, other = 1, 0
    weights, intercept, noise = draws.weights[:, 0], draws.intercept[:, 0], draws.noise_std[:, 0]
    slope = weights[:, other, heat]
    variance = slope**2 * noise[:, other] ** 2 + noise[:, heat] ** 2
    pull = np.where(variance > 0, slope * noise[:, other] ** 2 / variance, 0.0)
    mean = intercept[:, heat] + slope * intercept[:, other]
    wanted = intercept[:, other] + pull * (400.0 - mean)
    found = draws.given_context([other, heat], {heat: 400.0})
    assert found.intercept[:, 0, heat] == pytest.approx(400.0)
    into_context = weights[:, heat, other] == 0  # else the other way round
    assert found.intercept[into_context, 0, other] == pytest.approx(wanted[into_context])


def test_it_says_when_it_is_too_early() -> None:
    study = made()
    with pytest.raises(TooEarlyError):
        study.effects()


def test_past_rounds_need_not_say_what_factors_act_on() -> None:
    study, rng = made(), np.random.default_rng(0)
    rows = [{"load": 1 + k % 2, "kind": "xz"[k // 2 % 2]} for k in range(20)]
    table: dict[str, list[Any]] = {f"do:{name}": [row[name] for row in rows] for name in FACTORS}
    values = [measured(row, rng) for row in rows]
    table |= {node: [value[node] for value in values] for node in NODES}
    assert study.import_rounds(table) == 20
    assert study.effects()[0]["acts_on"]["heat"] > 0.9


def test_a_factor_that_acts_on_more_than_was_told_is_found_out() -> None:
    told = {"load": {"levels": [1, 2, 4], "acts_on": ["weather"]}, "kind": FACTORS["kind"]}
    study = made(factors=told)
    play(study, 40)
    load = study.effects()[0]
    assert load["acts_on"]["weather"] == pytest.approx(1.0)  # as it was told
    assert load["acts_on"]["heat"] > 0.9
    remarks = [remark.text for remark in study.best().remarks]
    assert any("load also seems to act on heat" in text for text in remarks)


def test_told_factors_shift_and_switches_of_nodes_do_not() -> None:
    factors = {
        "load": {"levels": [1, 2, 4], "acts_on": ["heat"]},
        "heat": {},
        "weather": {"levels": [1, 2, 3]},
    }
    named = made(factors=factors).settings.named
    assert [factor.effect for factor in named.factors] == ["shift", "free", "shift"]
    free = made(factors=factors, noise_mean=0.0).settings.named
    assert {factor.effect for factor in free.factors} == {"free"}


def test_too_many_nodes_are_refused_by_name() -> None:
    nodes = [f"x{k}" for k in range(17)]
    with pytest.raises(StudyError, match="at most 16 nodes; here are 17"):
        Study.create(None, nodes=nodes, reward="x0", factors=FACTORS)


@pytest.mark.parametrize("complete", [0, 1, 3])
def test_gaps_in_the_first_rounds_do_no_harm(complete: int) -> None:
    study, rng = made(), np.random.default_rng(2)
    for number in range(30):
        trial = study.ask()
        values: dict[str, Any] = dict(measured(trial.levels, rng))
        if complete <= number < 6:
            values[NODES[number % 2]] = None
        study.tell(trial, values)
        if number >= 5:
            for told in study.predict():
                expected = told["expected"]["yield"]
                assert abs(expected["mean"] - 40) < 40, number
                assert expected["high"] - expected["low"] < 1e3, number
    assert study.best().levels["kind"] == "z"


@pytest.mark.filterwarnings("ignore::causalarms.errors.AlarmWarning")  # the world changes
def test_a_change_is_found_although_nobody_knows_what_factors_act_on() -> None:
    # nothing tells whether heat follows the yield or the yield heat: they change together
    factors = {"load": {"levels": ["low", "high"]}, "kind": {"levels": ["x", "z"]}}
    study = made(factors=factors, changes=True, seed=2)
    rng = np.random.default_rng(2)
    for number in range(80):
        trial = study.ask()
        levels = trial.levels
        if number >= 8:  # whatever is asked for: no level is new when the world changes
            levels = {"load": rng.choice(["low", "high"]), "kind": rng.choice(["x", "z"])}
        heat = 10 + 2 * (levels["load"] == "high") + 2.5 * (number >= 60) + 0.3 * rng.normal()
        kind = float(levels["kind"] == "z")
        values = {"weather": rng.normal(), "heat": heat, "yield": 3 * heat + kind + rng.normal()}
        study.tell(trial, values, executed=levels)
    assert "heat" in {alarm["node"] for alarm in study.alarms()}


@pytest.mark.parametrize("kind", ["and", "cross", "xor"])
def test_a_factor_acts_also_by_what_it_does_together_with_another(kind: str) -> None:
    rng = np.random.default_rng(5)
    a, b, c = rng.integers(0, 2, (3, 80))
    together = {"and": 6 * a * b, "cross": 3 * a * (2 * b - 1), "xor": 6 * (a == b)}[kind]
    t, noise = rng.normal(size=(2, 80))
    given = {name: {"levels": [f"{name}0", f"{name}1"]} for name in "ABC"}
    study = Study.create(None, ["t", "y"], "y", factors=given, seed=1)
    levels = {f"do:{n}": [f"{n}{x}" for x in v] for n, v in zip("ABC", (a, b, c), strict=True)}
    study.import_rounds({"t": 300 + t, "y": 50 + 2 * t + together + noise, **levels})
    found = {effect["factor"]: effect for effect in study.effects()}
    arrows = {e["parent"]: e for e in study.graph().edges() if e["child"] == "y"}
    for name in "AB":
        assert found[name]["acts_on"]["y"] > 0.95
        assert arrows[name]["probability"] == found[name]["acts_on"]["y"]
        # both with the other factors at their first level
        direct = found[name]["direct"][f"{name}1"]
        assert abs(arrows[name]["weight"] - direct["mean"]) < 0.2
    assert found["C"]["acts_on"]["y"] < 0.5
    assert max(effect["acts_on"]["t"] for effect in found.values()) < 0.5
    # in a setting, with the others as they are there
    there = study.graph({"A": "A1", "B": "B1"}).edges()
    (weight,) = [e["weight"] for e in there if (e["parent"], e["child"]) == ("A", "y")]
    assert abs(weight - (3 if kind == "cross" else 6)) < 1
