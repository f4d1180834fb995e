"""Operations that write. The answer comes when the event is on the disk and can be read."""

from __future__ import annotations

from typing import Any

from causalarms.errors import ClosedTrialError, NodeValueError, StudyError
from causalarms.service import shapes
from causalarms.service.desk import Written
from causalarms.service.operation import Answer, Call
from causalarms.service.problems import RefusedError
from causalarms.service.service import Service
from causalarms.study import Study, log
from causalarms.study.inputs import (
    Import,
    PastRounds,
    as_intervention,
    as_values,
    prepare_import,
    remarks,
    told,
    without_result,
)
from causalarms.study.ledger import Record
from causalarms.study.log import decode
from causalarms.study.settings import Settings


async def ask(service: Service, call: Call) -> Answer:
    request: shapes.AskRequest = call.body
    refuse_other_name(call, request.worker, f"ask as {request.worker!r:.80}")
    trials, number = await service.desk.ask(request.n, request.worker)
    await service.reach(number)
    records = service.moment.ledger.trials
    return Answer(
        shapes.Asked(
            [
                shapes.AskedTrial(
                    trial=t.number,
                    worker=t.worker,
                    levels=t.levels,
                    switch=t.switch,
                    intervention=t.intervention,
                    reason=t.reason,
                    why=str(records[t.number].asked.get("why", "")),
                    predicted=t.predicted,
                    asked_at=records[t.number].asked_at,
                )
                for t in trials
            ],
            number,
        )
    )


async def put_result(service: Service, call: Call) -> Answer:
    """201; the same again 200; another one 409."""
    result: shapes.Result = call.body
    number = call.number
    record = service.moment.ledger.trial(number)
    refuse_other_name(call, record.worker, f"close trial {number}, which is of {record.worker!r}")
    _check_form(result)

    settings = service.moment.settings
    if result.values is None:
        ending = without_result(result.state, number, result.reason)
    else:
        ending = told(settings, number, result.values, result.played)
    try:
        written = await service.desk.finish(ending)
    except ClosedTrialError:
        before = await service.desk.write(lambda study: _said_before(study, number, result))
        if not before.found:
            raise
        return await _done(service, before, number, result.state, repeated=True)
    return await _done(service, written, number, result.state, repeated=False)


async def correct(service: Service, call: Call) -> Answer:
    request: shapes.CorrectionRequest = call.body

    def act(study: Study) -> None:
        study.correct(call.number, request.values, request.reason, request.played, key=call.key)

    return await _once(service, call, act, call.number, "corrected")


async def note(service: Service, call: Call) -> Answer:
    request: shapes.NoteRequest = call.body

    def act(study: Study) -> None:
        study.note(request.text, request.trial, key=call.key)

    return await _once(service, call, act, request.trial, "noted")


async def add_observations(service: Service, call: Call) -> Answer:
    """What takes long is done by a thread that nobody waits for who tells."""
    request: shapes.ObservationsRequest = call.body
    settings = service.moment.settings

    def prepare() -> Import:
        return prepare_import(_rounds(request.observations, settings), request.source, call.key)

    prepared = await service.desk.think(prepare)
    written = await service.desk.write(lambda study: study.write_import(prepared))
    await service.reach(written.number)
    first, said = written.found, list[str]()
    if first is not None:
        ledger = service.moment.ledger
        found = await service.desk.think(lambda: remarks(ledger, first, prepared.n_rounds))
        said = [message for message, _ in found]
    done = shapes.Done(None, "imported", written.number, said, first is None)
    return Answer(done, 200 if first is None else 201)


async def acknowledge(service: Service, call: Call) -> Answer:
    request: shapes.AcknowledgementRequest = call.body
    known = len(service.alarms())

    def act(study: Study) -> bool:
        noted = study.ledger().acknowledged
        if noted.get(call.number) == request.note:
            return True
        study.acknowledge(call.number, request.note, known=known)
        return False

    written = await service.desk.write(act)
    return await _done(service, written, None, "acknowledged", repeated=written.found)


def refuse_other_name(call: Call, worker: str, what: str) -> None:
    if call.caller.role == "worker" and worker != call.caller.name:
        raise RefusedError(
            403, "other-worker", "The token is of another worker",
            f"this token is of worker {call.caller.name!r} and cannot {what}",
        )  # fmt: skip


async def _once(service: Service, call: Call, act: Any, trial: int | None, state: str) -> Answer:
    """Done, or done before under the same key."""
    key = call.key
    assert key is not None

    def keyed(study: Study) -> bool:
        before = study.seen
        act(study)
        return study.event_of(key) <= before

    written = await service.desk.write(keyed)
    return await _done(service, written, trial, state, repeated=written.found)


async def _done(
    service: Service, written: Written[Any], trial: int | None, state: str, *, repeated: bool
) -> Answer:
    await service.reach(written.number)
    done = shapes.Done(trial, state, written.number, written.warnings, repeated)
    return Answer(done, 200 if repeated else 201)


def _rounds(given: list[shapes.Observation], settings: Settings) -> PastRounds:
    """Checked; the error names the row, counted from 1."""
    rounds = PastRounds([], [])
    known: dict[frozenset[tuple[str, shapes.Level]], list[int]] = {}  # few levels, many rows
    for row, observation in enumerate(given, start=1):
        levels = frozenset(observation.levels.items())
        try:
            rounds.values.append(as_values(observation.values, settings.nodes))
            if levels not in known:
                known[levels] = as_intervention(observation.levels, settings.named)
        except NodeValueError as error:
            raise NodeValueError(f"row {row}: {error}", error.node) from None
        except StudyError as error:
            raise StudyError(f"row {row}: {error}") from None
        rounds.interventions.append(known[levels])
    return rounds


def _check_form(result: shapes.Result) -> None:
    told = result.state == log.TOLD
    if told != (result.values is not None):
        words = "a told result needs values" if told else f"{result.state} goes without values"
        raise RefusedError(422, "wrong-body", "The body is not what is expected", words)
    if not told and result.played is not None:
        raise RefusedError(
            422, "wrong-body", "The body is not what is expected", "played goes with values"
        )
    if told and result.reason:
        raise RefusedError(
            422, "wrong-body", "The body is not what is expected",
            "a reason is for failed and abandoned trials; write a note",
        )  # fmt: skip


def _said_before(study: Study, number: int, result: shapes.Result) -> bool:
    """Whether the trial was closed by just this result, whatever was corrected since."""
    record = study.ledger().trial(number)
    if not record.asked:
        return False
    kind, values, reason, bits = record.state, record.values, record.reason, record.intervention
    if record.corrected:
        data = _told(study, record)
        kind, values = log.TOLD, tuple(data["values"])
        bits = tuple(data.get("played", record.asked_intervention))
    if kind != result.state:
        return False
    if result.state != log.TOLD:
        return reason == result.reason
    named, nodes = study.settings.named, study.nodes
    played = record.asked_intervention
    if result.played is not None:
        played = tuple(as_intervention(result.played, named))
    return tuple(as_values(result.values, nodes)) == values and played == bits


def _told(study: Study, record: Record) -> dict[str, Any]:
    for entry in study.store.entries():
        if f'"trial":{record.number}' in entry.text:
            event = decode(entry.text, entry.number)
            if event.kind == log.TOLD and event.data["trial"] == record.number:
                return event.data
    raise AssertionError("a corrected trial was told")
