"""
Sends the fuzzer's inputs to a relay over real sockets: no 5xx, no hang, flat memory, and a proper call is answered at
once all the while.
"""

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from .lives import Life
from .requests import Requests

CONNECTIONS = 48
QUIET_SECONDS = 0.04
"""After so long without a word the client says that it has no more to say."""
HANG_SECONDS = 5.0
"""And then the relay must have closed after so long."""
GONE_SECONDS = 35.0
"""Two heartbeats: the first is answered by a reset, the second finds the connection gone."""
WARM_UP = 0.1
"""The share of the inputs after which memory is measured for the first time."""

# No answer lets another site read it, and none says what answers.
_TELLTALE = re.compile(rb"\r\n(?:access-control-|server:|x-powered-by:)|uvicorn|starlette|Traceback", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n")


@dataclass
class Figures:
    """
    What came of it: findings by the inputs' numbers. `slowest_seconds`: of the proper calls made all the while.
    """

    inputs: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    server_errors: list[int] = field(default_factory=list)
    hangs: list[int] = field(default_factory=list)
    garbled: list[int] = field(default_factory=list)
    left_open: int = 0
    slowest_seconds: float = 0.0
    grown_bytes: int = 0
    seconds: float = 0.0


async def fuzz(life: Life, *, inputs: int, seed: int) -> Figures:
    """
    Send so many inputs; each that finds something is told by its number.
    """
    figures, requests = Figures(), Requests(seed, life.port, life.token)
    numbers, started = iter(range(inputs)), time.perf_counter()
    before = 0

    async def send_some() -> None:
        nonlocal before
        for number in numbers:
            await _send(life.port, requests.make(number), number, figures)
            figures.inputs += 1
            if figures.inputs == max(1, round(inputs * WARM_UP)):
                before = life.rss_bytes()

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(_watch(life.port, requests.proper(), figures))
        senders = [group.create_task(send_some()) for _ in range(CONNECTIONS)]
        await asyncio.wait(senders)
        watching.cancel()
    await _ask(life.port, requests.proper(), figures)
    await _all_closed(life, figures)
    figures.grown_bytes = life.rss_bytes() - before
    figures.seconds = time.perf_counter() - started
    return figures


async def _all_closed(life: Life, figures: Figures) -> None:
    """
    Wait until the relay holds no connection any more, which its heartbeats may have to find out.
    """
    deadline = time.perf_counter() + GONE_SECONDS
    while life.connections() and time.perf_counter() < deadline:  # noqa: ASYNC110 another process's
        await asyncio.sleep(0.1)
    figures.left_open = life.connections()


async def _watch(port: int, proper: bytes, figures: Figures) -> None:
    while True:
        await _ask(port, proper, figures)
        await asyncio.sleep(0.1)


async def _ask(port: int, proper: bytes, figures: Figures) -> None:
    """
    A proper call, which must be answered whatever else is going on.
    """
    started = time.perf_counter()
    async with asyncio.timeout(HANG_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(proper)
            answer = await reader.read()
        finally:
            writer.transport.abort()
    if not answer.startswith(b"HTTP/1.1 200 "):
        raise AssertionError(f"a proper call was answered {answer[:80]!r}")
    figures.slowest_seconds = max(figures.slowest_seconds, time.perf_counter() - started)


async def _send(port: int, data: bytes, number: int, figures: Figures) -> None:
    """
    One input on a connection of its own, in pieces now and then, until the relay closes.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    try:
        for piece in _pieces(data, number):
            writer.write(piece)
            await asyncio.sleep(0)
        answer, closed = await _read(reader, QUIET_SECONDS)
        if not closed:
            writer.write_eof()
            rest, closed = await _read(reader, HANG_SECONDS)
            answer += rest
            # A stream goes on for one who has only stopped talking; it ends once its reader is gone, as is seen below.
            if not closed and b"text/event-stream" not in answer:
                figures.hangs.append(number)
    except OSError:
        pass  # it closed before all was said
    finally:
        writer.transport.abort()
    statuses = list(_statuses(answer))
    figures.statuses.update(statuses)
    if any(status >= 500 for status in statuses):
        figures.server_errors.append(number)
    if 0 in statuses or _TELLTALE.search(answer):
        figures.garbled.append(number)


def _pieces(data: bytes, number: int) -> list[bytes]:
    chance = random.Random(number)
    if chance.random() < 0.7:
        return [data]
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randint(1, 6)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


async def _read(reader: asyncio.StreamReader, quiet_seconds: float) -> tuple[bytes, bool]:
    """
    What comes until the relay closes (True), or says nothing for so long.
    """
    answer = b""
    while True:
        try:
            async with asyncio.timeout(quiet_seconds):
                chunk = await reader.read(65536)
        except TimeoutError:
            return answer, False
        except ConnectionError:
            return answer, True
        if not chunk:
            return answer, True
        answer += chunk


def _statuses(answer: bytes) -> Iterator[int]:
    """
    The statuses of the answers that stand one after another; 0 for what is no answer.
    """
    at = 0
    while at < len(answer):
        if not (answer.startswith(b"HTTP/1.1 ", at) and answer[at + 9 : at + 12].isdigit()):
            yield 0
            return
        yield int(answer[at + 9 : at + 12])
        end = answer.find(b"\r\n\r\n", at)
        if end < 0:
            return
        length = _LENGTH.search(answer, at, end + 2)
        at = end + 4
        # Answers to HEAD tell a length too, and only the call knows that no body comes.
        if not answer.startswith(b"HTTP/1.1 ", at):
            if length is None:
                return  # a stream: the last answer there is
            at += int(length[1])
