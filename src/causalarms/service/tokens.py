"""Tokens of a study: who may look, ask and tell, or do everything; and the sessions of its page.

They are in a small SQLite file next to the study, so that two commands at once cannot undo each
other. It holds SHA-256 hashes only, and only its owner may read it. Every look opens it again,
which takes about 0.1 ms: tokens come and go while the service runs.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from causalarms.errors import StudyBusyError, StudyError, TokenFileError
from causalarms.study.log import now

Role = Literal["read", "worker", "operator"]  # looks; asks and tells under its name; does all

ENDING = ".tokens"
PREFIX = "ca_"
SESSION_SECONDS = 30 * 24 * 3600
SESSIONS_PER_TOKEN = 100  # the oldest end when there are more
READ_SECONDS = 1.0  # to wait for the lock of a command; the whole service waits with it
WRITE_SECONDS = 10.0

APPLICATION_ID = 0x63617574  # "caut"
VERSION = 1
TABLES = (
    f"PRAGMA application_id = {APPLICATION_ID:d}",
    f"PRAGMA user_version = {VERSION:d}",
    "CREATE TABLE access (only INTEGER PRIMARY KEY CHECK (only = 1), is_open INTEGER NOT NULL)",
    "CREATE TABLE tokens (digest TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL,"
    " made TEXT NOT NULL)",
    "CREATE TABLE sessions (digest TEXT PRIMARY KEY, token TEXT NOT NULL, ends INTEGER NOT NULL)",
    "INSERT INTO access VALUES (1, 1)",
)
FIND_TOKEN = "SELECT digest, name, role, made FROM tokens WHERE digest = :digest"
LIVE_SESSIONS = (
    "FROM sessions JOIN tokens ON tokens.digest = sessions.token WHERE sessions.ends > :now"
)
FIND_SESSION = (
    f"SELECT tokens.digest, name, role, made {LIVE_SESSIONS} AND sessions.digest = :digest"
)


class Token(NamedTuple):
    digest: str
    name: str
    role: Role
    made: str


class Access(NamedTuple):
    """What the file says about one request."""

    is_open: bool  # nobody needs a token
    token: Token | None  # of the caller
    credential: str  # the hash that let the caller in; "" without one


class TokenFile:
    def __init__(self, study: Path) -> None:
        self.study = real_path(study)
        self.path = self.study.with_name(self.study.name + ENDING)
        self._was_closed = False

    def all(self) -> list[Token]:
        if not self._exists():
            return []
        with self._transaction() as connection:
            rows = connection.execute("SELECT digest, name, role, made FROM tokens ORDER BY rowid")
            return [self._token(row) for row in rows]

    def check(self) -> None:
        """TokenFileError if the file cannot be read or is damaged."""
        if self._exists():
            with self._transaction() as connection:
                found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
                if found != "ok":
                    raise self._error(f"is damaged ({found:.200})")
            self.look("")
            self.all()

    def look(self, token: str = "", session: str = "", study: str = "") -> Access:
        """Whether a token is needed, and whose token or session of the page this is.

        Searching an index by hash is not done in constant time. It need not be: a caller cannot
        choose the hash of a guess, so its first digits tell nothing about the token.
        """
        if not self._exists():
            return Access(True, None, "")
        if token:
            query, credential = FIND_TOKEN, _digest(token)
        else:
            query, credential = FIND_SESSION, _digest(f"{study}:{session}")
        with self._transaction() as connection:
            is_open = bool(self._only(connection, "SELECT is_open FROM access"))
            row = connection.execute(query, {"digest": credential, "now": time.time()}).fetchone()
        self._was_closed = not is_open
        if row is None:
            return Access(is_open, None, "")
        return Access(is_open, self._token(row), credential)

    def find(self, given: str) -> Token | None:
        """Whose token this is."""
        return self.look(given).token if given else None

    def credentials(self) -> set[str]:
        """Hashes of all tokens and sessions that are valid now; "" if none is needed."""
        if not self._exists():
            return {""}
        with self._transaction() as connection:
            rows = connection.execute(
                f"SELECT digest FROM tokens UNION ALL SELECT sessions.digest {LIVE_SESSIONS}"
                " UNION ALL SELECT '' FROM access WHERE is_open",
                {"now": time.time()},
            )
            return {digest for (digest,) in rows}

    def make(self, role: str, name: str) -> str:
        """A new token, which nobody can read again later. From now on everybody needs one."""
        if role not in get_args(Role):
            raise StudyError(
                f"there is no role {role!r:.40}; there are {', '.join(get_args(Role))}"
            )
        if not name.strip() or len(name) > 200 or not name.isprintable():
            raise StudyError(f"a token needs a name that can be printed, got {name!r:.80}")
        # The prefix lets scanners for leaked secrets find it.
        text = PREFIX + secrets.token_urlsafe(32)
        made = now().isoformat(timespec="seconds")
        with self._writing() as connection:
            if connection.execute("SELECT 1 FROM tokens WHERE name = ?", (name,)).fetchone():
                raise StudyError(
                    f"there is a token {name!r} already: revoke it, or take another name"
                )
            connection.execute(
                "INSERT INTO tokens VALUES (?, ?, ?, ?)", (_digest(text), name, role, made)
            )
            connection.execute("UPDATE access SET is_open = 0")
        return text

    def revoke(self, name: str) -> int:
        """How many tokens are left. Without any, nobody gets in: only `open_to_all` opens."""
        names = [token.name for token in self.all()]
        if name not in names:
            raise StudyError(
                f"there is no token {name!r:.80}; there are: {', '.join(names) or 'none'}"
            )
        with self._writing() as connection:
            connection.execute("DELETE FROM tokens WHERE name = ?", (name,))
            connection.execute(
                "DELETE FROM sessions WHERE token NOT IN (SELECT digest FROM tokens)"
            )
            return cast(int, self._only(connection, "SELECT count(*) FROM tokens"))

    def open_to_all(self) -> int:
        """Revoke every token and need none from now on; how many there were."""
        with self._writing() as connection:
            connection.execute("DELETE FROM sessions")
            count = connection.execute("DELETE FROM tokens").rowcount
            connection.execute("UPDATE access SET is_open = 1")
        return count

    def begin_session(self, token: Token, study: str) -> str:
        """A session of the page: another secret, which ends with its token or by itself.

        `study` goes into the hash: copied next to another study, the file holds no session of it.
        """
        text = secrets.token_urlsafe(32)
        now = int(time.time())
        with self._writing() as connection:
            # Sessions that have ended are removed here: nothing else runs regularly.
            connection.execute("DELETE FROM sessions WHERE ends <= ?", (now,))
            connection.execute(
                "INSERT INTO sessions SELECT ?, digest, ? FROM tokens WHERE digest = ?",
                (_digest(f"{study}:{text}"), now + SESSION_SECONDS, token.digest),
            )
            connection.execute(
                "DELETE FROM sessions WHERE token = ?1 AND rowid NOT IN (SELECT rowid FROM sessions"
                " WHERE token = ?1 ORDER BY rowid DESC LIMIT ?2)",
                (token.digest, SESSIONS_PER_TOKEN),
            )
        return text

    def end_session(self, session: str, study: str) -> None:
        if self.look(session=session, study=study).token is not None:
            with self._writing() as connection:
                digest = _digest(f"{study}:{session}")
                connection.execute("DELETE FROM sessions WHERE digest = ?", (digest,))

    def _exists(self) -> bool:
        """Whether there is a file. One that vanishes under a service does not open it."""
        try:
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            if self._was_closed:
                raise self._error("is gone") from None
            return False
        except OSError as error:
            raise self._error(f"cannot be read ({error.strerror})") from error
        # Like ssh with private keys: a file that others could read is not used.
        if os.name == "posix" and mode & 0o077:
            raise TokenFileError(
                f"others can read {self.path}: chmod 600 it, and make new tokens if they did"
            )
        return True

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that writes, on a new file if there is none."""
        try:
            with suppress(FileExistsError):
                # With its mode from the start: others can never read it.
                self.path.touch(0o600, exist_ok=False)
        except OSError as error:
            raise TokenFileError(f"{self.path} cannot be written: {error.strerror}") from error
        self._exists()
        with self._transaction(write=True) as connection:
            yield connection

    @contextmanager
    def _transaction(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            # "rw" also for reading: SQLite must undo a write that was cut off
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode=rw",
                uri=True,
                timeout=WRITE_SECONDS if write else READ_SECONDS,
                isolation_level=None,
            )
            with closing(connection):  # without a commit, this undoes everything
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                if write and self.path.stat().st_size == 0:  # locked, so nobody is filling it
                    for statement in TABLES:
                        connection.execute(statement)
                if self._only(connection, "PRAGMA application_id") != APPLICATION_ID:
                    raise self._error("is empty or a file of another program")
                if self._only(connection, "PRAGMA user_version") != VERSION:
                    raise self._error("was written by another version of causalarms")
                yield connection
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            if "locked" in str(error):
                raise StudyBusyError(f"{self.path} is locked by another process") from error
            raise self._error(f"cannot be used ({error})") from error

    def _only(self, connection: sqlite3.Connection, query: str) -> object:
        row = connection.execute(query).fetchone()
        if row is None:
            raise self._error("is damaged (a row is missing)")
        return row[0]

    def _token(self, row: tuple[object, ...]) -> Token:
        if not all(isinstance(value, str) for value in row):
            raise self._error("is damaged (a token is not text)")
        token = Token(*row)  # type: ignore[arg-type]
        if token.role not in get_args(Role):
            raise self._error(
                f"is damaged (token {token.name!r:.80} has the role {token.role!r:.40}; there are "
                f"{', '.join(get_args(Role))})"
            )
        return token

    def _error(self, what: str) -> TokenFileError:
        study = shlex.quote(str(self.study))
        return TokenFileError(
            f"{self.path} {what}, so nobody gets in. Restore it, or move it away and make a new "
            f"token: causalarms serve-token {study} operator NAME"
        )


def real_path(path: Path) -> Path:
    """A symbolic link to a study is that study: one log, one file of tokens."""
    return Path(os.path.realpath(path))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
