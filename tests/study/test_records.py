"""Records behind every door: plain values in Python, nan as null in JSON and back."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from causalarms.study import Trial
from causalarms.study.far_values import NOT_SEEN, Seen, suspect
from causalarms.study.records import Best, Interval, MissingValues, Prediction, StudyRecord

RECORDS: list[StudyRecord] = [
    Trial(3, {"heat": 1}, "main", "explore", None, {"heat": "on"}, ["heat"], "new", None),
    Prediction({"heat": "on"}, {"heat": 1}, {"heat": Interval(1.0, math.nan, math.nan)}),
    suspect(3, "heat", 1000.0, Seen(0.0, 9.5), learned=True),
    suspect(3, "heat", 1000.0, NOT_SEEN, learned=False),
    MissingValues(values=1, trials=1, learned=0),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_that_was_sent_is_the_record_that_was_meant(record: StudyRecord) -> None:
    sent = msgspec.json.encode(record)
    assert msgspec.json.decode(sent, type=type(record)) == record
    assert list(json.loads(sent)) == list(record.as_dict())


def test_what_nobody_can_know_is_nan_in_python_and_null_in_json() -> None:
    found = Best(intervention={}, levels={}, switch=[], reward=1.0)
    assert math.isnan(found.as_dict()["probability"])
    assert json.loads(msgspec.json.encode(found))["probability"] is None
    # Whichever computation gave the nan, what knows equally much is equal.
    nan = math.inf - math.inf
    assert nan is not math.nan
    assert found == msgspec.structs.replace(found, low=nan, high=float("nan"))
    assert found != msgspec.structs.replace(found, low=0.0)


def test_a_trial_is_its_number() -> None:
    trial: Any = RECORDS[0]
    assert (int(trial), trial.as_dict()["trial"]) == (3, 3)
