"""
The pretend provider beside a test, in the same event loop, on a real loopback socket.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from vidrelay.core.clock import Clock
from vidrelay.simulator.engine import Engine
from vidrelay.simulator.options import SimulatorOptions
from vidrelay.simulator.server import running
from vidrelay.simulator.words.vocabulary import Words


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSimulator:
    """
    A simulator that runs; `engine` is its inside, for tests that want to look there.
    """

    engine: Engine
    port: int

    @property
    def base_url(self) -> str:
        """
        What an account of provider `openai` takes as its `base_url`.
        """
        return f"http://127.0.0.1:{self.port}/v1"

    def ledger(self) -> dict[str, Any]:
        """
        Everything it saw, as `GET /_ledger` tells it.
        """
        self.engine.now()
        return self.engine.ledger.told()

    def arm(self, *faults: str) -> None:
        """
        Let the next calls go wrong, as in `arm("create-drop-after", "poll-error=503:2")`.
        """
        self.engine.faults.arm(faults)

    def change(self, **options: Any) -> None:
        """
        Set options, as in `change(window=3, run_seconds=0.1)`.
        """
        self.engine.change(options)

    def finish(self) -> None:
        """
        End the work of every job now.
        """
        self.engine.finish()

    def restart(self, *, forget: bool = True, down: float = 0.0) -> None:
        """
        Let it lose what it knew, and refuse every connection for `down` seconds.
        """
        self.engine.restart(forget=forget, down=down)


@asynccontextmanager
async def running_simulator(
    *, clock: Clock | None = None, speaks: type[Words] | None = None, **options: Any
) -> AsyncIterator[RunningSimulator]:
    """
    Run the pretend provider until the context ends; `options` are SimulatorOptions' fields, `speaks` is a vocabulary of
    your own in place of a dialect's.

    Jobs wait 0 s and run 0.05 s unless told otherwise, so that tests are quick.
    """
    chosen = SimulatorOptions(**{"queue_seconds": 0.0, "run_seconds": 0.05, **options})
    async with running(chosen, clock=clock, speaks=speaks) as (engine, port):
        yield RunningSimulator(engine=engine, port=port)
