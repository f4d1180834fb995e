"""Operations that look. None of them waits for learning."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from starlette.responses import Response

from causalarms.service import shapes
from causalarms.service.leaving import while_connected
from causalarms.service.live import EventStream
from causalarms.service.operation import Answer, Call
from causalarms.service.service import Service
from causalarms.service.summaries import (
    VERSION,
    far_value,
    study_summary,
    trial_row,
    values_of,
)
from causalarms.study.inputs import as_intervention
from causalarms.study.ledger import PENDING
from causalarms.study.report import predict

MOST = 1000  # trials or events in one answer


async def study(service: Service, call: Call) -> Answer:
    moment = service.moment
    name, now = service.path.stem, _now().isoformat(timespec="seconds")
    summary = study_summary(name, moment, service.views, call.caller, now)
    return Answer(summary, unmarked=("now",))


async def best(service: Service, call: Call) -> Answer:
    _ = service.moment
    return Answer(service.views.best)


async def graph(service: Service, call: Call) -> Answer:
    _ = service.moment
    whole, above = service.views.graph, call.query["above"]
    shown = [e for e in whole.edges if e.likely or (e.probability or 0.0) >= above]
    return Answer(msgspec.structs.replace(whole, edges=shown))


async def alarms(service: Service, call: Call) -> Answer:
    views = service.views
    return Answer(shapes.Alarms(views.as_of, views.watches, service.alarms()))


async def rewards(service: Service, call: Call) -> Answer:
    seen = service.moment.ledger.acknowledged
    whole = service.views.rewards
    marked = [msgspec.structs.replace(a, acknowledged=a.alarm in seen) for a in whole.alarms]
    return Answer(msgspec.structs.replace(whole, alarms=marked))


async def checks(service: Service, call: Call) -> Answer:
    _ = service.moment
    views = service.views
    newest = msgspec.structs.replace(service.checks, left_out=views.left_out, problem=views.problem)
    return Answer(newest)


async def trials(service: Service, call: Call) -> Answer:
    moment, query = service.moment, call.query
    records, after, limit = moment.ledger.trials, query["after"], query["limit"]
    if query["state"] == PENDING:
        found = [records[n] for n in moment.ledger.pending if n > after]
    elif query["state"] is not None:
        found = [r for r in records[after + 1 :] if r.state == query["state"]]
    else:
        found = records[after + 1 : after + 2 + limit]
    page = found[:limit]
    return Answer(
        shapes.Trials(
            [trial_row(moment, service.views, record) for record in page],
            page[-1].number if len(found) > limit else None,
            moment.number,
        )
    )


async def trial(service: Service, call: Call) -> Answer:
    moment = service.moment
    record = moment.ledger.trial(call.number)
    settings, asked = moment.settings, record.asked
    row = trial_row(moment, service.views, record)
    return Answer(
        shapes.Trial(
            trial=record.number,
            state=row.state,
            worker=record.worker,
            levels=row.levels,
            switch=row.switch,
            intervention=dict(zip(settings.nodes, record.intervention, strict=True)),
            asked_levels=row.asked_levels,
            values=row.values,
            predicted=row.predicted,
            predicted_width=asked.get("width"),
            reason=row.reason,
            why=str(asked.get("why", "")),
            remark=record.reason,
            asked_at=record.asked_at,
            done_at=record.done_at,
            age_seconds=_age(record.asked_at) if record.state == PENDING else None,
            corrected=record.corrected,
            corrections=[
                shapes.Correction(
                    event.number,
                    event.at,
                    values_of(moment, before),
                    settings.named.levels(before.intervention),
                    str(event.data.get("reason", "")),
                )
                for event, before in moment.corrections.get(record.number, ())
            ],
            notes=[
                shapes.Note(**note)
                for note in moment.ledger.notes
                if note["trial"] == record.number
            ],
            far=[far_value(far) for far in service.views.far.get(record.number, ())],
        )
    )


async def explanation(service: Service, call: Call) -> Answer:
    moment = service.moment
    work = service.desk.explain(moment.ledger, call.number, service.views)
    record = await while_connected(call.request.receive, work)
    return Answer(msgspec.convert(record, shapes.Explanation))


async def events(service: Service, call: Call) -> Answer | Response:
    moment = service.moment
    if "text/event-stream" in call.request.headers.get("accept", ""):
        service.viewers.check_room()
        last = call.request.headers.get("last-event-id", "")
        seen = int(last) if last.isascii() and last.isdecimal() and len(last) < 19 else None
        return EventStream(service.viewers.messages(moment.first_hash, seen, call.credential))
    after, limit = call.query["after"], call.query["limit"]
    found = await service.tail.entries(after, limit + 1)
    found = [entry for entry in found if entry.number <= moment.number]  # of one moment
    page = found[:limit]
    rest = {
        "next": page[-1].number if len(found) > limit else None,
        "head": moment.number,
        "head_hash": moment.hash,
        "first_hash": moment.first_hash,
    }
    # the stored text as it is, so that its hash can be checked
    items = ",".join(f'{{"hash":"{e.hash.hex()}",{e.text[1:]}' for e in page)
    text = f'{{"events":[{items}],{msgspec.json.encode(rest).decode()[1:]}'
    return Response(text, media_type="application/json")


async def notes(service: Service, call: Call) -> Answer:
    found = [shapes.Note(**note) for note in service.moment.ledger.notes]
    after, limit = call.query["after"], call.query["limit"]
    found = [note for note in found if note.event > after]
    page = found[:limit]
    following = page[-1].event if len(found) > limit else None
    return Answer(shapes.Notes(page, following, service.moment.number))


async def predictions(service: Service, call: Call) -> Answer:
    views, named = service.views, service.moment.settings.named
    rows = [as_intervention(levels, named) for levels in call.body.interventions]
    work = service.desk.predict(lambda: predict(views.beliefs, rows))
    found = await while_connected(call.request.receive, work)
    return Answer(
        shapes.Predictions(views.as_of, [msgspec.convert(f, shapes.Prediction) for f in found])
    )


async def health(service: Service, call: Call) -> Answer:
    trouble = service.tail.trouble
    answer = shapes.Health(trouble is None, service.tail.moment.number, VERSION)
    return Answer(answer, 200 if answer.ok else 503)


def _now() -> datetime:
    return datetime.now(UTC)


def _age(at: str) -> float | None:
    try:
        return max(0.0, (_now() - datetime.fromisoformat(at)).total_seconds())
    except (ValueError, TypeError):
        return None
