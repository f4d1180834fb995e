"""Studies written by earlier versions stay readable for ever.

data/version-1.db was written by causalarms 0.1.0 (make_old_file below). Never write it anew: a
change that cannot read it is wrong.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from study_rounds import SETTINGS, play, result

from causalarms import Study
from causalarms.errors import LearningWarning

DATA = Path(__file__).parent / "data"


def make_old_file(path: Path) -> None:
    """How the file was made: every kind of event is in it."""
    study = Study.create(path, policy="csl-ucb-cd", intervenable=["heat", "stir"], **SETTINGS)
    play(study, 60)
    study.fail(study.ask(), "tube broke")
    study.abandon(study.ask())
    trial = study.ask()
    with pytest.warns(LearningWarning):
        study.tell(trial, [None, 1.0, 2.0])
    study.add_observations(
        {"heat": [0.5, 1.5], "stir": [1.0, 2.0], "yield": [0.0, 1.0], "do:heat": [0, 1]},
        source="last year",
    )
    study.correct(7, [1.0, 2.0, 3.0], "typing error")
    study.note("a remark", 7)
    study.change_settings(horizon=250)
    study._write("alarm acknowledged", {"alarm": 0, "note": "seen"})
    trial = study.ask()
    study.tell(trial, result(trial))
    study.ask(worker="b")
    study.close()


def test_version_1(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(DATA / "version-1.db", path)
    with Study.open(path) as study:
        verdict = study.verify(replay=True)
        assert verdict.ok, verdict.message
        assert (verdict.events, verdict.trials, verdict.told) == (135, 67, 62)
        assert verdict.head.startswith((DATA / "version-1.hash").read_text().strip())
        states = list(study.history()["state"])
        assert states[60:] == [
            "failed",
            "abandoned",
            "told",
            "imported",
            "imported",
            "told",
            "asked",
        ]
        assert study.ledger().trials[7].values == (1.0, 2.0, 3.0)
        assert study.settings.horizon == 250
        assert study.best().switch is not None
        play(study, 3)
        assert study.verify(replay=True).ok


EXPECTED = json.loads((DATA / "version-2.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_studies_without_factors_go_on_as_before(name: str, tmp_path: Path) -> None:
    """Of the format before factors: with nodes never switched, constraints and costs.

    What was asked next, and what was thought best, was written down with the program of then.
    """
    path = tmp_path / "old.db"
    if (DATA / f"version-2-{name}.db").exists():
        shutil.copy(DATA / f"version-2-{name}.db", path)
    else:
        Study.import_from(DATA / f"version-2-{name}.json", path).close()
    expected = EXPECTED[name]
    with Study.open(path) as study:
        assert study.verify(replay=True).ok
        best = study.best()
        assert (best.switch, best.probability) == (expected["best"], expected["probability"])
        for trial, (intervention, reason, predicted) in zip(
            study.ask(3), expected["asked"], strict=True
        ):
            assert list(trial.intervention.values()) == intervention
            assert trial.reason == reason
            assert trial.predicted == pytest.approx(predicted, rel=1e-9)
            study.tell(trial, result(trial))
        assert study.verify(replay=True).ok
        assert set(study.graph().nodes) == {"heat", "stir", "yield"}
