"""
The connections to a running relay: it is found, started where that is wanted, and found anew once it is gone.
"""

import asyncio
from pathlib import Path
from typing import Any

import httpcore2
import httpx2

from vidrelay.client.answers import error_from
from vidrelay.client.beacon import Beacon, read_beacon
from vidrelay.client.dial import ProvenTransport
from vidrelay.client.start import start_relay
from vidrelay.core.clock import Clock
from vidrelay.core.errors import RelayUnavailable

CALL_SECONDS = 60.0
BROKEN = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, httpx2.TransportError)
"""What a call ends with whose connection has broken."""

_TRIES = 4
_STARTS = 2
_LEAVING = "shutting_down"


class Connection:
    """
    The way to the relay of a state directory, over connections that have proved their other end.
    """

    def __init__(self, state_dir: Path, *, start: bool, config: Path | None, app: str | None, clock: Clock) -> None:
        self._state_dir = state_dir
        self._start = start
        self._config = config
        self._app = app
        self._clock = clock
        self.beacon: Beacon | None = None
        self._http: httpx2.AsyncClient | None = None
        # Guards finding (or starting) the relay: calls made side by side share what the first of them finds.
        self._finding = asyncio.Lock()

    async def aclose(self) -> None:
        """
        Close every connection.
        """
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def connect(self) -> None:
        """
        Find the relay and let it prove itself; start one where none runs and that is allowed.

        Raises:
            RelayUnavailable: There is none.
            ConfigError: The configuration of the relay that was started is wrong.
        """
        beacon = read_beacon(self._state_dir)
        if beacon is not None and await self._reach(beacon):
            return
        if not self._start:
            raise RelayUnavailable("No relay is running here.", hint="Start one: vidrelay serve")
        for _ in range(_STARTS):
            started = await start_relay(self._state_dir, config=self._config, clock=self._clock, stale=beacon)
            if await self._reach(started):
                return
            # It left again (or was replaced) before it could be asked.
            beacon = started
        raise RelayUnavailable("A relay was started, and cannot be reached.", hint="Run: vidrelay doctor")

    async def _reach(self, beacon: Beacon) -> bool:
        await self.aclose()
        headers = {"X-Local-Token": beacon.token, "Accept": "application/json"}
        if self._app:
            headers["X-Vidrelay-App"] = self._app
        self._http = httpx2.AsyncClient(
            base_url=beacon.url,
            headers=headers,
            transport=ProvenTransport(beacon),
            timeout=CALL_SECONDS,
            trust_env=False,
        )
        try:
            response = await self._http.get("/health")
        except BROKEN:
            await self.aclose()
            return False
        if response.status_code != 200:
            await self.aclose()
            return False
        self.beacon = beacon
        return True

    async def session(self) -> httpx2.AsyncClient:
        """
        The connections to the relay, which is found anew where it was lost.
        """
        async with self._finding:
            if self._http is None:
                await self.connect()
            assert self._http is not None  # noqa: S101 connect sets it or raises
            return self._http

    async def lost(self, http: httpx2.AsyncClient, attempt: int, error: Exception) -> None:
        """
        Drop broken connections, unless another call has done so, and pause before the next try.
        """
        async with self._finding:
            if self._http is http:
                await self.aclose()
        if attempt + 1 >= _TRIES:
            raise RelayUnavailable("The relay cannot be reached.", hint="Run: vidrelay doctor") from error
        await self._clock.sleep(0.1 * 2**attempt)

    async def json(self, method: str, path: str, *, repeatable: bool = True, **options: Any) -> Any:
        """
        One call and the JSON of its answer; repeated after a broken connection where that is safe.
        """
        attempt = 0
        while True:
            http = await self.session()
            try:
                response = await http.request(method, path, **options)
            except BROKEN as error:
                if not repeatable and not isinstance(error, httpcore2.ConnectError | httpcore2.ConnectTimeout):
                    raise RelayUnavailable("The connection to the relay broke off.") from error
                await self.lost(http, attempt, error)
                attempt += 1
            else:
                if response.status_code < 400:
                    return response.json()
                refusal = error_from(response.status_code, response.content)
                if refusal.code != _LEAVING:
                    raise refusal
                # It took nothing in; the next relay of this directory will.
                await self.lost(http, attempt, refusal)
                attempt += 1
