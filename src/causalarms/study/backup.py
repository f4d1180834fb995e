"""A consistent copy of a study that may be in use: whole, checked, or not there at all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from causalarms.errors import StudyError
from causalarms.study.sqlite_file import create_file, draft_of, publish
from causalarms.study.sqlite_store import SqliteStore
from causalarms.study.store import Store
from causalarms.study.verification import Verdict, verify_file


def backup(path: str | Path, copy: str | Path) -> Verdict:
    """Copy the study as it is at one moment into a new file; the verdict on the copy."""
    copy = Path(copy).absolute()
    if copy.exists():
        raise StudyError(f"{copy} exists already; choose another name for the copy")
    draft = draft_of(copy)
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        store = SqliteStore(path, read_only=True)
        store.copy_to(draft)
        verdict = verify_file(draft)
        if not verdict.ok:
            raise StudyError(f"{path} is damaged and was not copied: {verdict.message}")
        publish(draft, copy)
    except OSError as error:
        raise StudyError(f"cannot write {copy}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return verdict


def backup_log(store: Store, copy: str | Path) -> Verdict:
    """As `backup`, of a study whose log can be read only: the copy has no snapshot."""
    create_file(Path(copy).absolute(), store.entries())
    return verify_file(copy)
