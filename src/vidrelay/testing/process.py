"""
A relay as a process of its own beside a test, as a user's is.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

READY = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
START_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayProcess:
    """
    A relay that runs: what its `relay.json` says, and its process id.
    """

    port: int
    token: str
    pid: int


@asynccontextmanager
async def relay_process(
    folder: Path, config: str, *, environ: Mapping[str, str] | None = None
) -> AsyncIterator[RelayProcess]:
    """
    Run `vidrelay serve` on that configuration (TOML) until the context ends; its state is in `folder/state`.

    Raises:
        RuntimeError: It did not come up; holds what it said.
    """
    place, state = folder / "vidrelay.toml", folder / "state"
    place.write_text(config)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "vidrelay", "serve", "--config", str(place), "--state-dir", str(state)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(environ or {})},
    )
    try:
        async with asyncio.timeout(START_SECONDS):
            line = (await process.stdout.readline()).decode() if process.stdout else ""
        if READY.search(line) is None:
            _, err = await process.communicate()
            raise RuntimeError(f"the relay did not come up:\n{err.decode(errors='replace')[-4000:]}")
        beacon: dict[str, Any] = json.loads((state / "relay.json").read_text())
        yield RelayProcess(port=beacon["port"], token=beacon["token"], pid=beacon["pid"])
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()
