"""The benchmark of whole studies in plants still runs, and what it calls true is true."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causalarms import Study, random_sem
from causalarms.errors import StudyError
from causalarms.sem.rewards import all_interventions, index_of
from causalarms.study.records import Best

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from plants import (  # noqa: E402
    CLEAN,
    MEASURES,
    MESSY,
    PREDICTIONS,
    Case,
    Desk,
    Measure,
    create_study,
    late,
    main,
    statistic,
)
from process_plants import (  # noqa: E402
    N_SWITCHES,
    UNITS,
    Plant,
    clean_plant,
    in_units,
    messy_plant,
    regimes_of,
)
from shared import study_settings  # noqa: E402

TINY = ["--plants", "1", "--runs", "12"]
PLANTS = range(10)


def test_a_tiny_benchmark_measures_everything_and_is_not_run_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*TINY, "--json", "--results", str(tmp_path / "results.jsonl")]
    main(words)
    first = capsys.readouterr()
    assert first.err == ""  # progress is for terminals
    found = json.loads(first.out)["found"]
    for variant in (CLEAN, MESSY):
        assert list(found[variant]) == ["12"]
        measured = found[variant]["12"]
        assert list(measured) == [measure.name for measure in MEASURES]
        assert 0 < measured["regret"]["value"] < 2
        assert measured["refused"]["value"] == 0
        assert measured["problem"]["value"] == 0
    main(words)
    assert capsys.readouterr().out == first.out  # with the same seconds: nothing was run again
    main(words[:4] + words[5:])
    table = capsys.readouterr().out
    assert all(measure.text in table for measure in MEASURES)


def test_wrong_settings_are_refused_before_the_first_plant() -> None:
    with pytest.raises(SystemExit, match=r"^error: .*did you mean 'noise_scale'"):
        main([*TINY, "--policy", "posterior,noise_scal=2"])


def test_predictions_are_compared_with_the_truth() -> None:
    """A study that says the truth is always right, one that is far off never."""
    plant = clean_plant(0, 2)
    desk = Desk(plant, create_study(plant, {}))
    truth = plant.truth(0)
    for shift, share in ((0.0, 1.0), (10.0, 0.0)):
        desk.study = study = KnowsTruth(plant, shift)
        said = desk._predictions(truth)
        assert said["refused"] == pytest.approx(study.refused / PREDICTIONS)
        assert 0 < said["refused"] < 1
        assert said["reward_covered"] == said["nodes_covered"] == share


def test_regret_is_measured_against_the_system_of_each_run() -> None:
    plant = messy_plant(0, 3, changes_at=64)
    desk = Desk(plant, KnowsTruth(plant, 0.0))
    desk.played = {run: int(plant.truth(run).net.argmax()) for run in range(128)}
    assert desk._regret() == 0
    everything = np.random.default_rng(0).permutation(np.tile(np.arange(128), 2)).tolist()
    desk.played = dict(enumerate(everything))
    assert desk._regret() == pytest.approx(1, abs=0.2)  # random play
    desk.played = {run: int(plant.truth(0).net.argmin()) for run in range(64)}
    assert desk._regret() == pytest.approx(plant.truth(0).range / plant.truth(0).loss.mean())


@pytest.mark.parametrize(("shift", "covered"), [(0.0, True), (10.0, False)])
def test_what_best_says_is_compared_with_the_truth(shift: float, covered: bool) -> None:
    plant = messy_plant(0, 3, changes_at=64)
    truth = plant.truth(0)
    study = KnowsTruth(plant, shift)
    desk = Desk(plant, study)
    order = truth.net.argsort()
    for row, right in ((order[-1], True), (order[0], False)):
        study.row = int(row)
        said = desk._best(truth)
        assert said["best_close"] == said["best_is_best"] == right
        assert said["best_sure_and_wrong"] == (not right)
        assert said["best_loss"] == pytest.approx(0 if right else 1)
        assert said["best_loss_claimed"] == pytest.approx(0.5)
        assert said["best_covered"] == covered
        assert said["best_probability"] == 0.95


class KnowsTruth(Study):
    """Refuses to predict what switches the first switch; says the truth with a shift."""

    row = 0  # of what it calls best

    def __init__(self, plant: Plant, shift: float) -> None:
        self.plant, self.shift, self.refused = plant, shift, 0

    def best(self, *, context: Any = None) -> Best:
        truth, unit = self.plant.truth(0), UNITS[self.plant.reward].scale
        positions = all_interventions(N_SWITCHES)[self.row].tolist()
        names = [switch.name for switch in self.plant.switches]
        centre = float(truth.reward[self.row] + self.shift * unit)
        return Best(
            intervention={},
            switch=[],
            levels={name: ("off", "on")[at] for name, at in zip(names, positions, strict=True)},
            reward=centre,
            low=centre - unit,
            high=centre + unit,
            cost=0.0,
            probability=0.95,
            expected_loss=truth.range / 2,
            basis="the truth",
        )

    def predict(self, interventions: Any = None, *, context: Any = None) -> list[dict[str, Any]]:
        names = [switch.name for switch in self.plant.switches]
        if any(names[0] in on for on in interventions):
            self.refused += len(interventions) == 1
            raise StudyError("too few rounds")
        said = []
        for on in interventions:
            row = index_of([name in on for name in names])
            expected = {}
            for node, value in zip(self.plant.nodes, self.plant.truth(0).values[row], strict=True):
                unit = UNITS[node].scale
                centre = value + self.shift * unit
                expected[node] = {"mean": centre, "low": centre - unit, "high": centre + unit}
            said.append({"expected": expected})
        return said


def test_policies_of_the_command_line() -> None:
    assert study_settings(None, False, None) == {}
    assert study_settings(None, True, 300) == {"horizon": 300, "changes": True}
    assert study_settings("posterior,noise_scale=estimate,draws=30", True, None) == {
        "policy": "posterior",
        "changes": True,
        "policy_settings": {"noise_scale": "estimate", "draws": 30},
    }
    assert study_settings("csl-ucb", True, None) == {"policy": "csl-ucb", "changes": True}


def test_truth_in_units_is_the_standardised_one_scaled_and_moved() -> None:
    sem = random_sem(len(UNITS), seed=5)
    names = tuple(UNITS)
    arms = np.random.default_rng(0).integers(0, 2, (50, len(UNITS)), dtype=np.uint8)
    offset = np.array([unit.offset for unit in UNITS.values()])
    scale = np.array([unit.scale for unit in UNITS.values()])
    system = in_units(sem, names)
    np.testing.assert_allclose(
        (system.mean(arms) - offset) / scale, sem.mean(arms), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(
        system.covariance(arms[0]) / np.outer(scale, scale), sem.covariance(arms[0]), rtol=1e-9
    )
    assert np.log10(scale.max() / scale.min()) >= 8


def test_measurements_agree_with_the_truth() -> None:
    plant = clean_plant(0, 1)
    row = 77
    positions = all_interventions(N_SWITCHES)[row]
    measured = [list(plant.measure(run, positions).values()) for run in range(2000)]
    values = np.array(measured, dtype=float)
    error = values.std(axis=0) / np.sqrt(len(values))
    truth = plant.truth(0)
    assert (np.abs(values.mean(axis=0) - truth.values[row]) < 4 * error).all()
    assert truth.net[row] == truth.values[row, plant.nodes.index(plant.reward)]


@pytest.mark.parametrize("number", PLANTS)
def test_a_messy_plant_is_the_clean_one_with_more_to_it(number: int) -> None:
    clean, messy = clean_plant(0, number), messy_plant(0, number, changes_at=6)
    assert clean.systems[0] == messy.systems[0]
    assert [s.name for s in clean.switches] == [s.name for s in messy.switches]
    assert [len(s.acts_on) for s in messy.switches] == [2, 1, 1, 1, 1, 1, 1]
    assert not {clean.reward} & {node for s in messy.switches for node in s.acts_on}
    before, after = messy.truths
    assert messy.truth(5) is before
    assert messy.truth(6) is after
    old_best = int(before.net.argmax())
    assert not after.close[old_best]
    differ = (messy.systems[0].weights != messy.systems[1].weights).any(axis=1)
    ((regime, node),) = np.argwhere(differ)
    positions = all_interventions(N_SWITCHES)[[old_best]]
    assert regimes_of(positions, messy.switches, messy.nodes)[0, node] == regime
    costs = np.array([s.cost for s in messy.switches]) / np.ptp(clean.truth(0).reward)
    assert ((costs >= 0.02) & (costs <= 0.08)).all()
    np.testing.assert_allclose(
        before.reward[-1] - before.net[-1], sum(s.cost for s in messy.switches)
    )


@pytest.mark.filterwarnings("ignore::causalarms.errors.FarValueWarning")
def test_results_come_back_late_and_out_of_order_and_none_is_lost() -> None:
    case = Case(runs=30)
    plant = case.plant(MESSY, 0)
    desk = Desk(plant, create_study(plant, case.settings))
    assert list(late(desk, 30)) == list(range(1, 31))
    assert desk.study.policy.n_told == 30
    order = list(desk.played)
    assert sorted(order) == list(range(30))
    batches = [order[place : place + 4] for place in range(0, 30, 4)]
    assert batches != sorted(batches, key=min)
    assert any(batch != sorted(batch) for batch in batches)


def test_one_cell_in_a_hundred_is_missing() -> None:
    plant = messy_plant(0, 0, changes_at=150)
    nobody = np.zeros(N_SWITCHES, dtype=np.uint8)
    cells = [value for run in range(300) for value in plant.measure(run, nobody).values()]
    assert 0.005 < np.mean([value is None for value in cells]) < 0.015


def test_statistics_have_errors_and_leave_out_what_is_not_known() -> None:
    points: list[dict[str, Any]] = [{"x": 1.0}, {"x": None}, {"x": 3.0}]
    assert statistic(Measure("x", ""), points) == pytest.approx((2.0, 1.0, 2))
    agreed = statistic(Measure("x", ""), [{"x": True}] * 4)
    assert agreed == pytest.approx((1.0, np.sqrt(5 / 6 * 1 / 6 / 4), 4))
    assert statistic(Measure("x", ""), [{"x": None}]) == (None, None, 0)
    points += [{"x": 20.0}]
    assert statistic(Measure("x", "", over="max"), points) == (20.0, None, 3)
    assert statistic(Measure("x", "", over="median"), points) == (3.0, None, 3)
