"""The running service: studies, tail, views and tokens of one file."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from causalarms.errors import CausalArmsError, StudyBusyError, TokenFileError
from causalarms.service import shapes
from causalarms.service.desk import Desk, Waiting
from causalarms.service.live import Head, Viewers
from causalarms.service.security import allowed_hosts, is_loopback
from causalarms.service.tail import Moment, Tail
from causalarms.service.tokens import TokenFile, real_path

log = logging.getLogger("causalarms.service")
SHORTEST_PAUSE = 0.5  # seconds between two looks
REACH_SECONDS = 10.0  # until what was written must be readable
AGAIN_SECONDS = 2.0  # after an error
CHECK_SECONDS = 10.0  # how old checks may become while results come in
TOKEN_CHECK_SECONDS = 1.0  # until the streams of a revoked token end
REST = 4.0  # pauses are so many times as long as a look took: asking needs the processor, too


@dataclass(frozen=True)
class Options:
    host: str = "127.0.0.1"
    port: int = 8000
    allow_hosts: tuple[str, ...] = ()
    root_path: str = ""  # where a proxy shows the service, without a slash at the end
    most_viewers: int = 200
    tls_cert: Path | None = None
    tls_key: Path | None = None

    @property
    def why_token(self) -> str | None:
        """Why a token is needed even if the study has none; None if it is not."""
        if not is_loopback(self.host):
            return f"{self.host} can be reached from other machines"
        given = "--root-path" if self.root_path.strip("/") else "--allow-host"
        if self.root_path.strip("/") or self.allow_hosts:
            return f"{given} says that requests of other machines come through a proxy"
        return None


class Service:
    """Opens the study, compiles and learns; `running` brings it to life."""

    def __init__(self, path: Path, options: Options, waiting: Waiting = nullcontext) -> None:
        self.path = real_path(path)
        self.options = options
        self.root_path = _root(options.root_path)
        self.hosts = allowed_hosts(options.host, options.allow_hosts)
        self.tokens = TokenFile(self.path)
        self.tokens.check()
        self.desk = Desk(self.path)
        self.tail = Tail(self.path)
        self.viewers = Viewers(options.most_viewers)
        self.views = self.desk.warm(waiting)
        self.checks = shapes.Checks(0, "the model is being tested", [], [], "")
        self._checked = -CHECK_SECONDS  # when
        self._changed = asyncio.Event()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def moment(self) -> Moment:
        """As of now; an error where the log cannot be read any more."""
        if self.tail.trouble is not None:
            raise self.tail.trouble
        return self.tail.moment

    @property
    def cookie(self) -> str:
        """Studies of one machine do not share it: cookies do not know ports."""
        return f"causalarms-{self.tail.moment.first_hash[:12]}"

    async def reach(self, number: int) -> None:
        """Wait until what was just written can be read."""
        if self.tail.moment.number >= number:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((number, done))
        self.tail.wake()
        try:
            await asyncio.wait_for(done, REACH_SECONDS)
        except TimeoutError:
            raise self.tail.trouble or StudyBusyError(
                f"{self.path}: event {number} is written, but cannot be read yet"
            ) from None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def announce() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody listens
                loop.call_soon_threadsafe(self._announce)

        self.tail.start(announce)
        tasks = [
            asyncio.create_task(self._keep_looking()),
            asyncio.create_task(self._end_refused_streams()),
        ]
        self._announce()
        try:
            yield
        finally:
            self.viewers.close()
            for task in tasks:
                task.cancel()
            self.tail.close()
            self.desk.close()

    def _announce(self) -> None:
        number = self.tail.moment.number
        for wanted, done in self._waiting:
            if wanted <= number and not done.done():
                done.set_result(None)
        self._waiting = [(wanted, done) for wanted, done in self._waiting if not done.done()]
        self._changed.set()
        self._show()

    def _show(self) -> None:
        self.viewers.show(Head(self.tail.moment.number, self.views.as_of, self.checks.as_of))

    async def _keep_looking(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._look_and_check()
            except Exception as error:
                if not isinstance(error, CausalArmsError):  # of those, requests say what is wrong
                    log.exception("what is believed could not be computed")
                await asyncio.sleep(AGAIN_SECONDS)
                self._changed.set()

    async def _end_refused_streams(self) -> None:
        """A stream begins with a check of its token; this one repeats it."""
        while True:
            await asyncio.sleep(TOKEN_CHECK_SECONDS)
            if len(self.viewers) == 0:
                continue
            with suppress(StudyBusyError):
                try:
                    valid = self.tokens.credentials()
                except TokenFileError:
                    valid = set()
                self.viewers.keep(valid)

    async def _look_and_check(self) -> None:
        """Views first; checks when nothing is new, or when they are old."""
        if self.tail.moment.learned > self.views.as_of:
            self.views = await self.desk.look(self.views.far)
            self._show()
            await asyncio.sleep(max(SHORTEST_PAUSE, REST * self.desk.look_seconds))
            if self.tail.moment.learned > self.views.as_of:
                self._changed.set()
        old = time.monotonic() > self._checked + CHECK_SECONDS
        if self.checks.as_of < self.views.as_of and (old or not self._changed.is_set()):
            self.checks, far = await self.desk.check(self.views)
            self.views = self.views._replace(far=far)
            self._show()
            self._checked = time.monotonic()

    def alarms(self) -> list[shapes.Alarm]:
        """Those of the views, with what was acknowledged since."""
        seen = self.moment.ledger.acknowledged
        return [
            shapes.Alarm(
                a.alarm, a.trial, a.regime, a.node, a.changed_after, a.statistic, a.threshold,
                a.alarm in seen, seen.get(a.alarm, ""),
            )
            for a in self.views.alarms
        ]  # fmt: skip


def _root(given: str) -> str:
    path = "/" + given.strip("/")
    return "" if path == "/" else path
