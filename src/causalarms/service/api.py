"""The table of operations: all of the API, one entry each."""

from __future__ import annotations

from typing import get_args

from causalarms.service import handlers, records, security
from causalarms.service.operation import MB, Operation, Parameter
from causalarms.study.records import Explanation, State

PREFIX = "/api/v1"
LIMIT = Parameter("limit", "how many at most", least=1, most=1000, default=100)
AFTER_EVENT = Parameter("after", "only events with larger numbers", most=2**53, default=0)
AFTER_TRIAL = Parameter(
    "after", "only trials with larger numbers", least=-1, most=2**53, default=-1
)
STATE = Parameter("state", "only trials in this state", str, words=get_args(State))
ABOVE = Parameter(
    "above", "only edges at least so probable, and the likely ones", float, 0, 1, default=0.05
)

OPERATIONS = (
    Operation(
        "GET", "/study", "What the study is and how far it has come.", handlers.get_study,
        {200: records.StudySummary},
    ),
    Operation(
        "GET", "/best", "The best intervention known.", handlers.get_best, {200: records.Best},
    ),
    Operation(
        "GET", "/graph", "Who causes whom, with positions.", handlers.get_graph,
        {200: records.Graph}, query=(ABOVE,),
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
        {200: records.TrialHistory}, refusals=(404,),
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
        "POST", "/observations", "Rounds that nobody asked for.", handlers.add_observations,
        {201: records.Done, 200: records.Done}, records.ObservationsRequest, role="operator",
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
        "POST", "/session", "Give a token once, get a cookie.", security.begin_session,
        {200: records.Caller}, records.SessionRequest, role=None,
    ),
    Operation("DELETE", "/session", "End the session.", security.end_session, {200: records.Caller},
        role=None,
    ),
)  # fmt: skip
