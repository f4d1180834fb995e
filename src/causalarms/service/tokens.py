"""Tokens of a study: who may look, ask and tell, or do everything.

The file beside the study holds their SHA-256 only, and only its owner may read it. It is read again
when it changes, so tokens come and go while the service runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from datetime import UTC, datetime
from hmac import compare_digest
from pathlib import Path
from typing import NamedTuple, get_args

from causalarms.errors import StudyError
from causalarms.service.roles import Role

ENDING = ".tokens"
PREFIX = "ca_"


class Token(NamedTuple):
    role: Role
    name: str
    digest: str
    made: str


class TokenFile:
    def __init__(self, study: Path) -> None:
        self.path = study.with_name(study.name + ENDING)
        self._read_at: tuple[int, int, int] | None = None
        self._tokens: list[Token] = []

    def all(self) -> list[Token]:
        """As the file is now."""
        try:
            now = self.path.stat()
        except FileNotFoundError:
            self._read_at, self._tokens = None, []
            return []
        stamp = (now.st_mtime_ns, now.st_size, now.st_ino)
        if stamp != self._read_at:
            if os.name == "posix" and now.st_mode & 0o077:
                raise StudyError(
                    f"others can read {self.path}: chmod 600 it, and make new tokens if they did"
                )
            self._tokens, self._read_at = self._parsed(), stamp
        return self._tokens

    def find(self, given: str) -> Token | None:
        """Whose token this is; takes as long for a wrong one as for a right one."""
        digest, found = _digest(given), None
        for token in self.all():
            if compare_digest(token.digest, digest):
                found = token
        return found

    def make(self, role: str, name: str) -> str:
        """A new token, which nobody can read again later."""
        if role not in get_args(Role):
            raise StudyError(
                f"there is no role {role!r:.40}; there are {', '.join(get_args(Role))}"
            )
        if not name.strip() or len(name) > 200 or not name.isprintable():
            raise StudyError(f"a token needs a name that can be printed, not {name!r:.80}")
        tokens = self.all()
        if any(token.name == name for token in tokens):
            raise StudyError(f"there is a token {name!r} already: revoke it, or take another name")
        text = PREFIX + secrets.token_urlsafe(32)
        made = datetime.now(UTC).isoformat(timespec="seconds")
        self._write([*tokens, Token(role, name, _digest(text), made)])  # type: ignore[arg-type]
        return text

    def revoke(self, name: str) -> None:
        tokens = self.all()
        left = [token for token in tokens if token.name != name]
        if len(left) == len(tokens):
            names = ", ".join(token.name for token in tokens) or "none"
            raise StudyError(f"there is no token {name!r:.80}; there are: {names}")
        self._write(left)

    def _parsed(self) -> list[Token]:
        try:
            records = json.loads(self.path.read_text(encoding="utf-8"))
            return [
                Token(r["role"], str(r["name"]), str(r["sha256"]), str(r["made"])) for r in records
            ]
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise StudyError(f"{self.path} is no file of tokens: {error!r:.80}") from error

    def _write(self, tokens: list[Token]) -> None:
        records = [
            {"role": t.role, "name": t.name, "sha256": t.digest, "made": t.made} for t in tokens
        ]
        draft = self.path.with_name(self.path.name + ".new")
        draft.unlink(missing_ok=True)
        try:
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "w", encoding="utf-8") as out:
                json.dump(records, out, indent=1)
                out.flush()
                os.fsync(out.fileno())
            draft.replace(self.path)
        except OSError as error:
            raise StudyError(f"{self.path} cannot be written: {error.strerror}") from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
