"""The study and its trials as the API says them; a live service and a report say the same."""

from __future__ import annotations

from importlib.metadata import version

from causalarms.service import shapes
from causalarms.service.tail import Moment
from causalarms.service.views import Views
from causalarms.study.ledger import Record
from causalarms.study.report import missing_in_words, missing_values, not_as_asked
from causalarms.study.suspects import SuspectValue

VERSION = version("causalarms")


def study_summary(
    name: str, moment: Moment, views: Views, caller: shapes.Caller, now: str
) -> shapes.StudySummary:
    settings, ledger = moment.settings, moment.ledger
    movable = settings.named.names if settings.intervenable is None else settings.intervenable
    missing = missing_values(ledger)
    return shapes.StudySummary(
        name=name,
        nodes=list(settings.nodes),
        reward=settings.reward,
        direction=settings.direction,  # type: ignore[arg-type]
        factors=[
            shapes.Factor(f.name, list(f.levels), list(f.acts_on), f.is_switch, f.name in movable)
            for f in settings.named.factors
        ],
        policy=settings.policy,
        watches=views.watches,
        counts=moment.counts,
        trials=len(ledger.trials),
        results=len(ledger.order),
        head=moment.number,
        learned_head=moment.learned,
        as_of=views.as_of,
        first_hash=moment.first_hash,
        created=moment.first.at,
        now=now,
        caller=caller,
        far_values=[far_value(far) for found in views.far.values() for far in found],
        missing=missing_in_words(missing) if missing["values"] else "",
        version=VERSION,
    )


def trial_row(moment: Moment, views: Views, record: Record) -> shapes.TrialRow:
    named = moment.settings.named
    otherwise = bool(not_as_asked(record, named))
    return shapes.TrialRow(
        trial=record.number,
        state=record.state,  # type: ignore[arg-type]
        worker=record.worker,
        levels=named.levels(record.intervention),
        switch=named.switched(record.intervention),
        asked_levels=named.levels(record.asked_intervention) if otherwise else None,
        values=values_of(moment, record),
        predicted=record.asked.get("mean"),
        reason=str(record.asked.get("reason", "")),
        remark=record.reason,
        corrected=record.corrected,
        notes=moment.notes_of[record.number],
        asked_at=record.asked_at,
        done_at=record.done_at,
        far=[far.node for far in views.far.get(record.number, ())],
    )


def values_of(moment: Moment, record: Record) -> shapes.Numbers | None:
    if record.values is None:
        return None
    return dict(zip(moment.settings.nodes, record.values, strict=True))


def far_value(far: SuspectValue) -> shapes.FarValue:
    return shapes.FarValue(far.trial, far.node, far.value, far.low, far.high)
