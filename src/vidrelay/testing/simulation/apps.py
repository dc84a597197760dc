"""
What apps do with a relay, and what they were told: an answer that an app has had is held against the relay for ever.

A call runs inside the relay's process, as a handler of its server does, and dies with it; the app does not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from vidrelay.core.errors import (
    DiskFull,
    DuplicateRemote,
    IdempotencyConflict,
    InvalidRequest,
    RequestError,
    StaleTask,
    StoreError,
)
from vidrelay.core.ports import How
from vidrelay.core.task import Priority, Request, Resolution, State, Task
from vidrelay.scheduler.face import Sender
from vidrelay.scheduler.relay import Relay
from vidrelay.testing.simulation.life import Ground, Life

PROMPTS = (
    "a lighthouse at dawn",
    "a lighthouse  at dawn ",
    "灯塔\u200b在黎明",
    "two boats",
    "a fox, running",
    "rain\non glass",
    "\u202ebackwards",
    "a 👩‍🚀 walks",
)
APPS = ("comfy", "studio", "batch", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    A submit that was answered: which task, for what, under which key, and when (true seconds).
    """

    task: str
    request: Request
    client_key: str | None
    how: How
    at: float


@dataclass(slots=True, kw_only=True)
class Submission:
    """
    What an app asks for; it may ask again.
    """

    request: Request
    app: str | None
    client_key: str | None
    request_id: str | None


class Apps:
    """
    Several apps, acting one step at a time.
    """

    def __init__(self, ground: Ground, *, complain: Callable[[int, str], None], lifted: Callable[[str], None]) -> None:
        self._ground = ground
        self._complain = complain
        self._lifted = lifted
        self._chance = ground.dice.stream("apps")
        self._keys = 0
        self.answers: dict[str, list[Answer]] = {}
        self.by_key: dict[str, Answer] = {}
        self.sent: list[Submission] = []
        self.known: list[str] = []
        self.refused: list[str] = []

    def act(self, life: Life) -> None:
        """
        Let one app do something.
        """
        if life.relay is None:
            return
        choices: list[tuple[float, Callable[[Life, Relay], Coroutine[Any, Any, None]]]] = [
            (6.0, self._submit),
            (1.0, self._submit_again),
            (1.5, self._cancel),
            (1.0, self._wait),
            (1.0, self._look),
            (1.5, self._resolve),
            (0.4, self._resume),
            (0.3, self._leaf),
            (0.1, self._tidy),
        ]
        weights = [weight for weight, _ in choices]
        act = self._chance.choices([act for _, act in choices], weights)[0]
        self._start(life, act(life, life.relay))

    def _start(self, life: Life, call: Coroutine[Any, Any, None]) -> None:
        task = self._ground.loop.start(life.process, self._guarded(life, call))
        if self._ground.faults.hit("app.gone"):
            # The client hangs up; its handler is cancelled wherever it is.
            seconds = self._ground.faults.between("app.gone", 0.0, 0.05)
            self._ground.loop.call_later(seconds, task.cancel, context=life.process.context)

    async def _guarded(self, life: Life, call: Awaitable[None]) -> None:
        try:
            await call
        except (RequestError, StaleTask, DuplicateRemote) as refused:
            self.refused.append(refused.code)
        except (StoreError, DiskFull, OSError) as broken:
            # A real server has answered its calls before the store is closed; these here are not waited for.
            if not (self._ground.faults.disk_fails or life.stopping):
                self._complain(0, f"an app was answered {broken!r}")
        except Exception as odd:
            self._complain(0, f"an app was answered {odd!r}")

    # Submitting

    async def _submit(self, life: Life, relay: Relay) -> None:
        chance = self._chance
        key = None
        if chance.random() < 0.35:
            self._keys += 1
            key = f"key-{self._keys}"
        request = Request(
            prompt=chance.choice(PROMPTS) if chance.random() < 0.5 else f"clip {chance.randrange(60)}",
            account=chance.choice(self._ground.accounts).key.name,
            model_version=chance.choice((None, "model-b")),
            duration=chance.choice((None, 5, 5.0, 8)),
            force_refresh=chance.random() < 0.25,
            priority=Priority.BATCH if chance.random() < 0.25 else Priority.INTERACTIVE,
            metadata={"app": chance.randrange(5)},
        )
        request_id = f"rid-{chance.randrange(10_000)}" if chance.random() < 0.2 else None
        submission = Submission(request=request, app=chance.choice(APPS), client_key=key, request_id=request_id)
        self.sent.append(submission)
        await self._send(life, relay, submission)

    async def _submit_again(self, life: Life, relay: Relay) -> None:
        """
        Send what was sent before: an answer was lost, a button pressed twice.
        """
        if not self.sent:
            return
        earlier = self._chance.choice(self.sent)
        if earlier.client_key is not None and self._ground.faults.hit("app.conflict", weight=4.0):
            await self._conflict(relay, earlier)
            return
        await self._send(life, relay, earlier, resend=self._ground.faults.hit("app.resend", weight=4.0))

    async def _send(self, life: Life, relay: Relay, wish: Submission, *, resend: bool = False) -> None:
        sender = Sender(app=wish.app, client_key=wish.client_key, request_id=wish.request_id, resend=resend)
        admission = await relay.submit(wish.request, sender)
        await life.reach("answer.half")
        answer = Answer(
            task=admission.task.id,
            request=wish.request,
            client_key=wish.client_key,
            how=admission.how,
            at=self._ground.clock.truth(),
        )
        self._ground.journal.note("answered", answer.task, answer.how, wish.client_key)
        self._hold(answer)
        await life.reach("answer.told")

    def _hold(self, answer: Answer) -> None:
        if answer.task not in self.answers:
            self.known.append(answer.task)
        self.answers.setdefault(answer.task, []).append(answer)
        if answer.client_key is None:
            return
        earlier = self.by_key.setdefault(answer.client_key, answer)
        if earlier.task != answer.task:
            self._complain(11, f"{answer.client_key} was {earlier.task} and is {answer.task} now")

    async def _conflict(self, relay: Relay, earlier: Submission) -> None:
        """
        Another request under the same key.
        """
        if earlier.client_key not in self.by_key:
            return
        other = Request(prompt="something else entirely", account=earlier.request.account)
        try:
            admission = await relay.submit(other, Sender(client_key=earlier.client_key))
        except IdempotencyConflict:
            return
        self._complain(11, f"{earlier.client_key} took another request as {admission.task.id}")

    # Looking after tasks

    def _any(self) -> str | None:
        return self._chance.choice(self.known) if self.known else None

    async def _cancel(self, _: Life, relay: Relay) -> None:
        running = [task.id for task in relay.live() if task.state is State.RUNNING]
        # Of all that were ever made, few are at work.
        task_id = self._chance.choice(running) if running and self._chance.random() < 0.5 else self._any()
        if task_id is not None:
            before = await relay.get(task_id)
            task, outcome = await relay.cancel(task_id)
            self._ground.journal.note("cancelled", task_id, task.state, outcome)
            if before.ended and task != before:
                self._complain(9, f"{task_id} had ended and was changed by a wish to cancel")

    async def _wait(self, _: Life, relay: Relay) -> None:
        task_id = self._any()
        if task_id is not None:
            task = await relay.wait(task_id, seconds=self._chance.uniform(0.0, 60.0))
            self._ground.journal.note("waited", task_id, task.state)

    async def _look(self, _: Life, relay: Relay) -> None:
        for task in await relay.page(states=None, account=None, limit=5, before=None):
            relay.standing(task)
        await relay.stats()
        relay.accounts()
        for task in relay.live():
            relay.standing(task)
        await relay.log(after=0, limit=20)

    async def _resolve(self, _: Life, relay: Relay) -> None:
        lost = [task for task in relay.live() if task.state is State.UNCERTAIN]
        if not lost:
            return
        task = self._chance.choice(lost)
        # People look first; whoever asks at once is rare.
        age = (self._ground.clock.now() - task.updated_at).total_seconds()
        if age < 700 and self._chance.random() < 0.8:
            return
        await self.settle(task, relay)

    async def settle(self, task: Task, relay: Relay) -> None:
        """
        Decide about an uncertain task as a person does who looks at the provider's own pages.
        """
        provider = self._ground.network.provider
        made = [job for job in provider.jobs.values() if job.task == task.id]
        action = self._chance.choice((Resolution.RETRY, Resolution.ADOPT, Resolution.ABANDON))
        remote_id = made[-1].id if made else None
        if action is Resolution.ADOPT and remote_id is None:
            action = Resolution.ABANDON
        self._ground.journal.note("resolved", task.id, action, remote_id)
        try:
            await relay.resolve(task.id, action, remote_id=remote_id)
        except (DuplicateRemote, InvalidRequest) as refused:
            # Another task has that job, or the provider does not know it yet.
            self.refused.append(refused.code)
            await self.abandon(task, relay)

    async def abandon(self, task: Task, relay: Relay) -> None:
        """
        Give an uncertain task up.
        """
        await relay.resolve(task.id, Resolution.ABANDON)

    async def _resume(self, _: Life, relay: Relay) -> None:
        account = self._chance.choice(self._ground.accounts).key.name
        self._lifted(account)
        await relay.resume(account)

    async def _leaf(self, _: Life, relay: Relay) -> None:
        task_id = self._any()
        if task_id is not None:
            await relay.result_file(task_id, 0)

    async def _tidy(self, _: Life, relay: Relay) -> None:
        await (relay.verify_cache() if self._chance.random() < 0.5 else relay.clear_cache())

    async def calm(self, relay: Relay) -> None:
        """
        Say that everything is well again: no account has a reason to rest.
        """
        for account in self._ground.accounts:
            self._lifted(account.key.name)
            await relay.resume(account.key.name)

    def call(self, life: Life, call: Callable[[Relay], Coroutine[Any, Any, None]]) -> "asyncio.Task[None] | None":
        """
        Have an app call the relay outside of the dice.
        """
        if life.relay is None:
            return None
        return self._ground.loop.start(life.process, self._guarded(life, call(life.relay)))
