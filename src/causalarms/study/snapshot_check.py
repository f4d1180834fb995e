"""Snapshots are only an acceleration: used where they fit the log, checked against its replay.

Opening cannot know whether the numbers of a snapshot are right without the work it saves.
`verify` does that work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from causalarms.errors import StudyError
from causalarms.study.cache import pack, unpack
from causalarms.study.learner import Learner
from causalarms.study.ledger import Ledger
from causalarms.study.log import decode
from causalarms.study.store import Entry, Snapshot, Store

DROP = "causalarms study verify FILE --drop-snapshot (or study.drop_snapshot())"

UNCHECKED = "quick: the snapshot was not compared with what the log gives"


def restore_newest(learner: Learner, store: Store, ledger: Ledger, last: int) -> Snapshot | None:
    """The store's snapshot if the learner has started from it; the learner knows why not.

    The ledger holds the events up to `last`; others may have written more since.
    """
    try:
        snapshot = store.snapshot()
        if snapshot is None:
            return None
        found = store.entries(snapshot.number - 1)[:1] if snapshot.number > 0 else []
        if not found or found[0].number != snapshot.number:
            learner.snapshot_ignored = f"the log has no event {snapshot.number}"
        elif snapshot.number <= last and learner.restore(snapshot, ledger, found[0].hash):
            return snapshot
    except StudyError as error:
        learner.snapshot_ignored = f"it cannot be read: {error}"
    return None


def check_snapshot(store: Store, ledger: Ledger, entries: Sequence[Entry]) -> tuple[bool, str]:
    """Whether all is well, and what is to be said of the snapshot; the log was checked before."""
    assert ledger.settings is not None
    learner = Learner(ledger.settings)
    snapshot = restore_newest(learner, store, ledger, len(entries))
    if snapshot is None:
        reason = learner.snapshot_ignored or learner.snapshot_outdated
        return True, f"the snapshot is not used: {reason}" if reason else ""
    wrong = _difference(unpack(snapshot.state), _replayed(entries[: snapshot.number]))
    if wrong is None:
        return True, ""
    return False, (
        f"the log is intact, but the snapshot made at event {snapshot.number} is not what the log "
        f"gives ({wrong}), and what is asked next may be wrong; nothing is lost by deleting it: "
        f"{DROP}"
    )


def _replayed(entries: Sequence[Entry]) -> dict[str, Any]:
    """The state after these events, as a snapshot would hold it."""
    ledger = Ledger()
    for entry in entries:
        ledger.apply(decode(entry.text, entry.number))
    assert ledger.settings is not None
    learner = Learner(ledger.settings)
    learner.follow(ledger)
    return unpack(pack(learner.state()))


def _difference(held: dict[str, Any], right: dict[str, Any]) -> str | None:
    """The first entry that differs in any bit."""
    for name in sorted(held.keys() | right.keys()):
        if name not in held or name not in right or _plain(held[name]) != _plain(right[name]):
            return name
    return None


def _plain(value: Any) -> Any:
    """Comparable by ==, bit for bit."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return repr(value)
