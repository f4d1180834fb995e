"""The answers of the API at one moment, for a report: the page, live or frozen, is the same."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from causalarms.service import shapes
from causalarms.service.far import FarValues
from causalarms.service.layout import Layout
from causalarms.service.summaries import study_summary, trial_row
from causalarms.service.tail import Moment
from causalarms.service.views import checks_view, look
from causalarms.study import Study
from causalarms.study.ledger import PENDING
from causalarms.study.log import decode

MOST_TRIALS = 2000
LEAST_PROBABLE = 0.05  # edges that the page can show
READER = shapes.Caller("read", "", False)


def frozen_answers(study: Study, name: str) -> dict[str, Any]:
    """By the address that the page asks for."""
    views = look(study, Layout(), FarValues().of(study.ledger()))
    moment = moment_of(study, views.as_of)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    rows = [trial_row(moment, views, record) for record in moment.ledger.trials[-MOST_TRIALS:]]
    edges = [e for e in views.graph.edges if e.likely or (e.probability or 0) >= LEAST_PROBABLE]
    return {
        "study": study_summary(name, moment, views, READER, now),
        "best": views.best,
        "graph": msgspec.structs.replace(views.graph, edges=edges),
        "alarms": shapes.Alarms(views.as_of, views.watches, views.alarms),
        "rewards": views.rewards,
        "checks": checks_view(views),
        "pending": shapes.Trials([row for row in rows if row.state == PENDING], None, views.as_of),
        "trials": shapes.Trials(rows, None, views.as_of),
        "notes": shapes.Notes([shapes.Note(**n) for n in moment.ledger.notes], None, views.as_of),
    }


def moment_of(study: Study, number: int) -> Moment:
    """What the log of a study says, wherever it is stored."""
    ledger = study.ledger()
    first, last = study.store.entries(0, 1)[0], study.store.head()[1]
    return Moment(
        number,
        last.hex(),
        ledger,
        decode(first.text, first.number),
        first.hash.hex(),
        number,
        {},
    )
