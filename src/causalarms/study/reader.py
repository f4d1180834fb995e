"""What can be read from a study: its trials, its policy after the log so far, and its beliefs."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from causalarms.errors import FarValueWarning, StudyError, shown
from causalarms.graphs.graph import Graph
from causalarms.policies.base import Policy
from causalarms.policies.stopping import StopRule
from causalarms.study import cache, exchange, repair, report
from causalarms.study.effects import effects
from causalarms.study.explain import explain, rounds_known
from causalarms.study.far_values import as_learned, far_values, left_out, suspects
from causalarms.study.inputs import (
    about_context,
    as_context,
    as_intervention,
    as_interventions,
    far_context,
    warn_the_caller,
)
from causalarms.study.learner import MissingPolicyError, StudyPolicy, policy_of, watches
from causalarms.study.ledger import Ledger
from causalarms.study.log import Clock, Log, now
from causalarms.study.records import Alarm, Best, SuspectValue, Trial
from causalarms.study.settings import Settings
from causalarms.study.store import Store


class Snapshot(NamedTuple):
    """The log up to event `number`; later events do not change it."""

    number: int
    hash: bytes
    ledger: Ledger


class Reader:
    """Every read first catches up with events written by other processes.

    Every method may be called from any thread. Calls that learn take turns on one object; those
    that only read or write the log do not wait for them. A forked child opens the study again. What
    a method returns is of one moment and does not change afterwards.
    """

    def __init__(self, store: Store, clock: Clock = now) -> None:
        self.store = store
        self._ledger = Ledger()
        self._newest: Snapshot | None = None  # the newest that somebody looked at
        self._log = Log(store, lambda event: self._ledger.apply(event), clock, self._start_over)
        self._learning = threading.RLock()  # taken before `_lock`, never inside it
        self._learner: StudyPolicy | None = None
        self._believed: tuple[Ledger, report.Beliefs] | None = None  # computed once per state

    @property
    def _lock(self) -> threading.RLock:
        return self.store.lock  # refused in a forked child

    def close(self) -> None:
        """No further use of this object."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the log: needs no policy ------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """What the study was created with, and changed to since."""
        return self._ledger.settings

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the measured quantities."""
        return self.settings.nodes

    @property
    def seen(self) -> int:
        """The number of the newest event that was read."""
        return self._log.number

    def ledger(self) -> Ledger:
        """All trials as of now: a copy that later events do not change."""
        return self._snapshot_now().ledger

    def history(self) -> Any:
        """One row per trial: a pandas or polars frame if installed, else a `PlainTable`."""
        return report.frame(self.ledger(), self._left_out())

    def far_values(self) -> list[SuspectValue]:
        """Values far outside all others of their node, which may be typing errors."""
        found = far_values(self.ledger())
        return as_learned(found, self._left_out()) if found else found

    def event_of(self, key: str) -> int:
        """The event that the request with this `key` wrote; 0 if there is none."""
        with self._lock:
            return self._ledger.keys.get(key, (0, ""))[0]

    def verify(self, *, replay: bool = False) -> repair.Verdict:
        """Check the whole log again; `replay`: also that it gives the same suggestions.

        Damage is a verdict. A file that is gone, or is not this study any more, is a
        StudyFileError.
        """
        verdict = repair.verify(self.store, replay=StudyPolicy if replay else None)
        if verdict.ok:
            # Another study in its place may be intact, too: that is not what was asked.
            with self._lock:
                self._refresh()
        return verdict

    def backup(self, copy: str | Path) -> repair.Verdict:
        """Copy the study as it is now to the new file `copy`, also while others write to it.

        The verdict is on the copy.
        """
        with self._lock:
            self._refresh()  # refuses to copy another study that was put in its place
        return repair.backup(self.store, copy)

    def export(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the whole log (.json) or the table of trials (.csv, .parquet) to `path`.

        Without `force` only an earlier export is replaced; a study never is.
        """
        # the log is what was told; what is learned from is a column of tables only
        out = [] if str(path).endswith(".json") else self._left_out()
        table = report.columns(self.ledger(), out)
        return exchange.export(self.store, table, path, force=force)

    # -- what the policy believes ------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """A copy of the policy after everything told so far."""
        with self.learning():
            learner = self._follow(self._snapshot_now())
            # A copy: who plays with it must not change what the study learns from.
            twin = policy_of(learner.settings)
            twin.restore(learner.policy.state())
            return twin

    @property
    def problem(self) -> str | None:
        """Why the policy could not learn from the last round, if it could not."""
        with self.learning():
            found = self._follow(self._snapshot_now()).problem
        return None if found is None else f"trial {found.trial}: {found.message}"

    @property
    def watches(self) -> bool:
        """Whether the policy looks for changes of mechanisms."""
        with self.learning():
            return self._follow(self._snapshot_now()).policy.watches

    @property
    def weighs_graphs(self) -> bool:
        """Whether what is shown includes doubts about the graph."""
        belief = self.beliefs().belief
        return belief is not None and belief.weighs_graphs

    def best(self, *, context: Mapping[str, float] | None = None) -> Best:
        """The best intervention known, how sure that is, and what being wrong would cost.

        `context` as in `ask`: what is best may depend on it.
        """
        known = self._today(context)
        with self.learning():
            found = report.best(self.beliefs().given(known))
        more = far_context(self.ledger(), known) if known else []
        return msgspec.structs.replace(found, remarks=[*found.remarks, *more])

    def should_stop(self, rule: StopRule) -> bool:
        """Whether settling on `best()` now is good enough by the `rule`, net of costs."""
        with self.learning():
            found = report.best(self.beliefs(), tolerance=rule.tolerance)
        return rule.holds(found.expected_loss, found.probability)

    def predict(
        self, interventions: Any = None, *, context: Mapping[str, float] | None = None
    ) -> list[dict[str, Any]]:
        """Expected value of every node with a 95 % interval, for each of the `interventions`.

        Each is {factor: level} or a list of factors that are on; factors that are not named are at
        their first level. None: all factors at their first level. `context` as in `ask`.
        """
        bits = as_interventions(interventions, self.settings.named)
        known = self._today(context)
        with self.learning():
            return [found.as_dict() for found in report.predict(self.beliefs().given(known), bits)]

    def _today(self, context: Mapping[str, float] | None) -> dict[str, float]:
        """Checked values of the context."""
        known = {} if context is None else as_context(context, self.settings)
        self._warn_of_context(known)
        return known

    def _warn_of_context(self, known: Mapping[str, float], trials: Iterable[Trial] = ()) -> None:
        for text in about_context(self.ledger(), known, trials) if known else ():
            warn_the_caller(text, FarValueWarning)

    def effects(self) -> list[dict[str, Any]]:
        """Of every factor the nodes it acts on (probability), and what its levels do to the reward.

        Both are compared with its first level, while all other factors are at theirs.
        """
        with self.learning():
            return [found.as_dict() for found in effects(self.beliefs())]

    def graph(self, levels: Any = None) -> Graph:
        """Who causes whom, as far as the rounds so far show.

        `levels` ({factor: level}, as in `predict`) ask for the graph of one setting: it has one
        regime, and a factor that shifts nodes has the weight of what its level adds to them.
        """
        row = None if levels is None else as_intervention(levels, self.settings.named)
        with self.learning():
            return report.graph(self.beliefs(), row)

    def alarms(self) -> list[dict[str, Any]]:
        """Mechanisms the policy believes to have changed."""
        return [alarm.as_dict() for alarm in self.alarm_records()]

    def new_alarms(self) -> list[dict[str, Any]]:
        """Those of `alarms` that nobody has acknowledged.

        A study that does not watch for changes has none, and learns nothing to say so.
        """
        return [alarm.as_dict() for alarm in self.alarm_records(new=True)]

    def alarm_records(self, *, new: bool = False) -> list[Alarm]:
        """The `alarms` as records; if `new`, those of `new_alarms`."""
        if new and not watches(self.settings):
            return []
        return [alarm for alarm in self._all_alarms() if not (new and alarm.acknowledged)]

    def _all_alarms(self) -> list[Alarm]:
        with self.learning():
            snapshot = self._snapshot_now()
            return report.alarms(snapshot.ledger, self._follow(snapshot).policy)

    def suspects(self) -> list[SuspectValue]:
        """Values that may be typing errors: trial, node, value, why, and if they are learned from.

        They are far outside all others of their node, or the policy leaves their trial out.
        """
        return suspects(self.ledger(), self.left_out())

    def left_out(self) -> list[SuspectValue]:
        """Probable typing errors, from whose trials nothing is learned for now."""
        with self.learning():
            snapshot = self._snapshot_now()
            return left_out(snapshot.ledger, self._follow(snapshot).policy)

    def _left_out(self) -> list[SuspectValue]:
        """The same for what works without the policy, too."""
        try:
            return self.left_out()
        except MissingPolicyError:
            return []

    def explain(self, trial: Trial | int) -> dict[str, Any]:
        """Why this `trial` was asked: what was predicted, what it teaches, what matters."""
        number = trial_number(trial)
        with self.learning():
            snapshot = self._snapshot_now()
            rounds = rounds_known(snapshot.ledger, number)
            policy = self._follow(snapshot).policy
            if policy.n_told != rounds:
                policy = StudyPolicy(snapshot.ledger.settings).after(snapshot.ledger, rounds)
            return explain(snapshot.ledger, number, policy).as_dict()

    def beliefs(self) -> report.Beliefs:
        """The mechanisms as the rounds so far show them."""
        with self.learning():
            snapshot = self._snapshot_now()
            # The ledger is copied once per state of the log, so the same object is the same state.
            if self._believed is None or self._believed[0] is not snapshot.ledger:
                policy = self._follow(snapshot).policy
                self._believed = (snapshot.ledger, report.believe(snapshot.ledger, policy))
            return self._believed[1]

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Keep other threads from using the policy."""
        _ = self._lock  # refused in a forked child, which nobody else's turn ever ends in
        with self._learning:
            yield

    def _refresh(self) -> None:
        self._log.catch_up()
        _ = self.settings

    def _snapshot_now(self) -> Snapshot:
        with self._lock:
            self._refresh()
            # Copying the ledger takes time that grows with the study: once per state of the log.
            if self._newest is None or self._newest.number != self._log.number:
                self._newest = Snapshot(self._log.number, self._log.hash, self._ledger.copy())
            return self._newest

    def _follow(self, snapshot: Snapshot, until: float = float("inf")) -> StudyPolicy:
        """Learn the log up to a snapshot, or for so long; from a cached state the first time."""
        learner = self._learner
        if learner is None:
            learner = StudyPolicy(snapshot.ledger.settings, snapshot.ledger.revision)
            self._resume(learner, snapshot)
            self._learner = learner
        learner.follow(snapshot.ledger, until)
        # Readers keep it, too: `study best` in a shell is a new process every time.
        if learner.worth_keeping and self._has_cache and not learner.behind(snapshot.ledger):
            cache.keep(self._log.first_hash, learner.state(snapshot.number, snapshot.hash))
        return learner

    @property
    def _has_cache(self) -> bool:
        return getattr(self.store, "path", None) is not None  # others do not outlive the process

    def _resume(self, learner: StudyPolicy, snapshot: Snapshot) -> None:
        """Start from the cached state if this very log, up to its event, gave it."""
        cached = cache.load(self._log.first_hash) if self._has_cache else None
        if cached is None or not snapshot.ledger.revision <= cached.event <= snapshot.number:
            return
        # Copies of a study share their first event: the state may be of one that went on otherwise.
        found = self.store.entries(cached.event - 1, 1)
        if found and found[0].hash.hex() == cached.hash and cached.made_for == learner.made_for:
            learner.resume(cached)

    def _start_over(self) -> None:
        """Drop all that was read; the log gives it again."""
        self._ledger, self._newest = Ledger(), None


def trial_number(trial: Trial | int) -> int:
    if isinstance(trial, bool) or not isinstance(trial, Trial | int):
        raise StudyError(f"{shown(trial)} is not a trial: give the trial or its number")
    return trial.number if isinstance(trial, Trial) else trial
