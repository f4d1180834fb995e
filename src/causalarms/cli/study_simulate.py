"""`study simulate-on`: a study against a known system, for teaching and testing."""

from __future__ import annotations

import warnings
from pathlib import Path

import click
import numpy as np

from causalarms.cli.options import SEED
from causalarms.cli.study_options import FILE, JSON, switched
from causalarms.cli.study_place import StudyPlace, open_study
from causalarms.cli.terminal import print_json, say
from causalarms.errors import FarValueWarning, StudyError
from causalarms.rng import stream
from causalarms.sem.linear_sem import LinearSEM


@click.command("simulate-on")
@FILE
@click.option("--sem", "system", type=click.Path(path_type=Path), required=True)
@click.option("--rounds", type=click.IntRange(min=1), default=200, show_default=True)
@click.option("--worker", default="main", show_default=True)
@click.option("--noise-seed", type=SEED, default=0, show_default=True)
@JSON
def simulate_on(
    file: StudyPlace, system: Path, rounds: int, worker: str, noise_seed: int, as_json: bool
) -> None:
    """Ask and tell so many ROUNDS, with the results of a known system (system.json)."""
    sem = LinearSEM.load(system)
    with open_study(file) as study, warnings.catch_warnings():
        warnings.simplefilter("ignore", FarValueWarning)  # nobody types here
        if sem.nodes != study.nodes:
            raise StudyError(
                f"the system has nodes {', '.join(sem.nodes)}, the study {', '.join(study.nodes)}"
            )
        for _ in range(rounds):
            trial = study.ask(worker=worker)
            a = np.array([list(trial.intervention.values())], dtype=np.uint8)
            study.tell(trial, sem.sample(a, stream(noise_seed, "noise", trial.number))[0])
        best, reward = study.best(), study.settings.reward
    found = np.array([list(best.intervention.values())], dtype=np.uint8)
    expected = float(sem.mean(found)[0, sem.nodes.index(reward)])
    if as_json:
        print_json({"rounds": rounds, "best": best.as_dict(), "true_reward_of_best": expected})
    else:
        say(
            f"{rounds} rounds; best: switch {switched(best.switch)}, predicted {best.reward:.3g}, "
            f"true {expected:.3g}"
        )
