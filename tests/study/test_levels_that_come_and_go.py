"""A level that is retired, and one that is new, in a study that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causalarms import Study
from causalarms.errors import LearningWarning, StudyError
from causalarms.rng import stream
from causalarms.study.records import Trial

GAIN = {"X": 0.0, "Y": 1.0, "Z": 2.0, "W": 3.0}
EFFECTS = ("shift", "free")


def create(path: Path | None, effect: str) -> Study:
    """Two factors act on `b`: with a mechanism per level, regimes of `b` are renumbered."""
    factors = {
        "catalyst": {"levels": ["X", "Y", "Z"], "acts_on": ["b"], "effect": effect},
        "pump": {"acts_on": ["a", "b"], "effect": effect},
    }
    return Study.create(path, nodes=["a", "b", "y"], reward="y", factors=factors, seed=1)


def values(trial: Trial) -> list[float]:
    noise = 0.3 * stream(2, "noise", trial.number).normal(size=3)
    a = float(trial.levels["pump"] == "on") + noise[0]
    b = GAIN[str(trial.levels["catalyst"])] + 0.5 * a + noise[1]
    return [a, b, b + noise[2]]


def play(study: Study, trials: int) -> set[Any]:
    asked = set()
    for _ in range(trials):
        trial = study.ask()
        asked.add(trial.levels["catalyst"])
        study.tell(trial, values(trial))
    return asked


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_level_is_retired_and_another_comes(effect: str, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    study = create(path, effect)
    assert play(study, 20) == {"X", "Y", "Z"}
    assert study.best().levels["catalyst"] == "Z"
    before = study.history()
    pending = study.ask(worker="b")
    assert pending.levels["catalyst"] == "Z"
    with pytest.warns(LearningWarning, match=f"trial {pending.number} is pending"):
        study.change_settings(forbidden=[{"catalyst": "Z"}])
    study.abandon(pending)
    assert "Z" not in play(study, 6)
    assert study.best().levels["catalyst"] == "Y"
    known = study.predict([{"catalyst": "Z"}])[0]["expected"]["y"]
    assert known["low"] < 2.0 < known["high"]
    assert known["mean"] > 1.0  # what was learned stays
    open_trial = study.ask(worker="b")
    study.change_settings(new_levels={"catalyst": ["W"]})
    after = study.history()
    for column in ("do:catalyst", "do:pump"):
        assert list(after[column])[: len(before)] == list(before[column])
    assert study.ask(worker="b").levels == open_trial.levels
    study.tell(open_trial.number, values(open_trial), executed={"catalyst": "W"})
    asked = play(study, 12)
    assert "W" in asked
    assert "Z" not in asked
    assert study.best().levels["catalyst"] == "W"
    study.correct(0, [0.0, 0.0, 0.0], executed={"catalyst": "X", "pump": "on"})
    assert study.verify(replay=True).message == "intact"
    with Study.open(path, read_only=True) as again:
        assert again.best() == study.best()
        assert again.ledger().trials == study.ledger().trials
    study.change_settings(forbidden=[])
    assert study.settings.named.factors[0].levels == ("X", "Y", "Z", "W")


def test_a_new_number_among_others() -> None:
    study = Study.create(
        None, nodes=["x", "y"], reward="y", factors={"load": {"levels": [1, 4]}}, seed=1
    )
    rng = np.random.default_rng(0)
    for _ in range(20):
        trial = study.ask()
        study.tell(trial, [rng.normal(), 0.1 * rng.normal() - float(trial.levels["load"])])
    study.change_settings(new_levels={"load": [2.5]})
    expected = study.predict([{"load": level} for level in (1, 2.5, 4)])
    low, middle, high = (found["expected"]["y"]["mean"] for found in expected)
    assert low > middle > high


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"new_levels": {"catalyst": ["Z"]}}, "level 'Z' is there twice"),
        ({"new_levels": {"catalist": ["W"]}}, "did you mean 'catalyst'"),
        ({"new_levels": {"catalyst": "W"}}, "a list of levels"),
        ({"new_levels": ["W"]}, "new_levels must be {factor: levels}"),
        ({"factors": {"heat": {}}}, "new_levels={...} adds levels"),
        ({"forbidden": [{"catalyst": ["X", "Y", "Z"]}]}, "nothing satisfies"),
        # a slip: no rule names the level alone
        ({"forbidden": [{"catalyst": "Z", "pump": ["off", "on"]}]}, "never allow level 'Z'"),
    ],
)
def test_what_is_refused_leaves_the_study_as_it_was(change: dict[str, Any], message: str) -> None:
    study = create(None, "shift")
    seen = study.seen
    with pytest.raises(StudyError, match=message):
        study.change_settings(**change)
    assert study.seen == seen


def test_a_new_study_has_no_retired_level() -> None:
    with pytest.raises(StudyError, match="never allow level 'new'"):
        Study.create(
            None, nodes=["x", "y"], reward="y", factors={"c": {"levels": ["old", "new"]}},
            constraints={"forbidden": [{"c": "new"}]},
        )  # fmt: skip


def test_context_can_be_taken_back() -> None:
    study = Study.create(None, nodes=["x", "y"], reward="y", factors={"c": {}}, context=["x"])
    study.change_settings(context=[])
    assert study.settings.context == ()
