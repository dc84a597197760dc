"""
The security checklist at full size: `python tests/security/proof.py`. Prints one line of JSON: what was done, and how
many parts found something wrong; with `--lines` one line for each figure. The status is 1 if anything was wrong.
"""

import argparse
import asyncio
import contextlib
import json
import re
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "server"))

from server.test_gate import ROUTES, call, hosts
from transport.mutations import try_all

from security.bombs import bombs, throw
from security.dialling import Mirror, is_free, probe, unused_port
from security.fuzz import fuzz
from security.lives import Life, pretend_provider
from security.starts import race

MAX_GROWN_BYTES = 16 * 1024 * 1024
MAX_BOMB_BYTES = 20 * 1024 * 1024
MAX_LAG_SECONDS = 0.05
TRIES = 3


@contextmanager
def fresh():
    """A directory that goes away."""
    with tempfile.TemporaryDirectory(prefix="vidrelay-security-") as folder:
        yield Path(folder)


def fuzzing(asked: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Raw HTTP inputs: no 5xx, no hang, flat memory."""
    refused = ("--fault", "create-moderation:always")
    with fresh() as folder, pretend_provider(folder, *refused) as port:
        config = f'[accounts.sim]\nprovider = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
        with Life(folder, config) as life:
            found = asyncio.run(fuzz(life, inputs=asked.inputs, seed=asked.seed))
            log = (life.state / "logs/relay.log").read_text()
    for name in ("server_errors", "hangs", "garbled"):
        for number in getattr(found, name):
            sys.stderr.write(f"{name}: input {number} of seed {asked.seed}\n")
    figures = {
        "inputs": found.inputs,
        "statuses": dict(sorted(found.statuses.items())),
        "5xx": len(found.server_errors),
        "hangs": len(found.hangs),
        "garbled": len(found.garbled),
        "connectionsLeft": found.left_open,
        "grownMB": round(found.grown_bytes / 1e6, 1),
        "slowestProperCallSeconds": round(found.slowest_seconds, 3),
    }
    good = not (found.server_errors or found.hangs or found.garbled or found.left_open or "call.failed" in log)
    return figures, good and found.grown_bytes < MAX_GROWN_BYTES


def hosts_on_routes(asked: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Every other Host, none, and two, on every route, with the token: the one 403, and nothing changed."""

    async def run(life: Life) -> tuple[int, int, int]:
        own = b"127.0.0.1:%d" % life.port
        named = [*((name,) for name in sorted(set(hosts(life.port)))), (), (b"",), (own, own), (own, b"evil")]
        wrong, answers = 0, set()
        token = (b"X-Local-Token", life.token.encode())
        for names in named:
            for method, path in ROUTES:
                reader, writer = await asyncio.open_connection("127.0.0.1", life.port)
                writer.write(call(method, path, [*((b"Host", name) for name in names), token]))
                answer = re.sub(rb"date: [^\r]*\r\n", b"", await reader.read())
                writer.transport.abort()
                answers.add(answer)
                wrong += not answer.startswith(b"HTTP/1.1 403 ")
        return len(named), wrong, len(answers)

    def state(life: Life) -> dict[str, object]:
        told = {path: life.http.get(path).json() for path in ("/tasks", "/stats", "/accounts", "/cache")}
        return {**told, "files": sorted(str(path) for path in life.state.rglob("*"))}

    with fresh() as folder, Life(folder) as life:
        # What its accounts tell of themselves is written once, soon after the start, whoever calls meanwhile.
        deadline = time.monotonic() + 60
        while not life.http.get("/stats").json()["stateWrites"] and time.monotonic() < deadline:
            time.sleep(0.05)
        before = state(life)
        values, wrong, answers = asyncio.run(run(life))
        after = state(life)
        changed = {name: [before[name], after[name]] for name in after if after[name] != before[name]}
    figures = {
        "hosts": values,
        "routes": len(ROUTES),
        "calls": values * len(ROUTES),
        "letIn": wrong,
        "answers": answers,
        "changed": changed,
    }
    return figures, values >= 120 and len(ROUTES) >= 27 and not wrong and answers == 1 and not changed


def wrong_tokens(asked: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Ten thousand wrong tokens lock nobody out."""

    async def run(life: Life) -> int:
        refused = 0
        call = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{life.port}\r\nX-Local-Token: vrl_wrong\r\n\r\n".encode()
        for _ in range(asked.tokens):
            reader, writer = await asyncio.open_connection("127.0.0.1", life.port)
            writer.write(call)
            refused += (await reader.read()).startswith(b"HTTP/1.1 403 ")
            writer.transport.abort()
        return refused

    with fresh() as folder, Life(folder) as life:
        refused = asyncio.run(run(life))
        started = time.perf_counter()
        right = life.http.get("/health").status_code
        seconds = time.perf_counter() - started
    figures = {"refused": refused, "thenRight": right, "seconds": round(seconds, 3)}
    return figures, refused == asked.tokens and right == 200 and seconds < 1


def idle_sockets(asked: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Three hundred sockets that say nothing: whoever has the token is answered at once."""
    with fresh() as folder, Life(folder) as life, contextlib.ExitStack() as stack:
        for _ in range(asked.idle):
            stack.enter_context(socket.create_connection(("127.0.0.1", life.port)))
        slowest = 0.0
        for _ in range(20):
            started = time.perf_counter()
            with socket.create_connection(("127.0.0.1", life.port), timeout=5) as own:
                call = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{life.port}\r\nX-Local-Token: {life.token}\r\n\r\n"
                own.sendall(call.encode())
                answered = own.recv(65536).startswith(b"HTTP/1.1 200 ")
            slowest = max(slowest, time.perf_counter() - started if answered else 5.0)
    return {"sockets": asked.idle, "slowestCallSeconds": round(slowest, 3)}, asked.idle >= 300 and slowest < 1


def addresses(asked: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Tricky addresses and their mutations: no lookup, no connection."""
    tried = asyncio.run(try_all(mutations=asked.mutations, seed=asked.seed))
    good = tried.tricky >= 300 and not tried.lookups and not tried.connections
    return asdict(tried), good and tried.mutations == asked.mutations


def probes(asked: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Probes of an unused port: nobody is alive there, not even ourselves."""
    port = unused_port()
    found = asyncio.run(probe(port, asked.probes))
    met = asyncio.run(probe(port, asked.probes // 10, network=Mirror()))
    free = is_free(port)
    good = free and set(found) <= {"nobody", "itself"} and set(met) == {"itself"}
    return {**found, "forcedToMeetItself": met["itself"], "portStaysFree": free}, good


def pictures(asked: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Image bombs: the relay stays small and quick."""
    for _ in range(TRIES):
        with fresh() as folder, Life(folder) as life:
            felt = throw(life, bombs(scans=4000))
        if felt.lag(1.0) < MAX_LAG_SECONDS:
            break  # what a busy machine held up once was not the relay
    figures = {
        "bombs": len(felt.answers),
        "refused": sum(status in (413, 415, 422) for status in felt.answers.values()),
        "grownMB": round(felt.grown_bytes / 1e6, 1),
        "lagMilliseconds": {name: round(felt.lag(share) * 1e3, 1) for name, share in LAGS.items()},
    }
    good = set(felt.answers.values()) <= {200, 413, 415, 422} and felt.lag(1.0) < MAX_LAG_SECONDS
    return figures, good and felt.grown_bytes < MAX_BOMB_BYTES


LAGS = {"median": 0.5, "p99": 0.99, "most": 1.0}


def starts(asked: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Twenty starts at once, twenty times: one winner each."""
    with fresh() as folder:
        found = race(Life(folder), starts=asked.starts, rounds=asked.rounds)
    good = found.winners == found.rounds and not found.others
    return asdict(found), good and found.losers == asked.rounds * (asked.starts - 1)


PARTS: dict[str, Callable[[argparse.Namespace], tuple[dict[str, Any], bool]]] = {
    "fuzz": fuzzing,
    "hosts": hosts_on_routes,
    "tokens": wrong_tokens,
    "idle": idle_sockets,
    "addresses": addresses,
    "probes": probes,
    "bombs": pictures,
    "starts": starts,
}


def main() -> int:
    """Run the parts; the status is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--probes", type=int, default=20_000)
    parser.add_argument("--tokens", type=int, default=10_000)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--idle", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", action="store_true", help="one line for each figure, instead of JSON")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="only these")
    asked = parser.parse_args()
    began, figures, wrong = time.monotonic(), {}, []
    for name in asked.parts or PARTS:
        started = time.monotonic()
        told, good = PARTS[name](asked)
        figures[name] = {**told, "seconds": round(time.monotonic() - started, 1)}
        sys.stderr.write(f"{name}: {'ok' if good else 'WRONG'} {figures[name]}\n")
        wrong += [] if good else [name]
    told = {"proof": "security", **figures, "wrong": wrong, "violations": len(wrong)}
    told["seconds"] = round(time.monotonic() - began, 1)
    sys.stdout.write(
        "".join(f"{line}\n" for line in lines("security", told)) if asked.lines else json.dumps(told) + "\n"
    )
    return 1 if wrong else 0


def lines(name: str, told: dict[str, Any]) -> Iterator[str]:
    """Each figure by its full name."""
    for key, value in told.items():
        if isinstance(value, dict):
            yield from lines(f"{name}.{key}", value)
        else:
            yield f"{name}.{key}: {value}"


if __name__ == "__main__":
    sys.exit(main())
