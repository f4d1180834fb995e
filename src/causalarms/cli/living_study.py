"""A study that plays itself, so that the page has something to show: `causalarms serve --demo`."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np

from causalarms.cli.study_place import TOKEN
from causalarms.errors import ClosedTrialError, LearningWarning, StudyError
from causalarms.rng import stream
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.service.remote import RemoteStudy
from causalarms.study import Study

NODES = ("feed", "heat", "stirring", "pressure", "purity", "yield")
PLAYER = "the player"
QUICK = 40  # rounds that are played at once, so that there is something to see
PAUSE = 1.0  # seconds between later rounds
CHANGES_AFTER = 120  # rounds: then one mechanism is another one
CHANGED = 1  # the node


def create(path: Path) -> None:
    """Where there is none yet; the next time it goes on."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        Study.create(path, NODES, "yield", changes=True, seed=1).close()


def play(url: str) -> None:
    """For ever, in a thread that ends with the process."""
    token = os.environ.get(TOKEN)
    threading.Thread(target=_play, args=(url, token), name="player", daemon=True).start()


def system(number: int) -> LinearSEM:
    """The unknown system at a trial."""
    sem = random_sem(len(NODES), seed=11).replace(nodes=NODES, reward="yield")
    if number < CHANGES_AFTER:
        return sem
    mean = np.array(sem.noise_mean, dtype=float)
    mean[..., CHANGED] += 4.0
    return sem.replace(noise_mean=mean)


class Player(RemoteStudy):
    """Types nothing, so it needs no warnings about typing errors."""

    def _warn(self, message: str, kind: type[Warning] = LearningWarning) -> None:
        pass


def _play(url: str, token: str | None) -> None:
    wait = threading.Event()
    try:
        with Player(url, token, patience=2.0) as study:
            while True:
                trial = study.ask(worker=PLAYER)
                wait.wait(PAUSE if trial.number >= QUICK else 0.0)
                a = np.array([list(trial.intervention.values())], dtype=np.uint8)
                noise = stream(3, "noise", trial.number)
                with suppress(ClosedTrialError):  # somebody else told it on the page
                    study.tell(trial, system(trial.number).sample(a, noise)[0])
    except StudyError:  # the service has ended
        return
