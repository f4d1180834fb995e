"""What can be read from a study: its policy after the log so far, and all that follows from it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from causalarms.errors import StudyError
from causalarms.graphs.graph import Graph
from causalarms.policies.base import Policy
from causalarms.policies.stopping import StopRule
from causalarms.study import beliefs, best, exchange, history, repair
from causalarms.study.explanation import explain, rounds_known
from causalarms.study.far_values import FarValue, far_values
from causalarms.study.inputs import as_intervention
from causalarms.study.learner import Learner
from causalarms.study.left_out import LeftOutValue, left_out
from causalarms.study.log import Clock, Log, now
from causalarms.study.settings import Settings
from causalarms.study.snapshot_check import restore_newest
from causalarms.study.store import Store
from causalarms.study.trials import Ledger, Trial


class Reader:
    """Always as of now: every look first reads what others wrote.

    Every method may be called from any thread; calls on one object take turns. A forked child opens
    the study again. What a method returns is of one moment and does not change afterwards.
    """

    def __init__(self, store: Store, clock: Clock = now) -> None:
        self.store = store
        self._ledger = Ledger()
        self._view: tuple[int, Ledger] | None = None  # a copy, and the event it was made after
        self._log = Log(store, lambda event: self._ledger.apply(event), clock, self._forget)
        self._learner: Learner | None = None
        self._believed: tuple[Ledger, beliefs.Beliefs] | None = None  # computed once per state

    @property
    def _lock(self) -> threading.RLock:
        return self.store.lock  # refused in a forked child

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def settings(self) -> Settings:
        if self._ledger.settings is None:
            raise StudyError("the study was never finished being created: remove its file")
        return self._ledger.settings

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.settings.nodes

    @property
    def policy(self) -> Policy:
        """A copy of the policy after everything told so far."""
        with self._lock:
            self._refresh()
            twin = self.settings.make_policy()
            twin.restore(self._follow().state())
            return twin

    @property
    def problem(self) -> str | None:
        """Why the policy could not learn from the last round, if it could not."""
        with self._lock:
            self._refresh()
            self._follow()
            assert self._learner is not None
            found = self._learner.problem
        return None if found is None else f"trial {found.trial}: {found.message}"

    def ledger(self) -> Ledger:
        """All trials as of now: a copy that later events do not change."""
        with self._lock:
            self._refresh()
            if self._view is None or self._view[0] != self._log.number:
                self._view = (self._log.number, self._ledger.copy())
            return self._view[1]

    @property
    def seen(self) -> int:
        """The number of the newest event that was read."""
        return self._log.number

    def event_of(self, key: str) -> int:
        """The event that a request with this key wrote; 0 where there is none."""
        with self._lock:
            return self._ledger.keys.get(key, (0, ""))[0]

    def best(self) -> best.Best:
        """The best intervention known, how sure that is, and what being wrong would cost."""
        with self._lock:
            return best.best(self.beliefs())

    def should_stop(self, rule: StopRule) -> bool:
        """Whether settling on `best()` now is good enough by the rule, net of costs and limits."""
        with self._lock:
            found = best.best(self.beliefs(), tolerance=rule.tolerance)
        return rule.holds(found.expected_loss, found.probability)

    def predict(self, interventions: Any = None) -> list[dict[str, Any]]:
        """Expected value of every node with a 95 % interval, per intervention."""
        rows = [[]] if interventions is None else interventions
        if isinstance(rows, Mapping) or (rows and isinstance(rows[0], str | int)):
            rows = [rows]
        bits = [as_intervention(row, self.settings.named) for row in rows]
        with self._lock:
            return best.predict(self.beliefs(), bits)

    def graph(self) -> Graph:
        """Who causes whom, as far as the rounds so far show."""
        with self._lock:
            return beliefs.graph(self.beliefs())

    def alarms(self) -> list[dict[str, Any]]:
        """Mechanisms the policy believes to have changed."""
        with self._lock:
            self._refresh()
            return history.alarms(self._ledger, self._follow())

    def far_values(self) -> list[FarValue]:
        """Values far outside all others of their node, which may be typing errors."""
        return far_values(self.ledger())

    def left_out(self) -> list[LeftOutValue]:
        """Values that are probably typing errors, from whose trials nothing is learned for now."""
        with self._lock:
            self._refresh()
            return left_out(self._ledger, self._follow())

    @property
    def watches(self) -> bool:
        """Whether the policy looks for changes of mechanisms."""
        with self._lock:
            self._refresh()
            return self._follow().watches

    @property
    def weighs_graphs(self) -> bool:
        """Whether what is shown includes doubts about the graph."""
        belief = self.beliefs().belief
        return belief is not None and belief.weighs_graphs

    def history(self) -> Any:
        """One row per trial: a pandas or polars frame where installed, else a `PlainTable`."""
        return history.frame(self.ledger())

    def explain(self, trial: Trial | int) -> dict[str, Any]:
        """Why this intervention: what was predicted, what it teaches, what matters, what else."""
        ledger, number = self.ledger(), trial_number(trial)
        return explain(ledger, number, self._policy_after(rounds_known(ledger, number)))

    def verify(self, *, replay: bool = False, quick: bool = False) -> repair.Verdict:
        """Check the whole log again, and whether the snapshot is what it gives unless `quick`.

        `replay` also asks whether the log gives the same suggestions.
        """
        return repair.verify_store(self.store, replay=replay, quick=quick)

    def backup(self, copy: str | Path) -> repair.Verdict:
        """Copy the study as it is now, also while others write to it; the verdict on the copy."""
        return repair.backup(self.store, copy)

    @property
    def snapshot_ignored(self) -> str | None:
        """What is wrong with the snapshot that was found, if it was not used for that."""
        _ = self.policy
        assert self._learner is not None
        return self._learner.snapshot_ignored

    def export(self, path: str | Path, *, force: bool = False) -> Path:
        """The whole log (.json), or the table of trials (.csv, .parquet).

        Without `force` no file is replaced that is no earlier export; a study never is.
        """
        return exchange.export(self.store, history.columns(self.ledger()), path, force=force)

    def beliefs(self) -> beliefs.Beliefs:
        """The mechanisms as the rounds so far show them."""
        with self._lock:
            ledger = self.ledger()
            if self._believed is None or self._believed[0] is not ledger:
                self._believed = (ledger, beliefs.believe(ledger, self._follow()))
            return self._believed[1]

    def _policy_after(self, rounds: int) -> Policy:
        """The policy as it was after so many rounds."""
        with self._lock:
            self._refresh()
            policy = self._follow()
            if policy.n_told == rounds:
                return policy
            return Learner(self.settings).after(self._ledger, rounds)

    def _refresh(self) -> None:
        self._log.catch_up()
        _ = self.settings

    def _follow(self) -> Policy:
        """The policy after the log read so far, from a snapshot the first time."""
        learner, self._learner = self._learner, None  # Ctrl+C may leave it with half a round
        if learner is None:
            learner = Learner(self.settings)
            restore_newest(learner, self.store, self._ledger, self._log.number)
        policy = learner.follow(self._ledger)
        self._learner = learner
        return policy

    def _forget(self) -> None:
        """All that was read; the log gives it again."""
        self._ledger, self._learner = Ledger(), None
        self._view = self._believed = None


def trial_number(trial: Trial | int) -> int:
    if isinstance(trial, bool) or not isinstance(trial, Trial | int):
        raise StudyError(f"{trial!r} is no trial: give the trial or its number")
    return int(trial)
