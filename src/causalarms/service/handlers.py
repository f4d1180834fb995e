"""What the operations of the API do. Those that read never wait for learning."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from causalarms.errors import ClosedTrialError
from causalarms.service import records
from causalarms.service.live import EventStream, LogSnapshot, while_connected
from causalarms.service.request import Answer, Call, RefusedError, refuse_token
from causalarms.service.tokens import SESSION_SECONDS
from causalarms.service.views import (
    VERSION,
    best_view,
    setting_view,
    shown_graph,
    study_summary,
    trial_row,
    values_of,
)
from causalarms.study import Study, log
from causalarms.study.inputs import (
    Ending,
    Import,
    as_context,
    as_executed,
    as_intervention,
    as_values,
    checked_rounds,
    executed_row,
    far_context,
    prepare_import,
    remarks,
)
from causalarms.study.ledger import PENDING
from causalarms.study.log import now
from causalarms.study.report import predict

if TYPE_CHECKING:
    from causalarms.service.app import Service


# -- reading ---------------------------------------------------------------------------------------


async def get_study(service: Service, call: Call) -> Answer:
    snapshot = service.snapshot
    at = now().isoformat(timespec="seconds")
    summary = study_summary(service.path.stem, snapshot, service.views, call.caller, at)
    return Answer(summary, unmarked=("now",))


async def get_best(service: Service, call: Call) -> Answer:
    views, settings = service.views, service.snapshot.settings
    known = as_context(call.query["context"] or {}, settings)
    if not known:
        return Answer(views.best)
    work = service.threads.predict(lambda: best_view(views.beliefs.given(known), views.as_of))
    view = await while_connected(call.request.receive, work)
    more = far_context(service.snapshot.ledger, known)
    return Answer(msgspec.structs.replace(view, remarks=[*view.remarks, *more]))


async def get_graph(service: Service, call: Call) -> Answer:
    views, named, levels = service.views, service.snapshot.settings.named, call.query["levels"]
    found = views.graph
    if levels is not None:
        row = as_intervention(levels, named)
        work = service.threads.predict(lambda: setting_view(views.graph, views.beliefs, row))
        found = await while_connected(call.request.receive, work)
    return Answer(shown_graph(found, call.query["above"]))


async def get_effects(service: Service, call: Call) -> Answer:
    _ = service.snapshot
    return Answer(service.views.effects)


async def get_alarms(service: Service, call: Call) -> Answer:
    views = service.views
    return Answer(records.Alarms(views.as_of, views.watches, service.alarms()))


async def get_rewards(service: Service, call: Call) -> Answer:
    seen = service.snapshot.ledger.acknowledged
    whole = service.views.rewards
    marked = [msgspec.structs.replace(a, acknowledged=a.alarm in seen) for a in whole.alarms]
    return Answer(msgspec.structs.replace(whole, alarms=marked))


async def get_checks(service: Service, call: Call) -> Answer:
    _ = service.snapshot
    views = service.views
    newest = msgspec.structs.replace(service.checks, left_out=views.left_out, problem=views.problem)
    return Answer(newest)


async def get_trials(service: Service, call: Call) -> Answer:
    snapshot, query = service.snapshot, call.query
    known, after, limit = snapshot.ledger.trials, query["after"], query["limit"]
    if query["state"] == PENDING:
        found = [known[n] for n in snapshot.ledger.pending if n > after]
    elif query["state"] is not None:
        found = [r for r in known[after + 1 :] if r.state == query["state"]]
    else:
        found = known[after + 1 : after + 2 + limit]
    page = found[:limit]
    return Answer(
        records.Trials(
            [trial_row(snapshot, service.views, record) for record in page],
            page[-1].number if len(found) > limit else None,
            snapshot.number,
        )
    )


async def get_trial(service: Service, call: Call) -> Answer:
    snapshot = service.snapshot
    record = snapshot.ledger.trial(call.number)
    settings, asked = snapshot.settings, record.asked
    row = trial_row(snapshot, service.views, record)
    return Answer(
        records.Trial(
            **{name: getattr(row, name) for name in records.ExecutedTrial.__struct_fields__},
            intervention=dict(zip(settings.named.system_nodes, record.intervention, strict=True)),
            predicted_width=asked.get("width"),
            age_seconds=_age(record.asked_at) if record.state == PENDING else None,
            corrections=[
                records.Correction(
                    event.number,
                    event.at,
                    values_of(snapshot, before),
                    levels,
                    str(event.data.get("reason", "")),
                )
                for event, before, levels in snapshot.corrections.get(record.number, ())
            ],
            notes=[note for note in snapshot.ledger.notes if note.trial == record.number],
            far=service.views.far.get(record.number, []),
        )
    )


async def get_explanation(service: Service, call: Call) -> Answer:
    snapshot = service.snapshot
    work = service.threads.explain(snapshot.ledger, call.number, service.views)
    return Answer(await while_connected(call.request.receive, work))


async def get_events(service: Service, call: Call) -> Answer | Response:
    snapshot = service.snapshot
    if "text/event-stream" in call.request.headers.get("accept", ""):
        service.viewers.check_room()
        last = call.request.headers.get("last-event-id", "")
        # Anything else than a number of ours is a client that has seen nothing.
        seen = int(last) if last.isascii() and last.isdecimal() and len(last) < 19 else None
        return EventStream(service.viewers.messages(snapshot.first_hash, seen, call.credential))
    after, limit = call.query["after"], call.query["limit"]
    found = await service.follower.entries(after, limit + 1)
    # The store may hold newer events than the snapshot that gives `head`.
    found = [entry for entry in found if entry.number <= snapshot.number]  # of one snapshot
    page = found[:limit]
    rest = {
        "next": page[-1].number if len(found) > limit else None,
        "head": snapshot.number,
        "head_hash": snapshot.hash,
        "first_hash": snapshot.first_hash,
    }
    # the stored text unchanged, so that the client can check its hash
    items = ",".join(f'{{"hash":"{e.hash.hex()}",{e.text[1:]}' for e in page)
    text = f'{{"events":[{items}],{msgspec.json.encode(rest).decode()[1:]}'
    return Response(text, media_type="application/json")


async def get_notes(service: Service, call: Call) -> Answer:
    after, limit = call.query["after"], call.query["limit"]
    found = [note for note in service.snapshot.ledger.notes if note.event > after]
    page = found[:limit]
    following = page[-1].event if len(found) > limit else None
    return Answer(records.Notes(page, following, service.snapshot.number))


async def post_predictions(service: Service, call: Call) -> Answer:
    views, named = service.views, service.snapshot.settings.named
    rows = [as_intervention(levels, named) for levels in call.body.interventions]
    known = as_context(call.body.context or {}, service.snapshot.settings)
    work = service.threads.predict(lambda: predict(views.beliefs.given(known), rows))
    found = await while_connected(call.request.receive, work)
    return Answer(records.Predictions(views.as_of, found))


async def get_health(service: Service, call: Call) -> Answer:
    trouble = service.follower.trouble
    answer = records.Health(trouble is None, service.follower.snapshot.number, VERSION)
    return Answer(answer, 200 if answer.ok else 503)


# -- writing: the answer comes when the event is on the disk and can be read -----------------------


async def ask(service: Service, call: Call) -> Answer:
    request: records.AskRequest = call.body
    # Without this, a worker's token could take the pending trials of another worker.
    refuse_other_worker(call, request.worker, f"ask as {request.worker!r:.80}")
    context = as_context(request.context or {}, service.snapshot.settings)
    trials, number = await service.threads.ask(request.n, request.worker, context)
    await service.reach(number)
    known = service.snapshot.ledger.trials
    asked = [
        records.AskedTrial(**msgspec.structs.asdict(trial), asked_at=known[trial.number].asked_at)
        for trial in trials
    ]
    alarms = [alarm for alarm in service.alarms() if not alarm.acknowledged]
    return Answer(records.Asked(asked, alarms, number))


async def put_result(service: Service, call: Call) -> Answer:
    """201; the same result again 200; another one 409."""
    result: records.Result = call.body
    number = call.number
    record = service.snapshot.ledger.trial(number)
    refuse_other_worker(call, record.worker, f"close trial {number}, which is of {record.worker!r}")
    _check_form(result)

    settings = service.snapshot.settings
    ending = Ending(result.state, number, result.values, result.executed, result.reason)
    # Before it joins those of other requests, for which an error of this one would be an error too.
    checked = ending.checked(settings)
    try:
        written = await service.threads.finish(checked)
    except ClosedTrialError:
        # A client that lost the answer sends the same result again: that is not a conflict.
        closed = await service.threads.write(lambda study: study.seen)
        await service.reach(closed.number)
        if not _is_the_same_result(service.snapshot, number, result):
            raise
        return await _done(service, closed.number, number, result.state, repeated=True)
    return await _done(service, written.number, number, result.state, written.found)


async def correct(service: Service, call: Call) -> Answer:
    request: records.CorrectionRequest = call.body

    def act(study: Study) -> list[str]:
        return study.correct(
            call.number, request.values, request.reason, request.executed, key=call.key
        )

    return await _once(service, call, act, call.number, "corrected")


async def add_note(service: Service, call: Call) -> Answer:
    request: records.NoteRequest = call.body

    def act(study: Study) -> list[str]:
        study.note(request.text, request.trial, key=call.key)
        return []

    return await _once(service, call, act, request.trial, "noted")


async def import_rounds(service: Service, call: Call) -> Answer:
    """Checking many rounds takes long, so the thread that tells does not do it."""
    request: records.RoundsRequest = call.body
    settings = service.snapshot.settings

    def prepare() -> Import:
        levels = [past.levels for past in request.rounds]
        values = [past.values for past in request.rounds]
        rounds = checked_rounds(settings, levels, values, first_row=1)
        return prepare_import(rounds, request.source, call.key)

    # Up to 20 MB of rounds are checked before the thread that tells is asked for its turn.
    prepared = await service.threads.run_in_background(prepare)
    written = await service.threads.write(lambda study: study.write_import(prepared))
    await service.reach(written.number)
    first, said = written.found, list[str]()
    if first is not None:  # None: written before
        ledger = service.snapshot.ledger
        found = await service.threads.run_in_background(
            lambda: remarks(ledger, first, prepared.n_rounds)
        )
        said = [message for message, _ in found]
    return await _done(service, written.number, None, "imported", said, repeated=first is None)


async def acknowledge(service: Service, call: Call) -> Answer:
    request: records.AcknowledgementRequest = call.body
    # The thread that tells must not learn, so it is told how many alarms there are.
    known = len(service.alarms())

    def act(study: Study) -> bool:
        noted = study.ledger().acknowledged
        if noted.get(call.number) == request.note:
            return True
        study.acknowledge(call.number, request.note, known=known)
        return False

    written = await service.threads.write(act)
    return await _done(service, written.number, None, "acknowledged", repeated=written.found)


# -- sessions of the page --------------------------------------------------------------------------


async def begin_session(service: Service, call: Call) -> Answer | Response:
    token = service.tokens.find(call.body.token)
    if token is None:
        raise refuse_token("the token is not known to this study")
    # Writing the file may wait for the lock of a command: not on the event loop.
    session = await asyncio.to_thread(service.tokens.begin_session, token, service.cookie)
    answer = _answer(records.Caller(token.role, token.name, True))
    answer.set_cookie(
        service.cookie,
        session,
        max_age=SESSION_SECONDS,
        path=service.root_path + "/",
        # Not always True: a browser would drop the cookie on plain http.
        secure=_is_secure(call.request),
        httponly=True,
        samesite="strict",
    )
    return answer


async def end_session(service: Service, call: Call) -> Answer | Response:
    session = call.request.cookies.get(service.cookie, "")
    await asyncio.to_thread(service.tokens.end_session, session, service.cookie)
    answer = _answer(call.caller)
    answer.delete_cookie(
        service.cookie, path=service.root_path + "/", httponly=True, samesite="strict"
    )
    return answer


def _answer(caller: records.Caller) -> Response:
    return Response(msgspec.json.encode(caller), media_type="application/json")


def _is_secure(request: Request) -> bool:
    """Whether the browser speaks TLS, to the service or to a proxy before it."""
    origin = request.headers.get("origin", "")
    return request.url.scheme == "https" or origin.startswith("https://")


# -- what they share -------------------------------------------------------------------------------


def refuse_other_worker(call: Call, worker: str, what: str) -> None:
    if call.caller.role == "worker" and worker != call.caller.name:
        raise RefusedError(
            403, "other-worker", "The token is of another worker",
            f"this token is of worker {call.caller.name!r} and cannot {what}",
        )  # fmt: skip


async def _once(
    service: Service, call: Call, act: Callable[[Study], list[str]], trial: int | None, state: str
) -> Answer:
    """Write once per key; the answer says whether it had been written before."""
    key = call.key
    assert key is not None

    def keyed(study: Study) -> tuple[list[str], bool]:
        before = study.seen
        said = act(study)
        # An event that is older than this request was written by an earlier one.
        return said, study.event_of(key) <= before

    (said, repeated), number = await service.threads.write(keyed)
    return await _done(service, number, trial, state, said, repeated=repeated)


async def _done(
    service: Service,
    number: int,
    trial: int | None,
    state: str,
    said: Sequence[str] = (),
    *,
    repeated: bool = False,
) -> Answer:
    await service.reach(number)
    done = records.Done(trial, state, number, list(said), repeated)
    return Answer(done, 200 if repeated else 201)


def _check_form(result: records.Result) -> None:
    has_values = result.state == log.TOLD
    if has_values != (result.values is not None):
        problem = "needs values" if has_values else "must have no values"
        detail = f"a result with the state {result.state!r} {problem}"
    elif not has_values and result.executed is not None:
        detail = f"a result with the state {result.state!r} must not say what was executed"
    elif has_values and result.reason:
        detail = "a reason is for failed and abandoned trials: write a note instead"
    else:
        return
    raise RefusedError(422, "wrong-body", "The body is not what is expected", detail)


def _is_the_same_result(snapshot: LogSnapshot, number: int, result: records.Result) -> bool:
    """Whether the trial was closed by this result, whatever was corrected since."""
    record = snapshot.ledger.trial(number)
    # The ledger holds the last correction; what was told is what the first one replaced.
    for correction in snapshot.corrections.get(number, ())[:1]:
        record = correction.before
    if not record.asked or record.state != result.state:
        return False
    if result.state != log.TOLD:
        return record.reason == result.reason
    executed = record.asked_intervention
    named = snapshot.settings.named
    if (levels := as_executed(result.executed, named)) is not None:
        executed = executed_row(record, levels, named)
    values = tuple(as_values(result.values, snapshot.settings.nodes))
    return values == record.values and executed == record.intervention


def _age(at: str) -> float | None:
    try:
        # Clocks of machines differ: an age is never negative.
        return max(0.0, (now() - datetime.fromisoformat(at)).total_seconds())
    except (ValueError, TypeError):
        return None
