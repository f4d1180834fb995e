"""The threads of the service: one asks, one tells, one computes views; no one blocks another.

Asking learns, which takes long; telling only writes. One `Study` does both: its methods that write
do not wait for those that learn. A second one computes the views from what the log follower has
read. Two more threads need neither: one for quick work, one for explanations of old trials, each
of which learns the log again.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from causalarms.errors import CausalArmsError, LearningWarning
from causalarms.rng import stream
from causalarms.service.records import Checks
from causalarms.service.request import RefusedError
from causalarms.service.views import (
    Far,
    FarValues,
    Layout,
    Views,
    best_view,
    checks_view,
    compute_views,
)
from causalarms.study import Study, log
from causalarms.study.explain import explain, explain_by, rounds_known
from causalarms.study.inputs import Ending
from causalarms.study.learner import StudyPolicy, policy_of
from causalarms.study.ledger import Ledger, TrialRequest
from causalarms.study.reader import Snapshot
from causalarms.study.records import Explanation, Trial
from causalarms.study.settings import FORMAT
from causalarms.study.store import MemoryStore

if TYPE_CHECKING:
    from causalarms.service.live import LogFollower, LogSnapshot

Found = TypeVar("Found")
Item = TypeVar("Item")
Waiting = Callable[[str], AbstractContextManager[object]]  # tells a person what takes long
WARM_UP_ROUNDS = 12
MAX_BATCH_SIZE = 64  # requests in one transaction
MAX_WAITING_EXPLANATIONS = 4  # each may take seconds
MAX_WAITING_PREDICTIONS = 16
KEPT_EXPLANATIONS = 256  # about 5 kB each
CLOSING_SECONDS = 1.0  # for work under way when the service ends


class WriteResult(NamedTuple, Generic[Found]):
    """What a write returned, and the newest event after it."""

    found: Found
    number: int


class StudyThreads:
    """All methods but `prepare` and `close` are called on the event loop."""

    def __init__(self, study: ServedStudy, follower: LogFollower) -> None:
        self._study = study
        self._followed = FollowedStudy(follower)
        self._follower = follower
        self._layout, self._far_values = Layout(), FarValues()
        self._asking, self._telling = OneThread("asker"), OneThread("teller")
        self._reading, self._background = OneThread("reader"), OneThread("background")
        self._explaining = OneThread("explainer")
        self._predictions = SharedWork[Any](
            self._background, "predictions", MAX_WAITING_PREDICTIONS
        )
        self._newest = SharedWork[Explanation | None](
            self._reading, "explanations of new trials", MAX_WAITING_EXPLANATIONS
        )
        self._old = SharedWork[Explanation](
            self._explaining,
            "explanations of old trials",
            MAX_WAITING_EXPLANATIONS,
            KEPT_EXPLANATIONS,
        )
        self._asks = Batches(self._asking, self._ask_turn, lambda wanted: wanted.worker)
        self._endings = Batches(self._telling, self._finish, lambda ending: ending.trial)
        self.views_seconds = 0.0  # that computing the last views took

    def prepare(self, waiting: Waiting) -> Views:
        """Compile and learn before the port opens, so that no request waits for it."""
        settings, results = self._study.settings, len(self._study.ledger().order)
        message = (
            f"compiling the model for {settings.n_nodes} nodes"
            + (f" and learning from {results} results" if results else "")
            + ": this takes about half a minute the first time"
        )
        compiles = policy_of(settings).has_model
        with waiting(message) if compiles else nullcontext():
            # Compiled code is shared by all studies of the process, also by those made later.
            warm_up(self._study)
            _ = self._study.policy
            return self._compute_views({})

    async def ask(
        self, n: int, worker: str, context: Mapping[str, float]
    ) -> tuple[list[Trial], int]:
        return await self._asks.run(TrialRequest(worker, n, context))

    async def finish(self, ending: Ending) -> WriteResult[list[str]]:
        """What there is to say to the person who ended the trial."""
        return await self._endings.run(ending)

    async def write(self, act: Callable[[Study], Found]) -> WriteResult[Found]:
        return await self._telling.run(lambda: WriteResult(act(self._study), self._study.seen))

    async def compute_views(self, far: Far) -> Views:
        return await self._reading.run(lambda: self._compute_views(far))

    async def compute_checks(self, views: Views) -> tuple[Checks, Far]:
        """Model checks and far values take longest and change least."""
        return await self._reading.run(
            lambda: (checks_view(views), self._far_values.of(views.ledger))
        )

    async def explain(self, ledger: Ledger, number: int, views: Views) -> Explanation:
        """A new trial is explained by what is believed now; an older one by learning again."""
        rounds = rounds_known(ledger, number)
        # A trial is closed once, and only a revision changes what was known before it.
        key = (number, ledger.trial(number).state, ledger.revision)

        def now() -> Explanation:
            return explain_by(views.beliefs, ledger, number, [v.message for v in views.left_out])

        def newest() -> Explanation | None:
            study = self._followed
            # The trial may be newer than the views: learn up to the newest snapshot.
            study.snapshot = self._follower.snapshot
            beliefs, remarks = study.beliefs(), [out.message for out in study.left_out()]
            if len(beliefs.values) != rounds:
                return None
            return explain_by(beliefs, study.ledger(), number, remarks)

        def again() -> Explanation:
            return explain(ledger, number, StudyPolicy(ledger.settings).after(ledger, rounds))

        believed = len(views.beliefs.values)
        if rounds == believed and ledger.revision == views.ledger.revision:
            # Nothing was learned since it was asked: the views hold the same belief.
            return await self.predict(now)
        found = await self._newest.run(key, newest) if rounds > believed else None
        return await self._old.run(key, again) if found is None else found

    async def predict(self, function: Callable[[], Found]) -> Found:
        """Quick work on the views; RefusedError (503) if too much of it waits already."""
        found: Found = await self._predictions.run(object(), function)
        return found

    async def run_in_background(self, function: Callable[[], Found]) -> Found:
        """Work that needs neither study."""
        return await self._background.run(function)

    def close(self) -> None:
        until = time.monotonic() + CLOSING_SECONDS
        for thread in (
            self._telling, self._asking, self._reading, self._background, self._explaining
        ):  # fmt: skip
            thread.close(max(0.0, until - time.monotonic()))
        self._study.close()
        self._followed.close()

    def _ask_turn(
        self, wanted: Sequence[TrialRequest]
    ) -> list[tuple[list[Trial], int] | Exception | NotYet]:
        """One slice of time: a worker that asks for many does not block one that asks for one."""
        # Trials are written slice by slice, so that tells get their turn in between.
        self._study.ask_turn(wanted)
        return [
            NotYet() if one.missing else (self._study.trials_of(one), self._study.seen)
            for one in wanted
        ]

    def _finish(
        self, endings: Sequence[Ending]
    ) -> list[WriteResult[list[str]] | Exception | NotYet]:
        study = self._study
        return [
            refused or WriteResult(study.said_of(ending), study.seen)
            for ending, refused in zip(endings, study.finish(endings), strict=True)
        ]

    def _compute_views(self, far: Far) -> Views:
        began = time.perf_counter()
        self._followed.snapshot = self._follower.snapshot
        views = compute_views(self._followed, self._layout, far)
        self.views_seconds = time.perf_counter() - began
        return views


class ServedStudy(Study):
    """Warns of nothing: what `tell` returns goes into the answer."""

    def _warn(self, message: str, kind: type[Warning] = LearningWarning) -> None:
        pass

    def said_of(self, ending: Ending) -> list[str]:
        """As `tell` returns it, of an ending that `finish` has just written."""
        return [] if ending.values is None else self._warn_of(ending.trial)


class FollowedStudy(Study):
    """Learns from the ledger of the log follower: an event is not folded once more for the views.

    It is at `snapshot` until another one is set, so that all views are of one moment.
    """

    def __init__(self, follower: LogFollower) -> None:
        super().__init__(follower.store)
        self.snapshot = follower.snapshot

    @property
    def snapshot(self) -> LogSnapshot:
        return self._snapshot

    @snapshot.setter
    def snapshot(self, snapshot: LogSnapshot) -> None:
        self._snapshot, self._ledger = snapshot, snapshot.ledger

    @property
    def seen(self) -> int:
        return self._snapshot.number

    def _snapshot_now(self) -> Snapshot:
        snapshot = self._snapshot
        return Snapshot(snapshot.number, bytes.fromhex(snapshot.hash), snapshot.ledger)


def warm_up(study: Study) -> None:
    """Play some rounds in memory, so that every kernel is compiled."""
    twin = ServedStudy(MemoryStore())
    twin._write(log.CREATED, {"format": FORMAT, "settings": study.settings.as_dict()})
    # Values do not matter, only that every code path is compiled for this number of nodes.
    noise = stream(0, "practice")
    for _ in range(WARM_UP_ROUNDS):
        trial = twin.ask()
        twin.tell(trial, noise.normal(size=len(twin.nodes)))
    # A policy without a model has no best, graph or explanation to compile.
    with suppress(CausalArmsError):
        best_view(twin.beliefs(), 0)
        twin.graph()
        twin.explain(trial)


# -- how requests wait for a thread ----------------------------------------------------------------


class OneThread:
    """Does one thing after the other, for callers on the event loop.

    A daemon thread: its work may take long, and ending the process must not wait for it.
    """

    def __init__(self, name: str) -> None:
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._queue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, function: Callable[[], Found]) -> Future[Found]:
        future: Future[Found] = Future()
        self._queue.put((future, function))
        return future

    async def run(self, function: Callable[[], Found]) -> Found:
        return await asyncio.wrap_future(self.submit(function))

    def close(self, seconds: float) -> None:
        """Finish what is under way, if that does not take longer."""
        # None ends the thread after everything that was queued before it.
        self._queue.put(None)
        self._thread.join(seconds)

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            future, function = task
            if not future.set_running_or_notify_cancel():
                continue  # the client has gone before it began
            try:
                future.set_result(function())
            # BaseException: a thread that dies silently would leave every later request waiting.
            except BaseException as error:
                future.set_exception(error)


class NotYet:
    """The item needs another turn, after those that came in meanwhile."""


class Batches(Generic[Item, Found]):
    """Requests that came in while a thread was busy are served together, in one transaction.

    A write waits for the disk. With several workers most requests come in during that wait, and
    one wait is enough for all of them. `serve` returns what was found, an error, or `NotYet`.
    """

    def __init__(
        self,
        thread: OneThread,
        serve: Callable[[Sequence[Item]], list[Found | Exception | NotYet]],
        name_of: Callable[[Item], object],  # two items of one name never share a batch
    ) -> None:
        self._thread, self._serve, self._name_of = thread, serve, name_of
        self._waiting: deque[tuple[Item, Future[Found]]] = deque()

    async def run(self, item: Item) -> Found:
        future: Future[Found] = Future()
        self._wait(item, future)
        return await asyncio.wrap_future(future)

    def _wait(self, item: Item, future: Future[Found]) -> None:
        self._waiting.append((item, future))
        self._thread.submit(self._next)  # as many turns as items: none is left over

    def _next(self) -> None:
        taken = self._take()
        if not taken:
            return
        found = self._outcomes([item for item, _ in taken])
        for (item, future), outcome in zip(taken, found, strict=True):
            if isinstance(outcome, NotYet):
                self._wait(item, future)
            elif isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    def _take(self) -> list[tuple[Item, Future[Found]]]:
        taken: list[tuple[Item, Future[Found]]] = []
        names: set[object] = set()
        while self._waiting and len(taken) < MAX_BATCH_SIZE:
            item, future = self._waiting[0]
            # The order of requests must be kept, so the batch ends here instead of skipping one.
            if self._name_of(item) in names:
                break
            self._waiting.popleft()
            # a future that cannot be set running was cancelled: its client has gone
            if future.running() or future.set_running_or_notify_cancel():
                taken.append((item, future))
                names.add(self._name_of(item))
        return taken

    def _outcomes(self, items: Sequence[Item]) -> list[Found | Exception | NotYet]:
        """If a batch fails, each item is tried alone: only one of them may be to blame."""
        try:
            return self._serve(items)
        except Exception as error:
            if len(items) == 1:
                return [error]
        return [outcome for item in items for outcome in self._outcomes([item])]


class SharedWork(Generic[Found]):
    """Requests with equal keys share one piece of work. All methods are called on the event loop.

    Queued work is cancelled when the last client that waits for it has gone; work that has begun
    is finished. The newest `kept` answers are kept.
    """

    def __init__(self, thread: OneThread, name: str, max_waiting: int, kept: int = 0) -> None:
        self._thread, self._name = thread, name
        self._max_waiting, self._max_kept = max_waiting, kept
        self._under_way: dict[Hashable, _UnderWay[Found]] = {}
        self._kept: dict[Hashable, Found] = {}  # oldest first

    async def run(self, key: Hashable, function: Callable[[], Found]) -> Found:
        """RefusedError (503) if too much waits already."""
        if key in self._kept:
            return self._keep(key, self._kept.pop(key))
        work = self._under_way.get(key) or self._begin(key, function)
        work.clients += 1
        try:
            # A client that hangs up cancels its own wait, not the work that others wait for.
            return await asyncio.shield(asyncio.wrap_future(work.future))
        finally:
            work.clients -= 1
            if not work.clients and work.future.cancel():  # False if it has begun
                self._end(key, work)

    def _begin(self, key: Hashable, function: Callable[[], Found]) -> _UnderWay[Found]:
        if len(self._under_way) > self._max_waiting:  # one of them is not waiting but under way
            raise RefusedError(
                503, "too-much-work", "Too much is being computed",
                f"{len(self._under_way)} {self._name} are being computed or wait for it, and no "
                "more may wait: try again in a few seconds", {"Retry-After": "5"},
            )  # fmt: skip
        loop = asyncio.get_running_loop()
        work = self._under_way[key] = _UnderWay(self._thread.submit(function))

        def done(future: Future[Found]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(self._end, key, work)

        work.future.add_done_callback(done)
        return work

    def _end(self, key: Hashable, work: _UnderWay[Found]) -> None:
        # The callback and the last client may both end the same work.
        if self._under_way.get(key) is not work:
            return
        del self._under_way[key]
        if not work.future.cancelled() and work.future.exception() is None:
            self._keep(key, work.future.result())

    def _keep(self, key: Hashable, found: Found) -> Found:
        self._kept[key] = found
        while len(self._kept) > self._max_kept:
            # Dicts keep insertion order, so the first key is the oldest.
            del self._kept[next(iter(self._kept))]
        return found


class _UnderWay(Generic[Found]):
    def __init__(self, future: Future[Found]) -> None:
        self.future = future
        self.clients = 0  # that wait for it
