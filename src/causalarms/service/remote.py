"""`RemoteStudy`: a study that `causalarms serve` serves, used like a `Study`."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlencode

import msgspec
import numpy as np

from causalarms.errors import (
    ClosedTrialError,
    RemoteStudyError,
    StudyBusyError,
    StudyError,
    TooEarlyError,
)
from causalarms.graphs.graph import Graph
from causalarms.policies.stopping import StopRule
from causalarms.service import records
from causalarms.service.wire import Wire
from causalarms.study.explain import rounds_known
from causalarms.study.inputs import (
    Ending,
    PastRounds,
    Values,
    as_context,
    as_intervention,
    as_interventions,
    prepare_correction,
)
from causalarms.study.ledger import TrialRequest
from causalarms.study.log import Event, encode
from causalarms.study.reader import trial_number
from causalarms.study.records import Alarm, Best, Certainty, Explanation, SuspectValue, Trial
from causalarms.study.store import Entry, Store
from causalarms.study.study import DEFAULT_WORKER, Study

PATIENCE = 30.0  # seconds to wait for a service that is being restarted
POLL_SECONDS = 0.02
VIEW_SECONDS = 600.0  # to learn what was told; the first look at a long log takes minutes
EVENTS_PER_REQUEST = 1000
TRIALS_PER_ANSWER = 100  # new ones: choosing more may take longer than an answer may take
View = TypeVar("View", records.Best, records.Graph, records.Effects, records.Alarms, records.Checks)


class RemoteStudy(Study):
    """The methods and answers of `Study`; results are on the disk over there when they return.

    `url` is the address that `causalarms serve` prints, and `token` one that `causalarms
    serve-token` made, if the study needs one. A call whose answer was lost is made again, for
    `patience` seconds, without being done twice.
    """

    def __init__(self, url: str, token: str | None = None, *, patience: float = PATIENCE) -> None:
        self._wire = Wire(url, token, patience)
        self.url = url
        try:
            self._check()
            super().__init__(RemoteStore(self._wire))
            self._refresh()
        except BaseException:
            self._wire.close()
            raise

    def _check(self) -> None:
        caller = self._wire.send("GET", "/study", records.StudySummary, patience=0.0).body.caller
        self.caller_name = caller.name if caller.role == "worker" else ""

    @classmethod
    def create(cls, *arguments: Any, **named: Any) -> NoReturn:
        raise RemoteStudyError("studies are created where their file is: Study.create")

    @classmethod
    def open(cls, *arguments: Any, **named: Any) -> NoReturn:
        raise RemoteStudyError("a served study is RemoteStudy(url, token)")

    @classmethod
    def import_from(cls, *arguments: Any, **named: Any) -> NoReturn:
        raise RemoteStudyError("studies are restored where their file is: Study.import_from")

    def ask(
        self,
        n: int = 1,
        worker: str = DEFAULT_WORKER,
        *,
        context: Mapping[str, float] | None = None,
    ) -> Any:
        known = as_context(context or {}, self.settings) or None
        if worker == DEFAULT_WORKER and self.caller_name:
            # A worker's token asks under its own name only.
            worker = self.caller_name
        n = TrialRequest(worker, n).n
        # Pending trials come first, so each request asks for a larger total, not for more on top.
        for count in [*range(TRIALS_PER_ANSWER, n, TRIALS_PER_ANSWER), n]:
            wanted = records.AskRequest(worker, count, known)
            found = self._wire.send("POST", "/trials", _Asked, wanted).body
        trials = found.trials
        self._warn_of_alarms(found.alarms)
        self._warn_of_context(known or {}, trials)
        return trials[0] if n == 1 else trials

    def ask_for(self, wanted: Mapping[str, int]) -> dict[str, list[Trial]]:
        given = {worker: self.ask(n, worker) for worker, n in wanted.items()}
        return {w: found if isinstance(found, list) else [found] for w, found in given.items()}

    def finish(self, endings: Sequence[Ending]) -> list[StudyError | None]:
        return [self._refused(ending) for ending in endings]

    def add_rounds(self, rounds: PastRounds, source: str = "", *, key: str | None = None) -> int:
        levels = cache(self.settings.named.levels)  # few settings, many rounds
        past = [
            records.PastRound(dict(zip(self.nodes, values, strict=True)), levels(tuple(bits)))
            for bits, values in zip(rounds.interventions, rounds.values, strict=True)
        ]
        body = records.RoundsRequest(past, source)
        done = self._wire.send("POST", "/rounds", records.Done, body, key=_key(key)).body
        for message in done.warnings:
            self._warn(message)
        return len(rounds.values)

    def correct(
        self,
        trial: Trial | int,
        values: Any,
        reason: str = "",
        executed: Any = None,
        *,
        key: str | None = None,
    ) -> list[str]:
        number = _checked(trial_number(trial))
        data, levels = prepare_correction(self.ledger(), number, values, executed, reason)
        named = self._by_name(data["values"])
        if named is not None and isinstance(values, Mapping):
            # the service knows what others corrected meanwhile
            named = {node: value for node, value in named.items() if node in values}
        body = records.CorrectionRequest(named, reason, levels)
        path = f"/trials/{number}/corrections"
        return self._warn_if(self._wire.send("POST", path, records.Done, body, key=_key(key)).body)

    def change_settings(self, **changes: Any) -> NoReturn:
        raise RemoteStudyError("settings are changed where the study's file is")

    def note(self, text: str, trial: Trial | int | None = None, *, key: str | None = None) -> None:
        body = records.NoteRequest(text, None if trial is None else trial_number(trial))
        self._wire.send("POST", "/notes", records.Done, body, key=_key(key))

    def acknowledge(self, alarm: int, note: str = "", *, known: int | None = None) -> None:
        self._fresh("/alarms", records.Alarms)
        path = f"/alarms/{_checked(alarm)}/acknowledgement"
        self._wire.send("PUT", path, records.Done, records.AcknowledgementRequest(note))

    def best(self, *, context: Mapping[str, float] | None = None) -> Best:
        today = self._today(context)
        answer = self._fresh(_with_query("/best", context=today), records.Best)
        if answer.found is None:
            raise TooEarlyError(answer.why)
        known = {name: getattr(answer, name) for name in Certainty.__struct_fields__}
        return Best(**known, **msgspec.structs.asdict(answer.found))

    def should_stop(self, rule: StopRule) -> bool:
        if rule.tolerance:
            # The service knows no tolerance, so this is learned here from the log.
            return super().should_stop(rule)
        found = self.best()
        return rule.holds(found.expected_loss, found.probability)

    def predict(
        self, interventions: Any = None, *, context: Mapping[str, float] | None = None
    ) -> list[dict[str, Any]]:
        named = self.settings.named
        levels = [named.levels(row) for row in as_interventions(interventions, named)]
        if not levels:
            return []
        self._fresh("/best", records.Best)
        body = records.PredictionRequest(levels, self._today(context) or None)
        found = self._wire.send("POST", "/predictions", records.Predictions, body).body
        return [prediction.as_dict() for prediction in found.predictions]

    def effects(self) -> list[dict[str, Any]]:
        found = self._fresh("/effects", records.Effects)
        if found.why:
            raise TooEarlyError(found.why)
        return [effect.as_dict() for effect in found.effects]

    def graph(self, levels: Any = None) -> Graph:
        named, setting = self.settings.named, {}
        if levels is not None:
            setting = named.levels(as_intervention(levels, named))
        found = self._fresh(_with_query("/graph", above=0, levels=setting), records.Graph)
        if found.why:
            raise TooEarlyError(found.why)
        return _graph(found)

    def _all_alarms(self) -> list[Alarm]:
        return self._fresh("/alarms", records.Alarms).alarms

    def left_out(self) -> list[SuspectValue]:
        return self._fresh("/checks", records.Checks).left_out

    @property
    def problem(self) -> str | None:
        return self._fresh("/checks", records.Checks).problem or None

    @property
    def watches(self) -> bool:
        return self._fresh("/alarms", records.Alarms).watches

    @property
    def weighs_graphs(self) -> bool:
        return self._fresh("/graph", records.Graph).weighs_graphs

    def explain(self, trial: Trial | int) -> dict[str, Any]:
        number = trial_number(trial)
        rounds_known(self.ledger(), number)  # says what is wrong with the number
        return self._wire.get(f"/trials/{number}/explanation", Explanation).as_dict()

    def _refused(self, ending: Ending) -> StudyError | None:
        try:
            self._finish(ending)
        except StudyError as error:
            return error
        return None

    def _finish(self, ending: Ending) -> list[str]:
        ending = ending.checked(self.settings)
        values = self._by_name(ending.values)
        body = records.Result(ending.kind, values, ending.reason, ending.executed)  # type: ignore[arg-type]
        return self._warn_if(self._put(ending.trial, body))

    def _warn_if(self, done: records.Done) -> list[str]:
        # The answer has the words; which kind of warning they are, the log says.
        if done.warnings and done.trial is not None:
            self._refresh()
            self._warn_of(done.trial)
        return done.warnings

    def _put(self, number: int, body: records.Result) -> records.Done:
        path = f"/trials/{_checked(number)}/result"
        reply = self._wire.send("PUT", path, records.Done, body)
        # 200 means "told before". If an earlier request of ours got no answer, that was us.
        if reply.status == 200 and not reply.tried_before:
            raise ClosedTrialError(
                f"trial {number} is not pending: it was {body.state} already", number, body.state
            )
        return reply.body

    def _by_name(self, values: Values | None) -> records.Values | None:
        """Checked values as the API takes them: node -> value."""
        return None if values is None else dict(zip(self.nodes, values, strict=True))

    def _fresh(self, path: str, answer: type[View]) -> View:
        """An answer that includes everything told so far; the service computes it."""
        needed = self._wire.get("/study", records.StudySummary).learned_head
        until = time.monotonic() + VIEW_SECONDS
        while time.monotonic() < until:
            found = self._wire.get(path, answer)
            # The service computes views after it answered the tell, so the answer may be older.
            if found.as_of >= needed:
                return found
            time.sleep(POLL_SECONDS)
        raise StudyBusyError(
            f"{self.url} has not learned event {needed} within {VIEW_SECONDS:g} s; its log says why"
        )


class _Asked(msgspec.Struct):
    """`records.Asked` as the library returns its trials."""

    trials: list[Trial]
    alarms: list[Alarm]


class RemoteStore(Store):
    """The log of a served study, checked here hash by hash.

    Asking for the newest event also fetches what is new, so that following takes one request.
    """

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire.url)
        self._wire = wire
        self._known = 0  # the newest event that was handed out
        self._page: tuple[int, records.Events] | None = None  # asked for after which event

    def head(self) -> tuple[int, bytes]:
        with self.lock:
            # One event back: `Log` checks that the last known event is still the same.
            after = max(self._known - 1, 0)
            page = self._fetch(after)
            self._page = (after, page)
            return page.head, _digest(page.head_hash)

    def entries(self, after: int = 0, limit: int = -1) -> list[Entry]:
        with self.lock:
            found: list[Entry] = []
            kept = self._page
            page = kept[1] if kept and kept[0] == after else self._fetch(after)
            self._page = None
            while True:
                found += [_entry(event) for event in page.events]
                if page.next is None or 0 <= limit <= len(found):
                    break
                page = self._fetch(page.next)
            if found:
                self._known = max(self._known, found[-1].number)
            return found if limit < 0 else found[:limit]

    def begin(self) -> None:
        raise RemoteStudyError("only the service itself writes to the log")

    def close(self) -> None:
        self._wire.close()

    def _fetch(self, after: int) -> records.Events:
        path = f"/events?after={after}&limit={EVENTS_PER_REQUEST}"
        return self._wire.get(path, records.Events)


def _entry(given: records.Event) -> Entry:
    event = Event(given.number, given.kind, given.at, given.data)
    return Entry(event.number, encode(event), _digest(given.hash))


def _digest(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise RemoteStudyError(f"the service sent {text!r:.80}, which is not a hash") from None


def _checked(number: int) -> int:
    if number < 0:
        raise StudyError(f"there is no trial or alarm {number}")
    return number


def _with_query(path: str, **given: Any) -> str:
    """The path with those of the parameters that are not empty, objects as JSON."""
    texts = {
        name: msgspec.json.encode(value).decode() for name, value in given.items() if value != {}
    }
    return f"{path}?{urlencode(texts)}" if texts else path


def _key(given: str | None) -> str:
    return str(uuid.uuid4()) if given is None else given


def _graph(found: records.Graph) -> Graph:
    nodes = tuple(node.name for node in found.nodes)
    place = {node: i for i, node in enumerate(nodes)}
    shape = (len(found.regimes), len(nodes), len(nodes))
    adjacency, weights = np.zeros(shape, dtype=bool), np.zeros(shape)
    probability, error = np.zeros(shape), np.full(shape, np.nan)
    effect = np.zeros(shape)
    for edge in found.edges:
        at = (edge.regime, place[edge.parent], place[edge.child])
        probability[at] = edge.probability
        if edge.likely:
            adjacency[at], effect[at] = True, edge.reward_effect
            weights[at], error[at] = edge.weight, edge.standard_error
    known = np.zeros(shape[:2], dtype=bool)
    for i, node in enumerate(found.nodes):
        known[: len(node.known), i] = node.known
    return Graph(
        nodes,
        adjacency,
        weights,
        known,
        None if found.order is None else tuple(found.order),
        {"probability": probability, "standard_error": error, "reward_effect": effect},
        regimes=np.array([len(node.known) for node in found.nodes], dtype=np.int64),
        regime_names=tuple(found.regimes),
        factors=tuple(node.name for node in found.nodes if node.kind == "factor"),
        context=tuple(node.name for node in found.nodes if node.kind == "context"),
    )
