"""How trials end: told with values, failed, or abandoned. Several may end in one transaction."""

from __future__ import annotations

from typing import Any, NamedTuple

from causalarms.errors import StudyError, shown
from causalarms.study import events, untold
from causalarms.study.inputs import Values, as_intervention, as_values
from causalarms.study.settings import Settings
from causalarms.study.store import Store
from causalarms.study.trials import Record


class Ending(NamedTuple):
    kind: str
    trial: int
    values: Values | None = None
    played: list[int] | None = None  # where it may not be what was asked
    reason: str = ""

    def data(self, record: Record) -> dict[str, Any]:
        """Of its event."""
        if self.values is None:
            return {"trial": self.trial, "reason": self.reason}
        return {"trial": self.trial, "values": self.values} | deviation(record, self.played)

    def keep(self, store: Store, settings: Settings) -> str:
        """Beside the study, where the study cannot take it; a sentence that says where it is."""
        if self.values is None:
            return ""
        named = dict(zip(settings.nodes, self.values, strict=True))
        levels = None if self.played is None else settings.named.levels(self.played)
        return untold.keep(store, self.trial, named, levels)


def told(settings: Settings, trial: int, values: Any, played: Any = None) -> Ending:
    plain = as_values(values, settings.nodes)
    bits = None if played is None else as_intervention(played, settings.named)
    return Ending(events.TOLD, trial, plain, bits)


def without_result(kind: str, trial: int, reason: str) -> Ending:
    return Ending(kind, trial, reason=as_text(reason, "the reason", empty=True))


def checked(settings: Settings, given: Ending) -> Ending:
    """As the two above make it, whoever made it: a wrong event would spoil the log."""
    if given.kind == events.TOLD:
        return told(settings, given.trial, given.values, given.played)
    if given.kind not in (events.FAILED, events.ABANDONED):
        raise StudyError(f"a trial ends told, failed or abandoned, not {shown(given.kind)}")
    if given.values is not None or given.played is not None:
        raise StudyError(f"trial {given.trial} is {given.kind}: values and played go with told")
    return without_result(given.kind, given.trial, given.reason)


def deviation(record: Record, played: list[int] | None) -> dict[str, Any]:
    """What an event says of what was played: nothing where that is known already."""
    return {} if played is None or tuple(played) == record.intervention else {"played": played}


def as_text(given: Any, what: str, *, empty: bool = False) -> str:
    if not isinstance(given, str) or len(given) > 10_000 or (not empty and not given.strip()):
        raise StudyError(f"{what} must be a text, not {shown(given)}")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise StudyError(f"{what} holds characters that cannot be stored") from None
    return given
