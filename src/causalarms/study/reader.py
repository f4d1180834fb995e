"""What can be read from a study: its policy after the log so far, and all that follows from it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from causalarms.errors import StudyError, shown
from causalarms.graphs.graph import Graph
from causalarms.policies.base import Policy
from causalarms.policies.stopping import StopRule
from causalarms.study import exchange, repair, report
from causalarms.study.explain import explain, rounds_known
from causalarms.study.inputs import as_interventions
from causalarms.study.learner import Learner
from causalarms.study.ledger import Ledger, Trial
from causalarms.study.log import Clock, Log, now
from causalarms.study.settings import Settings
from causalarms.study.snapshot_check import restore_newest
from causalarms.study.store import Store
from causalarms.study.suspects import FarValue, LeftOutValue, far_values, left_out


class Moment(NamedTuple):
    """The log up to event `number`; later events do not change it."""

    number: int
    hash: bytes
    ledger: Ledger


class Reader:
    """Always as of now: every look first reads what others wrote.

    Every method may be called from any thread. Calls that learn take turns on one object; those
    that only read or write the log do not wait for them. A forked child opens the study again. What
    a method returns is of one moment and does not change afterwards.
    """

    def __init__(self, store: Store, clock: Clock = now) -> None:
        self.store = store
        self._ledger = Ledger()
        self._moment: Moment | None = None  # the newest that somebody looked at
        self._log = Log(store, lambda event: self._ledger.apply(event), clock, self._forget)
        self._learning = threading.RLock()  # taken before `_lock`, never inside it
        self._learner: Learner | None = None
        self._believed: tuple[Ledger, report.Beliefs] | None = None  # computed once per state

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
        with self.learning():
            learner = self._follow(self._now())
            twin = learner.settings.make_policy()
            twin.restore(learner.policy.state())
            return twin

    @property
    def problem(self) -> str | None:
        """Why the policy could not learn from the last round, if it could not."""
        with self.learning():
            found = self._follow(self._now()).problem
        return None if found is None else f"trial {found.trial}: {found.message}"

    def ledger(self) -> Ledger:
        """All trials as of now: a copy that later events do not change."""
        return self._now().ledger

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Have the policy for oneself.

        One that Ctrl+C cut off in the middle of a round is neither before nor after it: it is
        learned again.
        """
        _ = self._lock  # refused in a forked child, which nobody else's turn ever ends in
        with self._learning:
            try:
                yield
            except Exception:
                raise
            except BaseException:
                self._learner = None
                raise

    @property
    def seen(self) -> int:
        """The number of the newest event that was read."""
        return self._log.number

    def event_of(self, key: str) -> int:
        """The event that a request with this key wrote; 0 where there is none."""
        with self._lock:
            return self._ledger.keys.get(key, (0, ""))[0]

    def best(self) -> report.Best:
        """The best intervention known, how sure that is, and what being wrong would cost."""
        with self.learning():
            return report.best(self.beliefs())

    def should_stop(self, rule: StopRule) -> bool:
        """Whether settling on `best()` now is good enough by the rule, net of costs and limits."""
        with self.learning():
            found = report.best(self.beliefs(), tolerance=rule.tolerance)
        return rule.holds(found.expected_loss, found.probability)

    def predict(self, interventions: Any = None) -> list[dict[str, Any]]:
        """Expected value of every node with a 95 % interval, per intervention."""
        bits = as_interventions(interventions, self.settings.named)
        with self.learning():
            return report.predict(self.beliefs(), bits)

    def graph(self) -> Graph:
        """Who causes whom, as far as the rounds so far show."""
        with self.learning():
            return report.graph(self.beliefs())

    def alarms(self) -> list[dict[str, Any]]:
        """Mechanisms the policy believes to have changed."""
        with self.learning():
            now = self._now()
            return report.alarms(now.ledger, self._follow(now).policy)

    def far_values(self) -> list[FarValue]:
        """Values far outside all others of their node, which may be typing errors."""
        return far_values(self.ledger())

    def left_out(self) -> list[LeftOutValue]:
        """Values that are probably typing errors, from whose trials nothing is learned for now."""
        with self.learning():
            now = self._now()
            return left_out(now.ledger, self._follow(now).policy)

    @property
    def watches(self) -> bool:
        """Whether the policy looks for changes of mechanisms."""
        with self.learning():
            return self._follow(self._now()).policy.watches

    @property
    def weighs_graphs(self) -> bool:
        """Whether what is shown includes doubts about the graph."""
        belief = self.beliefs().belief
        return belief is not None and belief.weighs_graphs

    def history(self) -> Any:
        """One row per trial: a pandas or polars frame where installed, else a `PlainTable`."""
        return report.frame(self.ledger())

    def explain(self, trial: Trial | int) -> dict[str, Any]:
        """Why this intervention: what was predicted, what it teaches, what matters, what else."""
        number = trial_number(trial)
        with self.learning():
            now = self._now()
            rounds = rounds_known(now.ledger, number)
            policy = self._follow(now).policy
            if policy.n_told != rounds:
                assert now.ledger.settings is not None
                policy = Learner(now.ledger.settings).after(now.ledger, rounds)
            return explain(now.ledger, number, policy)

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
        with self.learning():
            return self._follow(self._now()).snapshot_ignored

    def export(self, path: str | Path, *, force: bool = False) -> Path:
        """The whole log (.json), or the table of trials (.csv, .parquet).

        Without `force` no file is replaced that is no earlier export; a study never is.
        """
        return exchange.export(self.store, report.columns(self.ledger()), path, force=force)

    def beliefs(self) -> report.Beliefs:
        """The mechanisms as the rounds so far show them."""
        with self.learning():
            now = self._now()
            if self._believed is None or self._believed[0] is not now.ledger:
                policy = self._follow(now).policy
                self._believed = (now.ledger, report.believe(now.ledger, policy))
            return self._believed[1]

    def _refresh(self) -> None:
        self._log.catch_up()
        _ = self.settings

    def _now(self) -> Moment:
        with self._lock:
            self._refresh()
            if self._moment is None or self._moment.number != self._log.number:
                self._moment = Moment(self._log.number, self._log.hash, self._ledger.copy())
            return self._moment

    def _follow(self, moment: Moment, until: float = float("inf")) -> Learner:
        """Learn the log up to a moment, or for so long; from a snapshot the first time."""
        if self._learner is None:
            assert moment.ledger.settings is not None
            learner = Learner(moment.ledger.settings)
            restore_newest(learner, self.store, moment.ledger, moment.number)
            self._learner = learner
        self._learner.follow(moment.ledger, until)
        return self._learner

    def _forget(self) -> None:
        """All that was read; the log gives it again."""
        self._ledger, self._moment = Ledger(), None


def trial_number(trial: Trial | int) -> int:
    if isinstance(trial, bool) or not isinstance(trial, Trial | int):
        raise StudyError(f"{shown(trial)} is no trial: give the trial or its number")
    return int(trial)
