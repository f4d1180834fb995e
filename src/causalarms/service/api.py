"""The whole API, one line each."""

from __future__ import annotations

from typing import get_args

from causalarms.service import callers, reading, shapes, writing
from causalarms.service.operation import MB, Operation, Parameter

PREFIX = "/api/v1"
LIMIT = Parameter("limit", "how many at most", least=1, most=1000, default=100)
AFTER_EVENT = Parameter("after", "only events with larger numbers", most=2**53, default=0)
AFTER_TRIAL = Parameter(
    "after", "only trials with larger numbers", least=-1, most=2**53, default=-1
)
STATE = Parameter("state", "only trials in this state", str, words=get_args(shapes.State))
ABOVE = Parameter(
    "above", "only edges at least so probable, and the likely ones", float, 0, 1, default=0.05
)

OPERATIONS = (
    Operation(
        "GET", "/study", "What the study is and how far it has come.", reading.study,
        {200: shapes.StudySummary},
    ),
    Operation("GET", "/best", "The best intervention known.", reading.best, {200: shapes.Best}),
    Operation(
        "GET", "/graph", "Who causes whom, with positions.", reading.graph, {200: shapes.Graph},
        query=(ABOVE,),
    ),
    Operation(
        "GET", "/alarms", "Mechanisms that seem to have changed.", reading.alarms,
        {200: shapes.Alarms},
    ),
    Operation(
        "GET", "/rewards", "The reward so far, in at most 500 buckets.", reading.rewards,
        {200: shapes.Rewards},
    ),
    Operation(
        "GET", "/checks", "Does the model fit? In plain words.", reading.checks,
        {200: shapes.Checks},
    ),
    Operation(
        "GET", "/trials", "Trials, oldest first.", reading.trials, {200: shapes.Trials},
        query=(AFTER_TRIAL, LIMIT, STATE),
    ),
    Operation(
        "GET", "/trials/{number}", "One trial with its history.", reading.trial,
        {200: shapes.Trial}, refusals=(404,),
    ),
    Operation(
        "GET", "/trials/{number}/explanation", "Why a trial was suggested.", reading.explanation,
        {200: shapes.Explanation}, refusals=(404, 409),
    ),
    Operation("GET", "/notes", "Remarks.", reading.notes, {200: shapes.Notes},
        query=(AFTER_EVENT, LIMIT),
    ),
    Operation(
        "GET", "/events", "The log; with Accept: text/event-stream, how far it is, live.",
        reading.events, {200: shapes.Events}, query=(AFTER_EVENT, LIMIT), streams=True,
        refusals=(503,),
    ),
    Operation(
        "GET", "/healthz", "Whether the service can read its study.", reading.health,
        {200: shapes.Health, 503: shapes.Health}, role=None,
    ),
    Operation(
        "POST", "/trials", "The next trials of a worker; those it has pending first.", writing.ask,
        {200: shapes.Asked}, shapes.AskRequest, role="worker",
    ),
    Operation(
        "PUT", "/trials/{number}/result", "What became of a trial.", writing.put_result,
        {201: shapes.Done, 200: shapes.Done}, shapes.Result, role="worker", refusals=(404, 409),
    ),
    Operation(
        "POST", "/trials/{number}/corrections", "Replace or withdraw a result.", writing.correct,
        {201: shapes.Done, 200: shapes.Done}, shapes.CorrectionRequest, role="operator",
        needs_key=True, refusals=(404, 409),
    ),
    Operation(
        "POST", "/notes", "A remark for the log.", writing.note,
        {201: shapes.Done, 200: shapes.Done}, shapes.NoteRequest, role="worker", needs_key=True,
        refusals=(404,),
    ),
    Operation(
        "POST", "/observations", "Rounds that nobody asked for.", writing.add_observations,
        {201: shapes.Done, 200: shapes.Done}, shapes.ObservationsRequest, role="operator",
        needs_key=True, most_bytes=20 * MB,
    ),
    Operation(
        "PUT", "/alarms/{number}/acknowledgement", "Say that an alarm was seen.",
        writing.acknowledge, {201: shapes.Done, 200: shapes.Done}, shapes.AcknowledgementRequest,
        role="operator", refusals=(404,),
    ),
    Operation(
        "POST", "/predictions", "Expected values under interventions.", reading.predictions,
        {200: shapes.Predictions}, shapes.PredictionRequest, refusals=(409,),
    ),
    Operation(
        "POST", "/session", "Give a token once, get a cookie.", callers.begin_session,
        {200: shapes.Caller}, shapes.SessionRequest, role=None,
    ),
    Operation("DELETE", "/session", "End the session.", callers.end_session, {200: shapes.Caller},
        role=None,
    ),
)  # fmt: skip
