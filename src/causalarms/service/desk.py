"""Three studies on one file, a thread each: who asks never keeps those who tell waiting.

A study is locked while it learns. So one object asks (and learns to), one writes results and never
learns, one learns for the views. Those who wait for one of them are served together. What needs
none of them has two more threads: one for what is quick, one for explanations of old trials, each
of which learns the log again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from causalarms.errors import CausalArmsError, LearningWarning
from causalarms.rng import stream
from causalarms.service.batches import Batches, NotYet
from causalarms.service.far import Far, FarValues
from causalarms.service.layout import Layout
from causalarms.service.one_thread import OneThread
from causalarms.service.shapes import Checks
from causalarms.service.shared_work import SharedWork
from causalarms.service.views import Views, best_view, checks_view, look
from causalarms.study import Study, log
from causalarms.study.asking import Wanted
from causalarms.study.explain import explain, explain_by, rounds_known
from causalarms.study.inputs import Ending
from causalarms.study.learner import Learner, policy_of
from causalarms.study.ledger import Ledger, Trial
from causalarms.study.settings import FORMAT
from causalarms.study.store import MemoryStore

Found = TypeVar("Found")
Waiting = Callable[[str], AbstractContextManager[object]]  # shows people what takes long
PRACTICE_ROUNDS = 12
EXPLANATIONS_WAITING = 4  # more are refused: each may take seconds
EXPLANATIONS_KEPT = 256  # about 5 kB each
PREDICTIONS_WAITING = 16
PATIENCE = 1.0  # seconds to finish what is under way when the service ends


class Written(NamedTuple, Generic[Found]):
    """What a write gave, what to tell the person, and the newest event after it."""

    found: Found
    warnings: list[str]
    number: int


class ServedStudy(Study):
    """Keeps its warnings for the answer."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.warned: list[str] = []

    def _warn(self, message: str, kind: type[Warning] = LearningWarning) -> None:
        self.warned.append(message)

    def warnings_of(self, ending: Ending) -> list[str]:
        """What to tell whoever ended this trial just now."""
        self.warned = []
        if ending.values is not None:
            self._warn_of(ending.trial)
        return self.warned


class Desk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._teller = ServedStudy.open(path)
        self._asker = ServedStudy.open(path)
        self._reader = Study.open(path, read_only=True)
        self._layout, self._far_values = Layout(), FarValues()
        self._asking, self._telling = OneThread("asker"), OneThread("teller")
        self._reading, self._thinking = OneThread("reader"), OneThread("thinker")
        self._explaining = OneThread("explainer")
        self._predictions = SharedWork[Any](self._thinking, "predictions", PREDICTIONS_WAITING)
        new, old = "explanations of new trials", "explanations of old trials"
        self._newest = SharedWork[dict[str, Any] | None](self._reading, new, EXPLANATIONS_WAITING)
        self._old = SharedWork[dict[str, Any]](
            self._explaining, old, EXPLANATIONS_WAITING, EXPLANATIONS_KEPT
        )
        self._asks = Batches(self._asking, self._ask_turn, lambda wanted: wanted.worker)
        self._endings = Batches(self._telling, self._finish, lambda ending: ending.trial)
        self.look_seconds = 0.0  # that the last look took

    def warm(self, waiting: Waiting) -> Views:
        """Compile and learn before anybody waits for it."""
        settings, results = self._teller.settings, len(self._teller.ledger().order)
        words = (
            f"compiling the model for {settings.n_nodes} nodes"
            + (f" and learning from {results} results" if results else "")
            + ": this takes about half a minute the first time"
        )
        compiles = policy_of(settings).has_model
        with waiting(words) if compiles else nullcontext():
            practise(self._teller)
            _ = self._asker.policy
            return self._look({})

    async def ask(self, n: int, worker: str) -> tuple[list[Trial], int]:
        return await self._asks.run(Wanted(worker, n))

    async def finish(self, ending: Ending) -> Written[None]:
        return await self._endings.run(ending)

    async def write(self, act: Callable[[Study], Found]) -> Written[Found]:
        def write() -> Written[Found]:
            self._teller.warned = []
            found = act(self._teller)
            return Written(found, self._teller.warned, self._teller.seen)

        return await self._telling.run(write)

    async def look(self, far: Far) -> Views:
        return await self._reading.run(lambda: self._look(far))

    async def check(self, views: Views) -> tuple[Checks, Far]:
        """What takes longest and changes least."""
        return await self._reading.run(
            lambda: (checks_view(views), self._far_values.of(views.ledger))
        )

    async def explain(self, ledger: Ledger, number: int, views: Views) -> dict[str, Any]:
        """Of a new trial from what is believed now; of an older one by learning again."""
        rounds = rounds_known(ledger, number)
        # A trial is closed once, and only a revision changes what was known before it.
        key = (number, ledger.trial(number).state, ledger.revision)

        def now() -> dict[str, Any]:
            return explain_by(views.beliefs, ledger, number, [v.message for v in views.left_out])

        def newest() -> dict[str, Any] | None:
            with self._reader.learning():
                if len(self._reader.beliefs().values) != rounds:
                    return None
                return self._reader.explain(number)

        def again() -> dict[str, Any]:
            assert ledger.settings is not None
            return explain(ledger, number, Learner(ledger.settings).after(ledger, rounds))

        believed = len(views.beliefs.values)
        if rounds == believed and ledger.revision == views.ledger.revision:
            return await self.predict(now)
        found = await self._newest.run(key, newest) if rounds > believed else None
        return await self._old.run(key, again) if found is None else found

    async def predict(self, function: Callable[[], Found]) -> Found:
        """What is computed from the views, soon."""
        found: Found = await self._predictions.run(object(), function)
        return found

    async def think(self, function: Callable[[], Found]) -> Found:
        """What takes long and needs none of the three."""
        return await self._thinking.run(function)

    def close(self) -> None:
        until = time.monotonic() + PATIENCE
        threads = (
            self._telling, self._asking, self._reading, self._thinking, self._explaining
        )  # fmt: skip
        for thread in threads:
            thread.close(max(0.0, until - time.monotonic()))
        for study in (self._teller, self._asker, self._reader):
            study.close()

    def _ask_turn(
        self, wanted: Sequence[Wanted]
    ) -> list[tuple[list[Trial], int] | Exception | NotYet]:
        """A worker that wants many trials keeps nobody waiting who wants one."""
        self._asker.ask_turn(wanted)
        return [
            NotYet() if one.missing else (self._asker.trials_of(one), self._asker.seen)
            for one in wanted
        ]

    def _finish(self, endings: Sequence[Ending]) -> list[Written[None] | Exception | NotYet]:
        return [
            refused or Written(None, self._teller.warnings_of(ending), self._teller.seen)
            for ending, refused in zip(endings, self._teller.finish(endings), strict=True)
        ]

    def _look(self, far: Far) -> Views:
        began = time.perf_counter()
        views = look(self._reader, self._layout, far)
        self.look_seconds = time.perf_counter() - began
        return views


def practise(study: Study) -> None:
    """Play a few rounds of nothing in memory, so that everything is compiled."""
    twin = ServedStudy(MemoryStore())
    twin._write(log.CREATED, {"format": FORMAT, "settings": study.settings.as_dict()})
    noise = stream(0, "practice")
    for _ in range(PRACTICE_ROUNDS):
        trial = twin.ask()
        twin.tell(trial, noise.normal(size=len(twin.nodes)))
    with suppress(CausalArmsError):
        best_view(twin.beliefs(), 0)
        twin.graph()
        twin.explain(trial)
