"""Trials are chosen without holding up those who tell, and written in slices.

Choosing takes most of the time of an ask, and a suggestion must be what the log before it gives. So
a slice of trials is chosen from the log as it is now. It is written if nobody else wrote meanwhile,
and otherwise chosen again, each time a smaller one. Where others write all the time, one trial is
chosen while they wait; then it is their turn.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from causalarms.errors import StudyError
from causalarms.limits import MAX_PENDING_TRIALS
from causalarms.study.endings import as_text
from causalarms.study.learner import Learner
from causalarms.study.trials import Ledger, Record

SLICE_SECONDS = 0.2  # of learning or choosing before others get their turn
MAX_UNLOCKED_ATTEMPTS = 3  # in which others wrote meanwhile
MAX_ROUNDS_LOCKED = 5  # to learn from while others wait
TURN_SECONDS = 0.001  # for other threads to take a lock that was released


class Wanted:
    """How many trials each worker wants, and those it has: pending ones, then new ones.

    A trial that somebody ends while others are still being chosen counts: asking comes to an end.
    """

    def __init__(self, wanted: Mapping[str, int]) -> None:
        if not isinstance(wanted, Mapping):
            raise StudyError(f"say how many trials each worker wants, not {wanted!r:.80}")
        for worker, n in wanted.items():
            check_wanted(worker, n)
        self._wanted = dict(wanted)
        self.found: dict[str, dict[int, Record]] = {worker: {} for worker in wanted}

    def missing(self, ledger: Ledger) -> list[str]:
        """Whose trials are still to be made, one name per trial."""
        names: list[str] = []
        for worker, n in self._wanted.items():
            found = self.found[worker]
            for record in ledger.pending_of(worker):
                if len(found) < n:
                    found.setdefault(record.number, record)
            names += [worker] * (n - len(found))
        return names


def check_wanted(worker: Any, n: Any) -> None:
    as_text(worker, "the worker")
    if type(n) is not int or not 1 <= n <= MAX_PENDING_TRIALS:
        raise StudyError(
            f"worker {worker!r:.80} may have {MAX_PENDING_TRIALS} pending trials at most: ask for "
            f"1 to {MAX_PENDING_TRIALS}, not {n!r:.40}"
        )


def choose(
    learner: Learner, ledger: Ledger, workers: Sequence[str], until: float
) -> list[dict[str, Any]]:
    """The data of new trials' events: at least one, and no further one after `until`."""
    pending, chosen = learner.pending(ledger), list[dict[str, Any]]()
    for number, worker in enumerate(workers, start=len(ledger.trials)):
        if chosen and time.perf_counter() > until:
            break
        choice = learner.choose(number, pending)
        pending.append(choice.wanted)
        data: dict[str, Any] = {
            "trial": number,
            "worker": worker,
            "intervention": choice.intervention.tolist(),
            "reason": choice.suggestion.reason,
            "learned": learner.policy.n_told,
        }
        if choice.suggestion.why:
            data["why"] = learner.by_name(choice.suggestion.why)
        if learner.settings.idle.any():
            data["wanted"] = choice.wanted.tolist()
        for name, value in (
            ("mean", learner.settings.sign * choice.suggestion.mean),
            ("width", choice.suggestion.width),
        ):
            if value == value and abs(value) != float("inf"):
                data[name] = float(value)
        if learner.problem is not None:
            data["problem"] = f"trial {learner.problem.trial}: {learner.problem.message}"
        chosen.append(data)
    return chosen
