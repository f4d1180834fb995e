"""`RemoteStudy`: a study that `causalarms serve` serves, used like a `Study`."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NoReturn

import numpy as np

from causalarms.errors import ClosedTrialError, RemoteStudyError, StudyError, TooEarlyError
from causalarms.graphs.graph import Graph
from causalarms.policies.stopping import StopRule
from causalarms.service.wire import Reply, Wire
from causalarms.study.explain import rounds_known
from causalarms.study.inputs import Ending, PastRounds, as_intervention, as_values
from causalarms.study.ledger import AskRequest, Trial
from causalarms.study.log import Event, encode
from causalarms.study.reader import trial_number
from causalarms.study.report import Best
from causalarms.study.store import Entry, Store
from causalarms.study.study import DEFAULT_WORKER, Study
from causalarms.study.suspects import SuspectValue

PATIENCE = 30.0  # seconds to wait for a service that is being restarted
POLL_SECONDS = 0.02
EVENTS_PER_REQUEST = 1000
TRIALS_PER_ANSWER = 100  # new ones: choosing more may take longer than an answer may take
NAN = float("nan")


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
        first = self._wire.send("GET", "/study", patience=0.0).body
        if "learned_head" not in first:
            raise RemoteStudyError(
                f"{self.url} is not a causalarms service of a version that this client knows "
                f"(its version: {first.get('version', 'unknown')!r:.40})"
            )
        is_worker = first["caller"]["role"] == "worker"
        self.caller_name = str(first["caller"]["name"]) if is_worker else ""

    @classmethod
    def create(cls, *arguments: Any, **named: Any) -> NoReturn:
        raise RemoteStudyError("studies are created where their file is: Study.create")

    @classmethod
    def open(cls, *arguments: Any, **named: Any) -> NoReturn:
        raise RemoteStudyError("a served study is RemoteStudy(url, token)")

    @classmethod
    def import_from(cls, *arguments: Any, **named: Any) -> NoReturn:
        raise RemoteStudyError("studies are restored where their file is: Study.import_from")

    def ask(self, n: int = 1, worker: str = DEFAULT_WORKER) -> Any:
        if worker == DEFAULT_WORKER and self.caller_name:
            # A worker's token asks under its own name only.
            worker = self.caller_name
        n = AskRequest(worker, n).n
        # Pending trials come first, so each request asks for a larger total, not for more on top.
        for count in [*range(TRIALS_PER_ANSWER, n, TRIALS_PER_ANSWER), n]:
            given = self._wire.send("POST", "/trials", {"worker": worker, "n": count}).body
        trials = [
            Trial(
                t["trial"], t["intervention"], t["worker"], t["reason"], t["predicted"],
                t["levels"], t["switch"],
            )
            for t in given["trials"]
        ]  # fmt: skip
        return trials[0] if n == 1 else trials

    def ask_for(self, wanted: Mapping[str, int]) -> dict[str, list[Trial]]:
        given = {worker: self.ask(n, worker) for worker, n in wanted.items()}
        return {w: found if isinstance(found, list) else [found] for w, found in given.items()}

    def finish(self, endings: Sequence[Ending]) -> list[StudyError | None]:
        return [self._refused(ending) for ending in endings]

    def add_rounds(self, rounds: PastRounds, source: str = "", *, key: str | None = None) -> int:
        levels = cache(self.settings.named.levels)  # few settings, many rounds
        body = {
            "observations": [
                {
                    "values": dict(zip(self.nodes, values, strict=True)),
                    "levels": levels(tuple(bits)),
                }
                for bits, values in zip(rounds.interventions, rounds.values, strict=True)
            ],
            "source": source,
        }
        done = self._wire.send("POST", "/observations", body, key=_key(key)).body
        for message in done["warnings"]:
            self._warn(message)
        return len(rounds.values)

    def correct(
        self,
        trial: Trial | int,
        values: Any,
        reason: str = "",
        played: Any = None,
        *,
        key: str | None = None,
    ) -> None:
        number = trial_number(trial)
        if values is None and played is not None:
            raise StudyError("played goes with values: a withdrawn result has neither")
        body: dict[str, Any] = {"values": None} if values is None else self._result(values, played)
        path = f"/trials/{_checked(number)}/corrections"
        done = self._wire.send("POST", path, body | {"reason": reason}, key=_key(key))
        self._warn_if(done, number)

    def change_settings(self, **changes: Any) -> NoReturn:
        raise RemoteStudyError("settings are changed where the study's file is")

    def note(self, text: str, trial: Trial | int | None = None, *, key: str | None = None) -> None:
        body: dict[str, Any] = {"text": text}
        if trial is not None:
            body["trial"] = trial_number(trial)
        self._wire.send("POST", "/notes", body, key=_key(key))

    def acknowledge(self, alarm: int, note: str = "", *, known: int | None = None) -> None:
        self._fresh("/alarms")
        self._wire.send("PUT", f"/alarms/{_checked(alarm)}/acknowledgement", {"note": note})

    def best(self) -> Best:
        found = self._fresh("/best")
        if found["found"] is None:
            raise TooEarlyError(found["why"])
        numbers = ("reward", "low", "high", "cost", "probability", "expected_loss")
        known: dict[str, Any] = {name: _number(found[name]) for name in numbers}
        return Best(**known, **found["found"], basis=found["basis"])

    def should_stop(self, rule: StopRule) -> bool:
        if rule.tolerance:
            # The service knows no tolerance, so this is learned here from the log.
            return super().should_stop(rule)
        found = self.best()
        return rule.holds(found.expected_loss, found.probability)

    def predict(self, interventions: Any = None) -> list[dict[str, Any]]:
        rows = [[]] if interventions is None else interventions
        if isinstance(rows, Mapping) or (rows and isinstance(rows[0], str | int)):
            rows = [rows]
        named = self.settings.named
        levels = [named.levels(as_intervention(row, named)) for row in rows]
        if not levels:
            return []
        self._fresh("/best")
        found = self._wire.send("POST", "/predictions", {"interventions": levels}).body
        predictions: list[dict[str, Any]] = [
            {
                "intervention": p["intervention"],
                "levels": p["levels"],
                "expected": {
                    node: {name: _number(x) for name, x in numbers.items()}
                    for node, numbers in p["expected"].items()
                },
            }
            for p in found["predictions"]
        ]
        return predictions

    def graph(self) -> Graph:
        found = self._fresh("/graph", "?above=0")
        if found["why"]:
            raise TooEarlyError(found["why"])
        return _graph(found)

    def alarms(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._fresh("/alarms")["alarms"]
        return found

    def left_out(self) -> list[SuspectValue]:
        found = self._fresh("/checks")["left_out"]
        return [SuspectValue(out["trial"], out["node"], out["value"]) for out in found]

    @property
    def problem(self) -> str | None:
        return self._fresh("/checks")["problem"] or None

    @property
    def watches(self) -> bool:
        return bool(self._fresh("/alarms")["watches"])

    @property
    def weighs_graphs(self) -> bool:
        return bool(self._fresh("/graph")["weighs_graphs"])

    def explain(self, trial: Trial | int) -> dict[str, Any]:
        number = trial_number(trial)
        rounds_known(self.ledger(), number)  # says what is wrong with the number
        found: dict[str, Any] = self._wire.get(f"/trials/{number}/explanation")
        if "expected" in found:
            found = {"edges": [], "mechanisms": []} | found
        return found

    def _refused(self, ending: Ending) -> StudyError | None:
        try:
            self._finish(ending)
        except StudyError as error:
            return error
        return None

    def _finish(self, ending: Ending) -> None:
        body: dict[str, Any] = {"state": ending.kind}
        if ending.values is None:
            body["reason"] = ending.reason
        else:
            body |= self._result(ending.values, ending.played)
        self._warn_if(self._put(ending.trial, body), ending.trial)

    def _warn_if(self, done: Reply, number: int) -> None:
        if done.body["warnings"]:
            self._refresh()
            self._warn_of(number)

    def _put(self, number: int, body: dict[str, Any]) -> Reply:
        reply: Reply = self._wire.send("PUT", f"/trials/{_checked(number)}/result", body)
        # 200 means "told before". If an earlier request of ours got no answer, that was us.
        if reply.status == 200 and not reply.tried_before:
            raise ClosedTrialError(
                f"trial {number} is not pending: it was {body['state']} already",
                number,
                body["state"],
            )
        return reply

    def _result(self, values: Any, played: Any) -> dict[str, Any]:
        plain = as_values(values, self.nodes)
        body: dict[str, Any] = {"values": dict(zip(self.nodes, plain, strict=True))}
        if played is not None:
            named = self.settings.named
            body["played"] = named.levels(as_intervention(played, named))
        return body

    def _fresh(self, path: str, query: str = "") -> dict[str, Any]:
        """An answer that includes everything told so far; the service computes it."""
        needed = self._wire.get("/study")["learned_head"]
        while True:
            found: dict[str, Any] = self._wire.get(path + query)
            # The service computes views after it answered the tell, so the answer may be older.
            if found["as_of"] >= needed:
                return found
            time.sleep(POLL_SECONDS)


class RemoteStore(Store):
    """The log of a served study, checked here hash by hash.

    Asking for the newest event also fetches what is new, so that following takes one request.
    """

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire.url)
        self._wire = wire
        self._known = 0  # the newest event that was handed out
        self._page: tuple[int, dict[str, Any]] | None = None  # asked for after which event

    def head(self) -> tuple[int, bytes]:
        with self.lock:
            # One event back: `Log` checks that the last known event is still the same.
            after = max(self._known - 1, 0)
            page = self._fetch(after, EVENTS_PER_REQUEST)
            self._page = (after, page)
            try:
                return int(page["head"]), bytes.fromhex(page["head_hash"])
            except (KeyError, ValueError, TypeError) as error:
                raise _unexpected(self._wire, error) from error

    def entries(self, after: int = 0, limit: int = -1) -> list[Entry]:
        with self.lock:
            found: list[Entry] = []
            kept = self._page
            page = kept[1] if kept and kept[0] == after else self._fetch(after, EVENTS_PER_REQUEST)
            self._page = None
            try:
                while True:
                    found += [_entry(record) for record in page["events"]]
                    if page["next"] is None or 0 <= limit <= len(found):
                        break
                    page = self._fetch(int(page["next"]), EVENTS_PER_REQUEST)
            except (KeyError, ValueError, TypeError) as error:
                raise _unexpected(self._wire, error) from error
            if found:
                self._known = max(self._known, found[-1].number)
            return found if limit < 0 else found[:limit]

    def begin(self) -> None:
        raise RemoteStudyError("only the service itself writes to the log")

    def close(self) -> None:
        self._wire.close()

    def _fetch(self, after: int, limit: int) -> dict[str, Any]:
        page: dict[str, Any] = self._wire.get(f"/events?after={after}&limit={limit}")
        return page


def _entry(record: dict[str, Any]) -> Entry:
    event = Event(record["number"], record["kind"], record["at"], record["data"])
    return Entry(event.number, encode(event), bytes.fromhex(record["hash"]))


def _unexpected(wire: Wire, error: Exception) -> RemoteStudyError:
    return RemoteStudyError(
        f"{wire.url} answers in another way than expected ({error!r:.80}): its causalarms may be "
        "of another version"
    )


def _checked(number: int) -> int:
    if number < 0:
        raise StudyError(f"there is no trial or alarm {number}")
    return number


def _key(given: str | None) -> str:
    return str(uuid.uuid4()) if given is None else given


def _number(given: float | None) -> float:
    return NAN if given is None else float(given)


def _graph(found: dict[str, Any]) -> Graph:
    nodes = tuple(node["name"] for node in found["nodes"])
    place = {node: i for i, node in enumerate(nodes)}
    shape = (len(found["regimes"]), len(nodes), len(nodes))
    adjacency, weights = np.zeros(shape, dtype=bool), np.zeros(shape)
    probability, error = np.zeros(shape), np.full(shape, NAN)
    for edge in found["edges"]:
        at = (edge["regime"], place[edge["parent"]], place[edge["child"]])
        probability[at] = _number(edge["probability"])
        if edge["likely"]:
            adjacency[at] = True
            weights[at], error[at] = _number(edge["weight"]), _number(edge["standard_error"])
    known = np.zeros(shape[:2], dtype=bool)
    for i, node in enumerate(found["nodes"]):
        known[: len(node["known"]), i] = node["known"]
    return Graph(
        nodes,
        adjacency,
        weights,
        known,
        None if found["order"] is None else tuple(found["order"]),
        {"probability": probability, "standard_error": error},
        regimes=np.array([len(node["known"]) for node in found["nodes"]], dtype=np.int64),
        regime_names=tuple(found["regimes"]),
    )
