"""`Study`: ask what to try next, tell what was measured, lose nothing.

The log is the truth. Telling writes one event and returns when it is on the disk; asking brings the
policy up to the log, draws from the generator of (seed, trial number) and writes what it suggests.
Several processes may do both at once: a study object never trusts what it read earlier.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from causalarms.errors import (
    AlarmWarning,
    CorruptStudyError,
    LearningWarning,
    NoResultError,
    StudyError,
    StudyFileError,
    UnknownAlarmError,
    shown,
)
from causalarms.sem.factor import shifting_by_default
from causalarms.study import exchange, log
from causalarms.study.inputs import (
    Ending,
    Import,
    PastRounds,
    as_context,
    as_past_rounds,
    checked_rounds,
    deviation,
    not_allowed,
    prepare_correction,
    prepare_import,
    remarks,
    warn_the_caller,
)
from causalarms.study.learner import can_shift, chosen_policy, refuse_what_cannot_run
from causalarms.study.ledger import TrialRequest
from causalarms.study.log import Clock, already_done, as_text, key_entry, now
from causalarms.study.reader import Reader, trial_number
from causalarms.study.records import Alarm, Trial
from causalarms.study.settings import (
    FORMAT,
    Settings,
    checked_limits,
    refusals,
    refuse_odd_names,
    switches,
)
from causalarms.study.sqlite import SqliteStore
from causalarms.study.store import MemoryStore

DEFAULT_WORKER = "main"  # who asks without a name
SLICE_SECONDS = 0.2  # of learning or choosing before others get their turn
MAX_UNLOCKED_ATTEMPTS = 3  # in which others wrote meanwhile
TURN_SECONDS = 0.001  # for other threads to take a lock that was released


class Study(Reader):
    """Made by `Study.create` or `Study.open`; use as a context manager or `close` it.

    Its events are in a `store`, and a `clock` gives the time that new ones carry.

    >>> study = Study.create(None, ["heat", "yield"], "yield", factors={"oven": {}}, seed=1)
    >>> trial = study.ask()
    >>> study.tell(trial, {"heat": 1.5, "yield": 0.3})
    []
    >>> study.history()["state"][0]
    'told'
    """

    _collisions = 0  # turns of asking in which others wrote, less those in which nobody did
    _alarms_said = 0  # that were warned of, or acknowledged before
    _backlog = 0  # results that were not yet learned from after the last turn

    @classmethod
    def create(
        cls,
        path: str | Path | None,
        nodes: Sequence[str],
        reward: str,
        direction: str = "maximize",
        policy: str | None = None,
        policy_settings: Mapping[str, Any] | None = None,
        horizon: int | None = None,
        intervenable: Sequence[str] | None = None,
        constraints: Mapping[str, Any] | None = None,
        costs: Mapping[str, float] | None = None,
        noise_mean: Any = None,
        seed: int = 0,
        *,
        factors: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]] | None = None,
        changes: bool = False,
        knowledge: Mapping[str, Any] | None = None,
        context: Sequence[str] = (),
        failure_reward: float | None = None,
        clock: Clock = now,
    ) -> Self:
        """A new study in a new file at `path` (None: in memory).

        `nodes` are the names of what is measured. One of them is the `reward`, whose `direction` is
        "maximize" or "minimize".

        `factors` are what you set: {name: {"levels": [...], "acts_on": [nodes], "sets": [levels]}}.
        Without levels a factor is off or on; {"range": [0.3, 1.0], "step": 0.1} are levels, too.
        It shifts the nodes it acts on; without acts_on, what the data say. A factor of two levels
        with the name of a node may change slopes, and so may one with {"effect": "free"}: a
        mechanism per level. A level in `sets` sets the nodes: nothing else causes them then.
        Without factors every node but the reward, or those that are `intervenable`, has a switch.
        With both, factors that are not intervenable stay where they are.

        `constraints` may hold "max_interventions" (factors away from their first level),
        "forbidden" (lists of factors not to be moved together, or {factor: level or levels} never
        all at once) and "required" ({factor: level}, all together or not at all). `costs` are of a
        factor, or {level: cost} of its levels, in units of the reward.

        `policy` is the best there is for systems nobody knows ("posterior", in any units) unless
        you name another, with its `policy_settings`. Some of the others stop exploring by the
        `horizon`, the number of rounds you expect to run (default: 100 per node, at least 500);
        running longer is fine. `noise_mean` is the mean of every node's noise, for policies that
        need it. `seed` makes the suggestions repeatable.

        `changes`: mechanisms may change while you experiment; they are watched, and one that
        changed is learned again. `knowledge` is what is known of edges: "tiers" (lists of nodes,
        earliest first; no edge goes back), "excluded" and "required" (pairs of parent and child). A
        parent may be a factor that shifts nodes.
        `context` are nodes that no factor moves and that nothing else causes, such as the weather.
        `failure_reward` is what a trial that fails is worth, in units of the reward; untold, as
        little as the worst result so far. `clock` gives the time that events carry.
        """
        policy, policy_settings = chosen_policy(policy, policy_settings, changes=changes)
        limits = checked_limits(constraints)
        if factors is None:
            factors, intervenable = switches(nodes, reward, intervenable), None
        elif can_shift(policy, noise_mean):
            factors = shifting_by_default(factors, nodes)
        settings = Settings.from_dict(
            {
                "nodes": nodes, "reward": reward, "direction": direction, "policy": policy,
                "policy_settings": policy_settings, "horizon": horizon,
                "intervenable": intervenable, "costs": {} if costs is None else costs,
                "noise_mean": noise_mean, "seed": seed, "factors": factors,
                "knowledge": {} if knowledge is None else knowledge, "context": context,
                "failure_reward": failure_reward, **limits,
            }
        )  # fmt: skip
        refuse_odd_names(settings)
        with refusals(nodes):
            settings.refuse_unreachable()
        learner = refuse_what_cannot_run(settings, changes=changes)  # before there is a file
        # In memory first: the file is then made with its first event, in one transaction.
        study = cls(MemoryStore(), clock)
        study._write(log.CREATED, {"format": FORMAT, "settings": settings.as_dict()})
        if path is not None:
            study = cls(SqliteStore.create(path, study.store.entries()), clock)
            study._refresh()
        study._learner = learner
        return study

    @classmethod
    def open(cls, path: str | Path, *, read_only: bool = False, clock: Clock = now) -> Self:
        """The study in the file at `path`; its log is verified from the first event to the last.

        A study opened `read_only` refuses to write. `clock` gives the time that new events carry.
        """
        try:
            study = cls(SqliteStore(path, read_only=read_only), clock)
            study._refresh()
        except CorruptStudyError as error:
            # The log names the event only, and here is where people learn that a file is damaged.
            file = "" if error.event is None else f"{path}: "
            hint = "`causalarms study recover` saves every event that is whole"
            raise CorruptStudyError(f"{file}{error}; {hint}", error.event) from error
        return study

    @classmethod
    def import_from(cls, exported: str | Path, path: str | Path) -> Self:
        """The same study again, in a new file at `path`, from its `exported` log (.json)."""
        exchange.import_log(exported, path)
        return cls.open(path)

    def ask(
        self,
        n: int = 1,
        worker: str = DEFAULT_WORKER,
        *,
        context: Mapping[str, float] | None = None,
    ) -> Any:
        """The next trial (`n` = 1), or a list of `n`; a `worker` gets its pending trials first.

        Trials are chosen and written a few at a time, so that others can tell meanwhile. If asking
        is interrupted (Ctrl+C, a kill), the trials written so far are pending: the worker gets them
        first when it asks again. A worker has at most `limits.MAX_PENDING_TRIALS` pending trials.

        `context` are today's values of nodes that are context, {node: value}, if they are known
        before the trial: what is best may depend on them. Asking warns of an alarm (AlarmWarning)
        that nobody has acknowledged, once.
        """
        given = {} if context is None else as_context(context, self.settings)
        trials = self._ask([TrialRequest(worker, n, given)])[0]
        self._warn_of_context(given, trials)
        return trials[0] if n == 1 else trials

    def ask_for(self, wanted: Mapping[str, int]) -> dict[str, list[Trial]]:
        """As `ask`, for several workers at once; `wanted` says how many trials each wants."""
        if not isinstance(wanted, Mapping):
            raise StudyError(f"say how many trials each worker wants, not {shown(wanted)}")
        found = self._ask([TrialRequest(worker, n) for worker, n in wanted.items()])
        return dict(zip(wanted, found, strict=True))

    def ask_turn(self, wanted: Sequence[TrialRequest]) -> bool:
        """Ask for a short time; whether everybody in `wanted` has all trials now."""
        with self.learning():
            self._ask_some(wanted)
            with self._lock:
                return not self._ledger.hand_out_pending(wanted)

    def trials_of(self, wanted: TrialRequest) -> list[Trial]:
        """What the worker in `wanted` was given by `ask_turn` so far."""
        return [self._ledger.as_trial(record) for record in wanted.found.values()]

    def tell(self, trial: Trial | int, values: Any, executed: Any = None) -> list[str]:
        """The result of a pending `trial` (or its number); what to know of it, warned of as well.

        `values` is a dict, Series, row or sequence with every node; None is a value that was not
        measured. `executed` says what was set if that is not what was asked: {factor: level}
        (factors that are not named: as asked), or a list of all switches that were on (other
        switches: off). The policy learns from it.
        """
        return self._finish(Ending(log.TOLD, trial_number(trial), values, executed))

    def fail(self, trial: Trial | int, reason: str = "") -> None:
        """The `trial` was carried out and gave no result, for this `reason`."""
        self._finish(Ending(log.FAILED, trial_number(trial), reason=reason))

    def abandon(self, trial: Trial | int, reason: str = "") -> None:
        """The `trial` will not be carried out, for this `reason`."""
        self._finish(Ending(log.ABANDONED, trial_number(trial), reason=reason))

    def finish(self, endings: Sequence[Ending]) -> list[StudyError | None]:
        """End several trials in one transaction; of each the error for which it was refused.

        `endings` name a trial once only. An error that leaves this is of all: nothing was written.
        """
        endings = [ending.checked(self.settings) for ending in endings]
        if len({ending.trial for ending in endings}) < len(endings):
            raise StudyError("a trial ends once: name each of them once")
        found: list[StudyError | None] = []
        try:
            with self._lock, self._log.writing():
                for ending in endings:
                    try:
                        record = self._ledger.check_open(ending.trial)
                    except StudyError as error:
                        found.append(error)
                        continue
                    found.append(None)
                    self._log.write(ending.kind, ending.data(record, self.settings.named))
        except StudyFileError as error:
            # The file is not what it was. What was measured must not be lost with it.
            found = []
            for ending in endings:
                kept = ending.keep(self.store, self.settings)
                found.append(type(error)(f"{error}. {kept}") if kept else error)
        return found

    def import_rounds(
        self,
        frame: Any,
        interventions: Any = None,
        source: str = "",
        *,
        intervened: str | None = None,
        ignore: Sequence[str] = (),
        key: str | None = None,
    ) -> int:
        """Rounds nobody asked for, of a `frame`, a dict of columns or a file; how many there were.

        A column per node, and what was set: columns `do:FACTOR` of levels (0/1 of a switch); or a
        column of the names of factors that were on, separated by `;` (`intervened`, found by itself
        if it is called so or `intervention_targets`); or a second table `interventions` with
        columns like the factors. Other columns are refused unless they are in `ignore`, or the
        table is that of an exported study. `source` is a remark on where they are from. A request
        that is repeated with its `key` is not done again.
        """
        rounds = as_past_rounds(
            frame, self.settings.named, interventions, intervened=intervened, ignore=ignore
        )
        for remark in rounds.left_out:
            self._warn(remark)
        return self.add_rounds(rounds, source, key=key)

    def add_rounds(self, rounds: PastRounds, source: str = "", *, key: str | None = None) -> int:
        """As `import_rounds` with its `source` and `key`, of `rounds` that were read already."""
        checked = checked_rounds(self.settings, rounds.interventions, rounds.values)
        prepared = prepare_import(checked, source, key)
        first = self.write_import(prepared)
        if first is not None:
            with self._lock:
                ledger = self._ledger.copy()
            for message, kind in remarks(ledger, first, prepared.n_rounds):
                self._warn(message, kind)
        return prepared.n_rounds

    def write_import(self, prepared: Import) -> int | None:
        """Write `prepared` rounds; their first trial, or None if they were written before."""
        with self._lock, self._log.writing():
            if already_done(self._ledger.keys, prepared.data):
                return None
            first = len(self._ledger.trials)
            self._log.write(log.IMPORTED, {"first": first} | prepared.data, prepared.encoded)
        return first

    def correct(
        self,
        trial: Trial | int,
        values: Any,
        reason: str = "",
        executed: Any = None,
        *,
        key: str | None = None,
    ) -> list[str]:
        """Replace the result of a told or imported `trial`; both stay in the log. As `tell`.

        `values` as in `tell`, but nodes that are not named stay as they were told; None withdraws
        the result. The `reason` is kept with it. `executed`
        as in `tell`; without it, what was set stays as it was told. A request that is repeated with
        its `key` is not done again.
        """
        number = trial_number(trial)
        with self._lock, self._log.writing():
            # under the lock: values that are not named are those of now, not of another's before
            data, levels = prepare_correction(self._ledger, number, values, executed, reason)
            data |= key_entry(key, data | {"executed": levels})
            if already_done(self._ledger.keys, data):
                return []
            record = self._ledger.trial(number)
            if record.values is None:
                raise NoResultError(
                    f"trial {number} is {record.state}: it has no result to correct",
                    number,
                    record.state,
                )
            self._log.write(log.CORRECTED, data | deviation(record, levels, self.settings.named))
        return self._warn_of(number)

    def change_settings(
        self, *, new_levels: Mapping[str, Sequence[Any]] | None = None, **changes: Any
    ) -> None:
        """Go on with other settings; the past is learned again.

        `changes` are settings of `create` by name: horizon, policy, policy_settings, intervenable,
        max_interventions, forbidden, required, costs, noise_mean, knowledge, context and
        failure_reward. A level that is forbidden by itself {factor: level} is retired: it is not
        asked any more, and what was learned stays. `new_levels` {factor: levels} come last.
        """
        if "policy" in changes:
            # As of a new study: defaults of the other policy are not those of this one.
            given = changes.get("policy_settings")
            name, given = chosen_policy(changes["policy"], given, changes=False)
            changes |= {"policy": name, "policy_settings": given}
        while True:
            with self._lock:
                self._refresh()
                before = self.settings
            new, plain = before.changed(changes, new_levels)
            # Before it is written: a log with settings that cannot run could not be asked any more.
            refuse_what_cannot_run(new)
            with self._lock, self._log.writing():
                if self.settings.digest != before.digest:  # others changed them meanwhile
                    continue
                self._log.write(log.CHANGED, {"settings": plain})
            break
        for message in not_allowed(self.ledger()):
            self._warn(message)

    def note(self, text: str, trial: Trial | int | None = None, *, key: str | None = None) -> None:
        """Write a remark (`text`) into the log, of one `trial` if it is named.

        A request that is repeated with its `key` is not done again.
        """
        data: dict[str, Any] = {"text": as_text(text, "the note")}
        if trial is not None:
            data["trial"] = trial_number(trial)
        data |= key_entry(key, data)
        with self._lock, self._log.writing():
            if already_done(self._ledger.keys, data):
                return
            if trial is not None:
                self._ledger.trial(data["trial"])
            self._log.write(log.NOTE, data)

    def acknowledge(self, alarm: int, note: str = "", *, known: int | None = None) -> None:
        """Say that an `alarm` (its number in `alarms()`) was seen, with a `note`.

        `known` is how many alarms there are, if the caller has just looked.
        """
        count = len(self.alarms()) if known is None else known
        if type(alarm) is not int or not 0 <= alarm < count:
            words = f"there is no alarm {shown(alarm)}; there are {count}"
            raise UnknownAlarmError(words, alarm)
        text = as_text(note, "the note", empty=True)
        self._write(log.ACKNOWLEDGED, {"alarm": alarm, "note": text})

    def _ask(self, requests: Sequence[TrialRequest]) -> list[list[Trial]]:
        while not self.ask_turn(requests):
            time.sleep(TURN_SECONDS)
        with self.learning():
            learner = self._learner
            if learner is not None and len(learner.policy.alarms) > self._alarms_said:
                self._warn_of_alarms(self.alarm_records())
        return [self.trials_of(request) for request in requests]

    def _ask_some(self, requests: Sequence[TrialRequest]) -> None:
        """One turn of asking, in which others may tell.

        1. Read the log and learn from it for at most a slice of time. If results are left over, the
           turn ends here, and others may write.
        2. Choose trials from the log as it was read, for at most a slice of time.
        3. Take the writer lock. If nobody wrote meanwhile, write the trials.
        4. If somebody did, what was chosen is dropped: a collision. The next slice is half as long.
        5. After several collisions, one trial is chosen while the lock is held, so that asking
           comes to an end even if others write all the time. Then it is their turn again.
        """
        snapshot = self._snapshot_now()
        workers = snapshot.ledger.hand_out_pending(requests)
        if not workers:
            return
        policy = self._follow(snapshot, time.perf_counter() + SLICE_SECONDS)
        locked = self._collisions >= MAX_UNLOCKED_ATTEMPTS
        backlog, before = policy.behind(snapshot.ledger), self._backlog
        self._backlog = backlog
        if backlog and not locked:
            if 0 < before <= backlog:  # results come in faster than they are learned from
                self._collisions += 1
            return
        # Each collision halves the slice: who writes often is given more turns.
        until = time.perf_counter() + SLICE_SECONDS / 2**self._collisions
        known = {request.worker: request.context for request in requests}
        chosen = [] if locked else policy.propose(snapshot.ledger, workers, until, known)
        with self._lock, self._log.writing():
            if locked:
                # A whole slice, however many collisions: the backlog must shrink on slow machines.
                until = time.perf_counter() + SLICE_SECONDS
                policy.follow(self._ledger, until)
                if policy.behind(self._ledger):
                    return
                workers = self._ledger.hand_out_pending(requests)[:1]
                chosen = policy.propose(self._ledger, workers, until, known)
            # A suggestion must be what the log before it gives, or no replay could check it.
            elif self._log.number != snapshot.number:
                self._collisions += 1
                return
            for data in chosen:
                self._log.write(log.ASKED, data)
        self._collisions = max(self._collisions - 1, 0)

    def _finish(self, ending: Ending) -> list[str]:
        try:
            (refused,) = self.finish([ending])
        except StudyError:
            self.ledger().check_open(ending.trial)  # that it is closed comes first
            raise
        if refused is not None:
            raise refused from refused.__cause__
        return self._warn_of(ending.trial) if ending.kind == log.TOLD else []

    def _warn_of(self, number: int) -> list[str]:
        """Warn of what was just told or corrected, and say it to the caller."""
        with self._lock:
            ledger = self._ledger
        # Without the lock: results that others add meanwhile come after this one and do no harm.
        found = remarks(ledger, number, 1)
        for message, kind in found:
            self._warn(message, kind)
        return [message for message, _ in found]

    def _warn_of_alarms(self, alarms: Iterable[Alarm]) -> None:
        """Warn once of each that nobody has acknowledged."""
        for alarm in alarms:
            if alarm.alarm >= self._alarms_said:
                self._alarms_said = alarm.alarm + 1
                if not alarm.acknowledged:
                    self._warn(f"alarm {alarm.alarm}: {alarm.text}", AlarmWarning)

    def _write(self, kind: str, data: dict[str, Any]) -> None:
        with self._lock, self._log.writing():
            self._log.write(kind, data)

    def _warn(self, message: str, kind: type[Warning] = LearningWarning) -> None:
        warn_the_caller(message, kind)
