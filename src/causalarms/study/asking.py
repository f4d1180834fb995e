"""Trials are chosen without holding up those who tell, and written in slices.

Choosing takes most of the time of an ask, and a suggestion must be what the log before it gives.
One turn of asking (`Study._ask_some`):

1. Read the log and learn from it for at most a slice of time. If results are left over, the turn
   ends here, and others may write.
2. Choose trials from the log as it was read, for at most a slice of time.
3. Take the writer lock. If nobody wrote meanwhile, write the trials.
4. If somebody did, what was chosen is dropped: a collision. The next slice is half as long.
5. After several collisions, one trial is chosen while the lock is held, so that asking comes to an
   end even if others write all the time. Then it is their turn again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from math import isfinite
from operator import itemgetter
from typing import Any

from causalarms.errors import StudyError, shown
from causalarms.limits import MAX_PENDING_TRIALS
from causalarms.study.inputs import as_text
from causalarms.study.learner import Learner
from causalarms.study.ledger import Ledger, Record

SLICE_SECONDS = 0.2  # of learning or choosing before others get their turn
MAX_UNLOCKED_ATTEMPTS = 3  # in which others wrote meanwhile
TURN_SECONDS = 0.001  # for other threads to take a lock that was released


class Wanted:
    """How many trials a worker wants, and those it has: pending ones, then new ones.

    A trial that somebody ends while others are still being chosen counts: asking comes to an end.
    """

    def __init__(self, worker: str, n: int) -> None:
        self.worker = as_text(worker, "the worker")
        if type(n) is not int or not 1 <= n <= MAX_PENDING_TRIALS:
            raise StudyError(
                f"worker {shown(worker)} may have at most {MAX_PENDING_TRIALS} pending trials: ask "
                f"for 1 to {MAX_PENDING_TRIALS}, not {shown(n)}"
            )
        self.n = n
        self.found: dict[int, Record] = {}

    @property
    def missing(self) -> int:
        return self.n - len(self.found)

    def take_pending(self, ledger: Ledger) -> None:
        for record in ledger.pending_of(self.worker):
            if self.missing:
                self.found.setdefault(record.number, record)


def hand_out_pending(wanted: Iterable[Wanted], ledger: Ledger) -> list[str]:
    """Give everybody their pending trials; whose trials are still to be made, a name per trial.

    Workers take turns: who wants many does not come first.
    """
    for one in wanted:
        one.take_pending(ledger)
    turns = [(turn, one.worker) for one in wanted for turn in range(one.missing)]
    return [worker for _, worker in sorted(turns, key=itemgetter(0))]


def choose(
    learner: Learner, ledger: Ledger, workers: Sequence[str], until: float
) -> list[dict[str, Any]]:
    """The data of new trials' events: at least one, and no further one after `until`."""
    pending, chosen = learner.pending(ledger), list[dict[str, Any]]()
    for number, worker in enumerate(workers, start=len(ledger.trials)):
        if chosen and time.perf_counter() > until:
            break
        suggestion = learner.choose(number, pending)
        # The next one takes it into account, as if another worker had asked before.
        pending.append(suggestion.intervention)
        data: dict[str, Any] = {
            "trial": number,
            "worker": worker,
            "intervention": suggestion.intervention.tolist(),
            "reason": suggestion.reason,
            "learned": learner.policy.n_told,
        }
        if suggestion.why is not None:
            data["why"] = suggestion.why.in_words(learner.settings.named.moved_by)
        # Exploring policies predict nothing, and JSON has no nan.
        for name, value in (
            ("mean", learner.settings.sign * suggestion.mean),
            ("width", suggestion.width),
        ):
            if isfinite(value):
                data[name] = float(value)
        if learner.problem is not None:
            data["problem"] = f"trial {learner.problem.trial}: {learner.problem.message}"
        chosen.append(data)
    return chosen
