"""
The load: a process of its own whose connections each send the next request as soon as the last one is answered.

    python -m bench.load '{"port": …, "connections": …, "seconds": …, "every": …, "requests": ["…"], "body": "…"}'

prints one JSON object: how many answers came in how long, the statuses, and the latencies' percentiles in
milliseconds. Between an answer and a connection's next request `every` seconds pass (0 unless given). `@@` in the body
is replaced by a number that no other request of the run has. Raw protocols on purpose: an HTTP client costs more than
the routes that are measured.
"""

import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count, cycle
from typing import Any

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
HEAD_END = b"\r\n\r\n"


def requests(heads: list[str], body: str, first: int) -> Iterator[bytes]:
    """
    Endless requests, each head in its turn; where the body has a `@@`, each has its own number.
    """
    for number, head in zip(count(first), cycle(heads), strict=False):
        payload = body.replace("@@", f"{number:015d}").encode()
        length = f"Content-Type: application/json\r\nContent-Length: {len(payload)}\r\n" if payload else ""
        yield f"{head}\r\n{length}\r\n".encode() + payload


class Caller(asyncio.Protocol):
    """
    One keep-alive connection.
    """

    def __init__(
        self,
        source: Iterator[bytes],
        until: float,
        latencies: list[float],
        statuses: Counter[str],
        every: float = 0.0,
    ) -> None:
        """
        Send from `source` until the perf counter passes `until`, so many seconds after each answer.
        """
        self.source, self.until, self.latencies, self.statuses = source, until, latencies, statuses
        self.every = every
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.buffer = b""
        self.sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """
        Begin.
        """
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.send()

    def send(self) -> None:
        """
        Send the next request, or stop.
        """
        self.sent_at = time.perf_counter()
        if self.sent_at >= self.until:
            self.transport.close()
            return
        self.transport.write(next(self.source))

    def data_received(self, data: bytes) -> None:
        """
        Count an answer once it is whole.
        """
        self.buffer += data
        end = self.buffer.find(HEAD_END)
        if end < 0:
            return
        told = LENGTH.search(self.buffer, 0, end)
        whole = end + len(HEAD_END) + (int(told[1]) if told else 0)
        if len(self.buffer) < whole:
            return
        self.latencies.append(time.perf_counter() - self.sent_at)
        self.statuses[self.buffer[9:12].decode()] += 1
        self.buffer = self.buffer[whole:]
        if self.every:
            asyncio.get_running_loop().call_later(self.every, self.send)
        else:
            self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        """
        An end that was not ours is an error.
        """
        if time.perf_counter() < self.until:
            self.statuses["lost"] += 1
        self.finished.set_result(None)


async def run(order: dict[str, Any]) -> dict[str, Any]:
    """
    Carry out one order.
    """
    latencies: list[float] = []
    statuses: Counter[str] = Counter()
    source = requests(order["requests"], order["body"], time.time_ns() // 1000)
    start = time.perf_counter()
    loop = asyncio.get_running_loop()
    callers = [
        (
            await loop.create_connection(
                lambda: Caller(source, start + order["seconds"], latencies, statuses, order.get("every", 0.0)),
                "127.0.0.1",
                order["port"],
            )
        )[1]
        for _ in range(order["connections"])
    ]
    async with asyncio.timeout(order["seconds"] + 30):
        await asyncio.gather(*(caller.finished for caller in callers))
    took = time.perf_counter() - start
    latencies.sort()
    return {
        "answers": len(latencies),
        "perSecond": len(latencies) / took,
        "statuses": statuses,
        "p50": 1000 * latencies[len(latencies) // 2],
        "p99": 1000 * latencies[int(len(latencies) * 0.99)],
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(json.loads(sys.argv[1])))))
