"""A typing error is kept, pointed out with the command that corrects it, and healed by it."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from study_rounds import NODES, SETTINGS, play, result, state_of

from causalarms import Study
from causalarms.cli.main import study as command
from causalarms.errors import CausalArmsWarning, FarValueWarning
from causalarms.service.report import page
from causalarms.study.far_values import MIN_NEIGHBOURS, MIN_OTHERS, WINDOW, far_from, far_values
from causalarms.study.ledger import Record

OTHERS = np.random.default_rng(0).normal(10.0, 1.0, 40)


@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (1e-6, 0), (1e6, 0), (1, -1e4), (-3, 7)])
def test_neither_units_nor_offsets_matter(scale: float, shift: float) -> None:
    def far(value: float) -> bool:
        return far_from(scale * value + shift, scale * OTHERS + shift) is not None

    assert [far(v) for v in (10.0, 14.0, 6.0, 100.0, 1000.0, -10.0)] == [
        False, False, False, True, True, True,
    ]  # fmt: skip


def test_the_range_is_that_of_the_others() -> None:
    assert far_from(1000.0, OTHERS) == (OTHERS.min(), OTHERS.max())


def test_a_few_values_say_nothing() -> None:
    assert far_from(1000.0, OTHERS[: MIN_OTHERS - 1]) is None
    assert far_from(1000.0, OTHERS[:MIN_OTHERS]) is not None


@pytest.mark.parametrize("n_far", [1, 2, 4])
def test_far_values_seen_before_do_not_widen_the_range(n_far: int) -> None:
    far = 1000.0 * 10.0 ** np.arange(n_far)
    seen = far_from(300.0, np.concatenate([OTHERS, far]))
    assert seen == (OTHERS.min(), OTHERS.max())
    assert far_from(14.0, np.concatenate([OTHERS, far])) is None


def test_values_that_have_company_are_ordinary() -> None:
    """The system has changed, or an intervention is played that was not played before."""
    for n in range(6):
        others = np.concatenate([OTHERS, 100.0 + OTHERS[:n]])
        assert (far_from(110.0, others) is None) == (n >= MIN_NEIGHBOURS)


@pytest.mark.parametrize(
    ("others", "ordinary", "far"),
    [
        ([20.0] * 30, [20.0, 20.0001, 21.0, 50.0, 0.0, -20.0], [200.0, 2000.0]),
        ([0.0] * 30, [1e-9, 1.0, 1e9], []),
        ([20.0, 20.0 + 1e-14] * 15, [21.0, 50.0], [2000.0]),
        ([0.0] * 60 + [1.0, 2.0, 3.0, 1.0, 5.0], [4.0, 9.0], [1000.0]),
        ([20.0] * 30 + [1000.0], [21.0], [5000.0]),
    ],
    ids=["constant", "zero", "rounding", "mostly zero", "constant but for one"],
)
def test_where_most_values_are_equal(
    others: list[float], ordinary: list[float], far: list[float]
) -> None:
    assert [v for v in ordinary if far_from(v, others)] == []
    assert [v for v in far if not far_from(v, others)] == []


def told_wrong(study: Study, value: float = 1000.0) -> tuple[int, list[float]]:
    """Tell the next trial with a wrong yield; its number and what is right."""
    trial = study.ask()
    right = result(trial)
    with pytest.warns(FarValueWarning):
        study.tell(trial, [*right[:-1], value])
    return trial.number, right


def test_the_warning_names_everything_and_the_value_is_kept() -> None:
    study = Study.create(None, **SETTINGS)
    play(study, 12)
    trial = study.ask()
    with pytest.warns(FarValueWarning) as caught:
        study.tell(trial, [*result(trial)[:-1], 1000.0])
    (message,) = [str(w.message) for w in caught]
    rewards = [r.values[2] or 0.0 for r in study.ledger().trials[:12] if r.values]
    assert f"trial 12: 'yield' is 1000, far outside the {min(rewards):g} to {max(rewards):g}" in (
        message
    )
    assert "study.correct(12, {'yield': ...})" in message
    assert "causalarms study correct FILE 12 yield=VALUE" in message
    assert caught[0].filename == __file__
    assert study.ledger().trials[12].values == (*result(trial)[:-1], 1000.0)
    (far,) = study.far_values()
    assert (far.trial, far.node, far.value) == (12, "yield", 1000.0)


@pytest.mark.parametrize("before", [4, 5, 9, 15])
def test_what_the_policy_leaves_out_is_said_when_it_is_told(before: int) -> None:
    study = Study.create(None, ["t", "y"], "y", factors={"oven": {"levels": [1, 2]}}, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(before):
        study.tell(study.ask(), (70.0 + rng.normal(size=2)).tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FarValueWarning)
        said = study.tell(study.ask(), [70.0, 70000.0])
    assert len(said) == len(study.left_out()) == (before > 4)


def test_ordinary_rounds_are_told_without_a_warning() -> None:
    study = Study.create(None, **SETTINGS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(study, 60)
        study.correct(5, result(study.ask()))
    assert study.far_values() == []


@pytest.mark.usefixtures("warnings_as_errors")
def test_the_value_is_kept_where_warnings_are_errors() -> None:
    study = Study.create(None, **SETTINGS)
    play(study, 12)
    trial = study.ask()
    (said,) = study.tell(trial, [0.0, 0.0, 1e6])  # does not fail after it was written
    assert "far outside" in said
    assert study.ledger().trials[12].values == (0.0, 0.0, 1e6)


def test_corrections_and_past_rounds_are_looked_at_too() -> None:
    study = Study.create(None, **SETTINGS)
    play(study, 20)
    with pytest.warns(FarValueWarning, match="trial 3: 'heat' is -5000"):
        study.correct(3, [-5000.0, 0.0, 1.0])
    study.correct(3, None)
    assert study.far_values() == []
    frame = {node: OTHERS.tolist() for node in NODES}
    frame["stir"][2] = 1e5  # before ten others have come
    with pytest.warns(FarValueWarning, match="trial 22: 'stir' is 100000") as caught:
        study.import_rounds(frame)
    assert sum("trial 22" in str(w.message) for w in caught) == 1


def test_many_far_values_are_not_all_listed_at_once() -> None:
    study = Study.create(None, **SETTINGS)
    frame = {node: OTHERS.tolist() for node in NODES}
    for row in (3, 11, 30):
        for node in NODES:
            frame[node] = [*frame[node][:row], 10.0 ** (5 + row / 10), *frame[node][row + 1 :]]
    with pytest.warns(FarValueWarning) as caught:
        study.import_rounds(frame)
    assert len(caught) == 6
    assert "and 4 values more" in str(caught[-1].message)
    assert len(study.far_values()) == 9


def test_a_setting_that_was_played_once_is_not_a_typing_error() -> None:
    """Most results are of one setting: the others are as far away as they should be."""
    factors = {"oven": {"levels": [430, 450, 470, 490]}, "speed": {"levels": [1, 2, 3]}}
    study = Study.create(None, ["heat", "yield"], "yield", factors=factors, seed=1)
    rng = np.random.default_rng(1)
    levels = [(oven, speed) for speed in (1, 2, 3) for oven in (470, 430, 450)]
    ovens, speeds = np.array([*levels, *[(490, 3)] * 90]).T
    heat = 0.3 * ovens + 0.3 * rng.normal(size=len(ovens))
    heat[[1, 4]] = heat[[0, 3]]  # one result of 430 is left
    heat[20] = 14.7  # one in ten of what it was
    frame = {"heat": heat.tolist(), "yield": rng.normal(size=len(ovens)).tolist()}
    given = {"do:oven": ovens.tolist(), "do:speed": speeds.tolist()}
    with pytest.warns(FarValueWarning):
        study.import_rounds(frame | given)
    (far,) = study.far_values()
    assert (far.trial, far.node) == (20, "heat")
    assert far.low < 130.0  # of the others, in all settings


class Counted(list[Record]):
    looked_at = 0

    def __getitem__(self, key: Any) -> Any:
        self.looked_at += 1
        return super().__getitem__(key)


def test_the_cost_of_a_round_does_not_grow() -> None:
    study = Study.create(None, **SETTINGS)
    rng = np.random.default_rng(1)
    study.import_rounds({node: rng.normal(10.0, 1.0, 1000).tolist() for node in NODES})
    ledger = study.ledger()
    ledger.trials = trials = Counted(ledger.trials)
    assert far_values(ledger, [999]) == []
    assert trials.looked_at == 2 * WINDOW + 1


def test_all_at_once_are_those_found_one_by_one() -> None:
    rng = np.random.default_rng(2)
    rows = rng.standard_cauchy((400, 3)) * [1.0, 1e3, 0.0]
    rows[rng.random((400, 3)) < 0.05] = np.nan
    rows[[50, 250], 2] = 3.0
    study = Study.create(None, **SETTINGS)
    with pytest.warns(CausalArmsWarning):
        study.import_rounds({node: rows[:, i].tolist() for i, node in enumerate(NODES)})
    study.correct(7, None)
    expected = []
    for t, i in np.ndindex(400, 3):
        start = max(t - WINDOW, 0)
        near = np.r_[0 : min(WINDOW, start), start:t, t + 1 : min(t + 1 + WINDOW, 400)]
        others = rows[near[near != 7], i]
        if (
            t != 7
            and not np.isnan(rows[t, i])
            and far_from(float(rows[t, i]), others[~np.isnan(others)])
        ):
            expected.append((t, NODES[i]))
    assert [(far.trial, far.node) for far in study.far_values()] == expected
    assert len(expected) > 5
    ledger = study.ledger()
    assert [far for t in range(400) for far in far_values(ledger, [t])] == study.far_values()


@pytest.mark.parametrize("policy", ["csl-ucb", "csl-ucb-cd", "ucb", "ga-lcb", "posterior"])
def test_correcting_heals_fully(policy: str) -> None:
    """As if the right value had been told at once; also rounds later."""
    settings = SETTINGS | {"policy": policy, "noise_mean": 1.0}
    study = Study.create(None, **settings)
    play(study, 30)
    number, right = told_wrong(study)
    play(study, 40)
    study.correct(number, right)
    twin = Study.create(None, **settings)
    records = study.ledger().trials
    twin.import_rounds(
        {node: [r.values[i] for r in records if r.values] for i, node in enumerate(NODES)},
        {node: [r.intervention[i] for r in records] for i, node in enumerate(NODES)},
    )
    assert state_of(study) == state_of(twin)
    for _ in range(5):
        ours, theirs = study.ask(), twin.ask()
        assert (ours.intervention, ours.predicted) == (theirs.intervention, theirs.predicted)
        study.tell(ours, result(ours))
        twin.tell(theirs, result(theirs))
    assert study.far_values() == []


def far_in(report: str) -> list[tuple[int, str, float]]:
    held = json.loads(report.partition('id="frozen">')[2].partition("</script>")[0])
    return [(far["trial"], far["node"], far["value"]) for far in held["study"]["far_values"]]


def test_history_show_and_report_list_it_until_it_is_corrected(tmp_path: Path) -> None:
    path, run = tmp_path / "s.db", CliRunner()
    with Study.create(path, **SETTINGS) as study:
        play(study, 20)
        assert far_in(page(study, "s")) == []
        trial = study.ask()
    right = dict(zip(NODES, result(trial), strict=True))
    wrong = [f"{node}={value}" for node, value in (right | {"yield": 1000.0}).items()]
    told = run.invoke(command, ["tell", str(path), "20", *wrong])
    assert told.exit_code == 0
    assert "warning: trial 20: 'yield' is 1000, far outside" in told.stderr
    with Study.open(path) as study:
        assert [n for n, far in enumerate(study.history()["far"]) if far] == [20]
        assert study.history()["far"][20] == "yield"
        report = page(study, "s")
    assert far_in(report) == [(20, "yield", 1000.0)]
    shown = run.invoke(command, ["show", str(path)]).stdout
    assert "far     yield = 1000 in trial 20, others" in shown
    facts = json.loads(run.invoke(command, ["show", str(path), "--json"]).stdout)
    assert facts["far_values"][0]["trial"] == 20
    again = run.invoke(command, ["correct", str(path), "20", *wrong, "--json"])
    assert "'yield' is 1000" in json.loads(again.stdout)["warnings"][0]
    correct = [f"{node}={value}" for node, value in right.items()]
    assert json.loads(
        run.invoke(command, ["correct", str(path), "20", *correct, "--json"]).stdout
    ) == {"trial": 20, "state": "corrected", "warnings": []}
    assert "far " not in run.invoke(command, ["show", str(path)]).stdout
