"""The table of operations: all of the API, one entry each, and the OpenAPI document of it."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from causalarms.sem.factor import Level
from causalarms.service import handlers, records
from causalarms.service.records import Problem
from causalarms.service.request import MB, Operation, Parameter
from causalarms.service.views import VERSION
from causalarms.study.records import Explanation, State

PREFIX = "/api/v1"
LIMIT = Parameter("limit", "how many at most", Annotated[int, Meta(ge=1, le=1000)], 100)
AFTER_EVENT = Parameter(
    "after", "only events with larger numbers", Annotated[int, Meta(ge=0, le=2**53)], 0
)
AFTER_TRIAL = Parameter(
    "after", "only trials with larger numbers", Annotated[int, Meta(ge=-1, le=2**53)], -1
)
STATE = Parameter("state", "only trials in this state", State)
ABOVE = Parameter(
    "above", "only edges at least so probable, and the likely ones",
    Annotated[float, Meta(ge=0, le=1)], 0.05,
)  # fmt: skip

CONTEXT = Parameter("context", "today's values of nodes that are context", records.Values)
LEVELS = Parameter(
    "levels", "factors with their levels: the graph of this one setting", dict[str, Level]
)

OPERATIONS = (
    Operation(
        "GET", "/study", "What the study is and how far it has come.", handlers.get_study,
        {200: records.StudySummary},
    ),
    Operation(
        "GET", "/best", "The best intervention known.", handlers.get_best, {200: records.Best},
        query=(CONTEXT,),
    ),
    Operation(
        "GET", "/graph", "Who causes whom, with positions.", handlers.get_graph,
        {200: records.Graph}, query=(ABOVE, LEVELS),
    ),
    Operation(
        "GET", "/effects", "What every factor acts on, and what its levels do to the reward.",
        handlers.get_effects, {200: records.Effects},
    ),
    Operation(
        "GET", "/alarms", "Mechanisms that seem to have changed.", handlers.get_alarms,
        {200: records.Alarms},
    ),
    Operation(
        "GET", "/rewards", "The reward so far, in at most 500 buckets.", handlers.get_rewards,
        {200: records.Rewards},
    ),
    Operation(
        "GET", "/checks", "Does the model fit? In plain words.", handlers.get_checks,
        {200: records.Checks},
    ),
    Operation(
        "GET", "/trials", "Trials, oldest first.", handlers.get_trials, {200: records.Trials},
        query=(AFTER_TRIAL, LIMIT, STATE),
    ),
    Operation(
        "GET", "/trials/{number}", "One trial with its history.", handlers.get_trial,
        {200: records.Trial}, refusals=(404,),
    ),
    Operation(
        "GET", "/trials/{number}/explanation", "Why a trial was suggested.",
        handlers.get_explanation, {200: Explanation}, refusals=(404, 409),
    ),
    Operation("GET", "/notes", "Remarks.", handlers.get_notes, {200: records.Notes},
        query=(AFTER_EVENT, LIMIT),
    ),
    Operation(
        "GET", "/events", "The log; with Accept: text/event-stream, how far it is, live.",
        handlers.get_events, {200: records.Events}, query=(AFTER_EVENT, LIMIT), streams=True,
        refusals=(503,),
    ),
    Operation(
        "GET", "/healthz", "Whether the service can read its study.", handlers.get_health,
        {200: records.Health, 503: records.Health}, role=None,
    ),
    Operation(
        "POST", "/trials", "The next trials of a worker; those it has pending first.", handlers.ask,
        {200: records.Asked}, records.AskRequest, role="worker",
    ),
    Operation(
        "PUT", "/trials/{number}/result", "What became of a trial.", handlers.put_result,
        {201: records.Done, 200: records.Done}, records.Result, role="worker", refusals=(404, 409),
    ),
    Operation(
        "POST", "/trials/{number}/corrections", "Replace or withdraw a result.", handlers.correct,
        {201: records.Done, 200: records.Done}, records.CorrectionRequest, role="operator",
        needs_key=True, refusals=(404, 409),
    ),
    Operation(
        "POST", "/notes", "A remark for the log.", handlers.add_note,
        {201: records.Done, 200: records.Done}, records.NoteRequest, role="worker", needs_key=True,
        refusals=(404,),
    ),
    Operation(
        "POST", "/rounds", "Rounds that nobody asked for.", handlers.import_rounds,
        {201: records.Done, 200: records.Done}, records.RoundsRequest, role="operator",
        needs_key=True, most_bytes=20 * MB,
    ),
    Operation(
        "PUT", "/alarms/{number}/acknowledgement", "Say that an alarm was seen.",
        handlers.acknowledge, {201: records.Done, 200: records.Done},
        records.AcknowledgementRequest, role="operator", refusals=(404,),
    ),
    Operation(
        "POST", "/predictions", "Expected values under interventions.", handlers.post_predictions,
        {200: records.Predictions}, records.PredictionRequest, refusals=(409,),
    ),
    Operation(
        "POST", "/session", "Give a token once, get a cookie.", handlers.begin_session,
        {200: records.Caller}, records.SessionRequest, role=None,
    ),
    Operation("DELETE", "/session", "End the session.", handlers.end_session, {200: records.Caller},
        role=None,
    ),
)  # fmt: skip


# -- the OpenAPI document --------------------------------------------------------------------------

TEMPLATE = "#/components/schemas/{name}"
PROBLEM = {"application/problem+json": {"schema": {"$ref": TEMPLATE.format(name="Problem")}}}


@cache
def document() -> bytes:
    types: set[type[msgspec.Struct]] = {Problem}
    for operation in OPERATIONS:
        types |= {*operation.answers.values()}
        types |= set() if operation.takes is None else {operation.takes}
    # Sorted, so that the document is the same in every run.
    ordered = sorted(types, key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components(ordered, ref_template=TEMPLATE)
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    paths["/openapi.json"] = {
        "get": {
            "operationId": "get_openapi",
            "summary": "This document.",
            "security": [],
            "responses": {
                "200": {
                    "description": "OpenAPI 3.1",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
                **_refusals([403, 405, 421]),
            },
        }
    }
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "causalarms",
                "version": VERSION,
                "description": "A sequential experiment: ask what to try, tell what was measured.",
            },
            "servers": [{"url": "."}],  # relative to this document
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
            "security": [{}, {"token": []}],
        }
    )


def _described(operation: Operation) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = []
    if "{number}" in operation.path:
        schema = {"type": "integer", "minimum": 0, "maximum": 10**15 - 1}
        parameters.append({"name": "number", "in": "path", "required": True, "schema": schema})
    parameters += [_parameter(parameter) for parameter in operation.query]
    if operation.needs_key:
        schema = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"}
        parameters.append(
            {"name": "Idempotency-Key", "in": "header", "required": True, "schema": schema}
        )
    found: dict[str, Any] = {
        "operationId": operation.method.lower() + operation.path.replace("/", "_"),
        "summary": operation.summary,
        "parameters": parameters,
        "responses": {
            **{str(status): _answer(operation, status) for status in sorted(operation.answers)},
            **_refusals(_possible(operation)),
        },
    }
    if operation.takes is not None:
        schema = {"$ref": TEMPLATE.format(name=operation.takes.__name__)}
        found["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    if operation.role is None:
        found["security"] = []
    else:
        found["description"] = f"Needs the role {operation.role}."
    return found


def _answer(operation: Operation, status: int) -> dict[str, Any]:
    name = operation.answers[status].__name__
    content: dict[str, Any] = {"application/json": {"schema": {"$ref": TEMPLATE.format(name=name)}}}
    if operation.streams:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    words = {200: "As asked.", 201: "Written.", 503: "Not possible now."}
    return {"description": words[status], "content": content}


def _possible(operation: Operation) -> list[int]:
    """Refusals that this operation may answer with."""
    # Host, site, method, address and a locked file are refused before any operation runs.
    found = {403, 405, 421, 422, 503, *operation.refusals}
    if operation.unsafe:
        found |= {415}
    if operation.takes is not None:
        found |= {400, 408, 413}
    if operation.role is not None or operation.path == "/session":
        found |= {401}
    if operation.role in ("worker", "operator"):
        found |= {507}
    return sorted(found - set(operation.answers))


def _refusals(statuses: list[int]) -> dict[str, Any]:
    return {
        str(status): {"description": "Refused; the detail says why.", "content": PROBLEM}
        for status in statuses
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": parameter.name, "in": "query", "required": False, "description": parameter.about,
    }  # fmt: skip
    schema = parameter.schema
    if parameter.is_object:
        return found | {"content": {"application/json": {"schema": schema}}}
    if parameter.default is not None:
        schema["default"] = parameter.default
    return found | {"schema": schema}
