"""
The way to the providers: time, loss, and answers that come too late or in part (port Transport).

What a relay has sent lives on without it: a create whose body is out arrives even if the relay dies the moment after.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextvars import Context
from types import TracebackType
from typing import Protocol, Self, TypeVar

from vidrelay.core.errors import ReplyTooLarge, TransportError
from vidrelay.core.messages import Held, HttpRequest
from vidrelay.testing.simulation.clock import WorldClock
from vidrelay.testing.simulation.faults import Faults
from vidrelay.testing.simulation.journal import Journal
from vidrelay.testing.simulation.ledger import Create, Poll
from vidrelay.testing.simulation.loop import VirtualLoop
from vidrelay.testing.simulation.provider import API, CDN, TASK, Answer, Provider

T = TypeVar("T")

ALL = "?ids="
"""Before the jobs that one call asks for."""

LATEST_ARRIVAL = 90.0
PIECE = 8 * 1024


class Far(Protocol):
    """
    What an exchange needs of the life it belongs to: its number, and to say which points it passes.
    """

    number: int

    async def reach(self, point: str) -> None:
        """
        Pass a point; a relay that is to die there goes no further.
        """
        ...

    def calls(self, kind: str, key: str) -> None:
        """
        A call under that customer's key begins.
        """
        ...

    def sends(self, create: Create) -> None:
        """
        The first byte of a create call leaves.
        """
        ...

    def lasts(self, key: str, began: float, tasks: list[str]) -> None:
        """
        A call for these tasks, begun in that second, is still under way.
        """
        ...

    def rested(self, key: str, body: bytes, wait: str | None) -> None:
        """
        The customer was told to come back later, with this `Retry-After`.
        """
        ...


class Network:
    """
    Everything under way, whoever sent it.
    """

    def __init__(
        self,
        *,
        loop: VirtualLoop,
        clock: WorldClock,
        provider: Provider,
        faults: Faults,
        chance: random.Random,
        journal: Journal,
    ) -> None:
        self.loop = loop
        self.clock = clock
        self.provider = provider
        self.faults = faults
        self.chance = chance
        self.journal = journal
        self.latency = chance.choice((0.0, 0.05, 0.8))
        self.open: dict[int, Exchange] = {}
        self.departed: dict[int, Exchange] = {}
        self.outside = Context()
        self._count = 0

    def wire(self, life: Far) -> "Wire":
        """
        A transport for one life of the relay.
        """
        return Wire(self, life)

    def drop_all(self) -> None:
        """
        Break every connection, as falling asleep does; what is already on its way arrives.
        """
        for exchange in list(self.departed.values()):
            exchange.arrive()
        for exchange in list(self.open.values()):
            exchange.breaks()

    def later(self, seconds: float, call: object, *args: object) -> None:
        """
        Call outside of every process.
        """
        self.loop.call_later(seconds, call, *args, context=self.outside)  # type: ignore[arg-type]

    def enter(self, exchange: "Exchange") -> int:
        """
        Number an exchange that opens.
        """
        self._count += 1
        self.open[self._count] = exchange
        return self._count


class Wire:
    """
    Fills port Transport.
    """

    def __init__(self, network: Network, life: Far) -> None:
        self._network = network
        self._life = life

    def send(self, request: HttpRequest, *, timeout: float) -> "Exchange":
        """
        Open an exchange.
        """
        return Exchange(self._network, self._life, request, timeout)

    async def aclose(self) -> None:
        """
        Nothing is open.
        """


class Exchange:
    """
    One call and its answer: fills port Reply once it is entered.
    """

    status: int
    headers: Mapping[str, str]

    def __init__(self, network: Network, life: Far, request: HttpRequest, timeout: float) -> None:
        self._network = network
        self._life = life
        self._request = request
        self._kind = kind_of(request)
        self._key = network.provider.key_of(request)
        self._deadline = network.loop.time() + timeout
        self._sent = False
        self._number = 0
        self._create: Create | None = None
        self._answer: asyncio.Future[Answer] = network.loop.create_future()
        self._body = b""
        self._broken = False

    # The way out

    async def __aenter__(self) -> Self:
        self._number = self._network.enter(self)
        try:
            answer = await self._within(self._go())
        except BaseException:
            self._leave()
            raise
        self.status, self.headers, self._body = answer.status, answer.headers, answer.body
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._network.open.pop(self._number, None)

    async def _go(self) -> Answer:
        faults, network = self._network.faults, self._network
        await self._reach("enter")
        self._life.calls(self._kind, self._key)
        if faults.hit("net.unsent"):
            raise TransportError("no connection", maybe_sent=False)
        await self._pass_time()
        await self._reach("connected")
        if self._answer.done():
            return await self._answer  # it broke while it was being opened
        self._sent = True
        if self._kind == "create":
            self._create = self._written_down()
            self._life.sends(self._create)
        if self._kind == "poll":
            jobs = self._request.url.removeprefix(f"{API}/jobs").removeprefix("/").removeprefix(ALL).split(",")
            for job, task in zip(jobs, self._request.headers[TASK].split(","), strict=True):
                network.provider.polls.append(Poll(job=job, task=task, at=network.loop.time(), life=self._life.number))
        network.journal.note("sent", self._kind, self._request.url, self._request.headers.get(TASK, ""))
        await self._reach("header")
        if faults.hit("net.reset_header"):
            raise TransportError("the connection was reset", maybe_sent=True)
        await self._reach("half")
        if faults.hit("net.reset_body"):
            raise TransportError("the connection was reset", maybe_sent=True)
        self._depart()
        await self._reach("body")
        answer = await self._answer
        await self._reach("status")
        return answer

    def _written_down(self) -> Create:
        request, network = self._request, self._network
        create = Create(
            task=request.headers[TASK],
            key=self._key,
            mark=request.headers["idempotency-key"],
            body=json.loads(request.body if isinstance(request.body, bytes) else b"{}"),
            sent=network.clock.truth(),
            life=self._life.number,
        )
        network.provider.creates.append(create)
        return create

    def _depart(self) -> None:
        """
        The last byte is out: what comes of it is no longer in the relay's hands.
        """
        network, faults = self._network, self._network.faults
        delay = network.chance.uniform(0, network.latency)
        if faults.hit("net.lost_before"):
            network.later(delay + 1.0, self.breaks)
            return
        if faults.hit("net.late_arrival"):
            network.later(faults.between("net.late_arrival", 0.0, 20.0), self.breaks)
            delay = faults.between("net.late_arrival", 20.0, LATEST_ARRIVAL)
        network.departed[self._number] = self
        network.later(delay, self.arrive)

    def arrive(self) -> None:
        """
        The whole request has come to the provider.
        """
        network, faults = self._network, self._network.faults
        if network.departed.pop(self._number, None) is None:
            return
        answer = network.provider.handle(self._request, self._create)
        network.journal.note("arrived", self._kind, self._request.url, answer.status, answer.body[:60])
        delay = network.chance.uniform(0, network.latency)
        if faults.hit("net.lost_after"):
            network.later(delay, self.breaks)
        elif not faults.hit("net.hang"):
            network.later(delay, self._answered, answer)

    def _answered(self, answer: Answer) -> None:
        if not self._answer.done():
            self._answer.set_result(answer)

    def breaks(self) -> None:
        """
        The connection breaks.
        """
        self._broken = True
        if not self._answer.done():
            self._answer.set_exception(TransportError("the connection was reset", maybe_sent=self._sent))
            self._answer.exception()  # whoever waited may be gone

    # The way back

    async def chunks(self) -> AsyncIterator[bytes]:
        """
        The body in pieces, as far as it comes.
        """
        faults = self._network.faults
        body, whole = self._body, True
        if body and faults.hit("net.cut_reply"):
            body, whole = body[: int(len(body) * faults.between("net.cut_reply", 0.0, 1.0))], False
        if body and self._kind == "file" and faults.hit("file.cut"):
            body, whole = body[: int(len(body) * faults.between("file.cut", 0.0, 1.0))], False
        slow = faults.hit("net.slow")
        for start in range(0, len(body), PIECE):
            if self._kind == "file" and faults.hit("file.stall"):
                await self._within(asyncio.sleep(7200.0))
            await self._within(self._pass_time(slow=slow))
            await self._reach("chunk")
            yield body[start : start + PIECE]
        if not whole:
            raise TransportError("the answer broke off", maybe_sent=True)

    async def read(self) -> bytes:
        """
        The whole body.
        """
        held = self._request.held
        whole = b"".join([piece async for piece in self.chunks()]) if held is None else await self._listen(held)
        if len(whole) > self._request.max_reply_bytes:
            raise ReplyTooLarge(maybe_sent=True)
        create = self._create
        if create is not None and self.status == 200 and create.told is not None:
            create.delivered = True
        if self.status == 429:
            self._life.rested(self._key, whole, self.headers.get("retry-after"))
        await self._reach("read")
        return whole

    async def _listen(self, held: Held) -> bytes:
        """
        The body of a call that is held, until there is enough.
        """
        faults, network, body, began = self._network.faults, self._network, bytearray(), self._network.loop.time()
        try:
            async for piece in self.chunks():
                body += piece
        except TransportError:
            return bytes(body)
        parts, tasks = self._request.url.partition(ALL)[2].split(","), self._request.headers[TASK].split(",")
        secret = self._request.headers["authorization"].removeprefix("Key ")
        silent = faults.hit("stream.silent")
        until = min(began + held.seconds, self._deadline)
        while self.status == 200 and not held.enough(body) and network.loop.time() < until:
            await asyncio.sleep(0.5)
            self._life.lasts(self._key, began, tasks)
            if self._broken or faults.hit("stream.breaks"):
                break
            line = b"" if silent else network.provider.line(secret, parts)
            if not body.endswith(line):
                body += line
                await self._reach("chunk")
        return bytes(body)

    # Time

    async def _pass_time(self, *, slow: bool = False) -> None:
        seconds = self._network.chance.uniform(0, self._network.latency)
        if slow:
            seconds += self._network.faults.between("net.slow", 1.0, 25.0)
        if seconds > 0:
            await asyncio.sleep(seconds)

    async def _within(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout_at(self._deadline):
                return await work
        except TimeoutError as exc:
            raise TransportError("no answer in time", maybe_sent=self._sent) from exc

    async def _reach(self, stage: str) -> None:
        await self._life.reach(f"{self._kind}.{stage}")


def kind_of(request: HttpRequest) -> str:
    """
    `create`, `poll`, `find`, `cancel`, `limits`, `upload` or `file`.
    """
    if request.creates:
        return "create"
    if request.url.startswith(CDN):
        return "file"
    if request.url.endswith(("/limits", "/uploads")):
        return "upload" if request.method == "POST" else "limits"
    if request.method == "DELETE":
        return "cancel"
    return "poll" if "/jobs/" in request.url or f"/jobs{ALL}" in request.url else "find"
