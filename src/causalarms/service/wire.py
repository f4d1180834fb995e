"""Requests to a service: HTTP of the standard library, answers as the records of the API.

A request that got no answer is sent again only if that cannot do anything twice: reading, results
(PUT), asking (a worker gets its pending trials first) and every request with a key.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from causalarms import errors
from causalarms.errors import RemoteStudyError, StudyError

URN = "urn:causalarms:"
Answer = TypeVar("Answer")


class Kind(NamedTuple):
    status: int
    slug: str
    title: str


STUDY_KINDS: dict[type[Exception], Kind] = {  # the first class of an error's ancestry that is here
    errors.UnknownTrialError: Kind(404, "unknown-trial", "There is no such trial"),
    errors.UnknownAlarmError: Kind(404, "unknown-alarm", "There is no such alarm"),
    errors.ClosedTrialError: Kind(409, "closed-trial", "The trial is not pending"),
    errors.NoResultError: Kind(409, "no-result", "The trial has no result"),
    errors.NotAskedError: Kind(409, "not-asked", "Nobody asked for the trial"),
    errors.TooEarlyError: Kind(409, "too-early", "Nothing is known yet"),
    errors.RepeatedKeyError: Kind(422, "repeated-key", "The key belongs to another request"),
    errors.NodeValueError: Kind(422, "wrong-value", "A value cannot be used"),
    errors.StudyBusyError: Kind(503, "busy", "The study's file is locked"),
    errors.StudyFileError: Kind(503, "file", "The study's file cannot be used"),
    errors.ChangedStudyError: Kind(503, "changed", "The study's file was changed"),
    errors.TokenFileError: Kind(503, "tokens", "The tokens cannot be read"),
    errors.DiskFullError: Kind(507, "disk-full", "The disk is full"),
    errors.CorruptStudyError: Kind(503, "damaged", "The study's file is damaged"),
    errors.CausalArmsError: Kind(422, "refused", "The study refuses this"),
}
API = "/api/v1"
ANSWER_SECONDS = 120.0  # a large study may have to learn first
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 1.0
LOST = (OSError, http.client.HTTPException)
BY_SLUG = {kind.slug: error for error, kind in STUDY_KINDS.items()}


class Reply(NamedTuple, Generic[Answer]):
    status: int
    body: Answer
    tried_before: bool  # an earlier request may have been done without an answer


class Wire:
    """One connection, kept open; threads take turns."""

    def __init__(self, url: str, token: str | None, patience: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RemoteStudyError(
                f"{url!r} is not the address of a service, such as http://HOST:PORT/"
            )
        try:
            self._port = parts.port
        except ValueError:
            raise RemoteStudyError(f"{url!r} has no valid port") from None
        self.url = url
        self._secure, self._host = parts.scheme == "https", parts.hostname
        self._root = parts.path.rstrip("/")
        self._headers = {"Accept": "application/json"}
        if token:
            if not token.isascii() or not token.isprintable():
                raise RemoteStudyError("the token has characters that are not allowed in a token")
            self._headers["Authorization"] = f"Bearer {token}"
        self._patience = patience
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str, answer: type[Answer]) -> Answer:
        return self.send("GET", path, answer).body

    def send(
        self,
        method: str,
        path: str,
        answer: type[Answer],
        body: msgspec.Struct | None = None,
        *,
        key: str | None = None,
        patience: float | None = None,
    ) -> Reply[Answer]:
        """The answer, of this type; if the service refuses, the error of the study there."""
        headers = dict(self._headers)
        text = None
        if body is not None:
            # msgspec would refuse lone surrogates here; the service says in words why it does.
            text = json.dumps(msgspec.to_builtins(body), allow_nan=False).encode()
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        until = time.monotonic() + (self._patience if patience is None else patience)
        pause, tried = FIRST_PAUSE_SECONDS, False
        while True:
            try:
                status, kind, content = self._once(method, path, text, headers)
            except LOST as error:
                # A refused connection reached nobody; any other loss may have been carried out.
                tried = tried or not isinstance(error, ConnectionRefusedError)
                if time.monotonic() + pause > until or _hopeless(error):
                    raise self._unreachable(error) from error
            else:
                if status != 503 or time.monotonic() + pause > until:
                    if status >= 400:
                        raise self._refusal(status, self._understood(status, kind, content, dict))
                    return Reply(status, self._understood(status, kind, content, answer), tried)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def close(self) -> None:
        with self._lock:
            self._hang_up()

    def _once(
        self, method: str, path: str, text: bytes | None, headers: dict[str, str]
    ) -> tuple[int, str, bytes]:
        with self._lock:
            fresh = self._connection is None
            connection = self._connection or self._connect()
            self._connection = connection
            try:
                try:
                    connection.request(method, self._root + API + path, text, headers)
                    answer = connection.getresponse()
                except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                    self._hang_up()
                    # It was idle for too long; only reading can be sent again right here.
                    if fresh or method != "GET":
                        raise
                    connection = self._connection = self._connect()
                    connection.request(method, self._root + API + path, text, headers)
                    answer = connection.getresponse()
                content = answer.read()
            except BaseException:
                self._hang_up()
                raise
            if answer.will_close:
                self._hang_up()
            return answer.status, answer.getheader("Content-Type", ""), content

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        made = kind(self._host, self._port, timeout=ANSWER_SECONDS)
        made.connect()
        # Without it, a small request waits up to 40 ms for the acknowledgement of the last one.
        made.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _unreachable(self, error: Exception) -> RemoteStudyError:
        if isinstance(error, ssl.SSLError):
            return RemoteStudyError(f"{self.url} cannot be reached safely: {error}")
        if isinstance(error, TimeoutError):
            return RemoteStudyError(
                f"{self.url} does not answer within {ANSWER_SECONDS:.0f} seconds"
            )
        if isinstance(error, ConnectionRefusedError):
            return RemoteStudyError(
                f"nobody answers at {self.url}: is `causalarms serve` running there?"
            )
        words = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return RemoteStudyError(f"{self.url} cannot be reached: {words}")

    def _understood(self, status: int, kind: str, content: bytes, answer: type[Answer]) -> Answer:
        try:
            return msgspec.json.decode(content, type=answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # Only an object may be the answer of a service, of another version then.
            if isinstance(error, msgspec.ValidationError) and content.lstrip()[:1] == b"{":
                version = json.loads(content).get("version", "unknown")
                raise RemoteStudyError(
                    f"{self.url} is not a causalarms service of a version that this client knows "
                    f"(its version: {version!r:.40}): {error!s:.200}"
                ) from error
            raise RemoteStudyError(
                f"{self.url} is not a causalarms service: it answers {status} with "
                f"{kind.partition(';')[0] or 'nothing'!r}"
            ) from None

    def _refusal(self, status: int, problem: dict[str, Any]) -> StudyError:
        """The error that the study raised over there."""
        detail = str(problem.get("detail") or problem)
        # By the type, never by the words: they may change with every version.
        slug = str(problem.get("type", "")).removeprefix(URN)
        kind = BY_SLUG.get(slug)
        if kind is not None and issubclass(kind, errors.TrialError):
            return kind(detail, int(problem.get("trial", -1)), str(problem.get("state", "")))
        if kind is errors.UnknownAlarmError:
            return errors.UnknownAlarmError(detail, int(problem.get("alarm", -1)))
        if kind is errors.NodeValueError:
            return errors.NodeValueError(detail, str(problem.get("node", "")))
        if kind is not None and issubclass(kind, StudyError):
            return kind(detail)
        if slug == "not-found":
            return RemoteStudyError(
                f"{self.url} does not know this request ({detail}): its causalarms may be older "
                "than this one"
            )
        if status in (401, 403, 421):
            return RemoteStudyError(f"{self.url} refuses: {detail}")
        return StudyError(detail)


def _hopeless(error: Exception) -> bool:
    """Waiting does not help."""
    return isinstance(error, ssl.SSLCertVerificationError | socket.gaierror)
