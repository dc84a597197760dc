"""
Starts a relay that outlives the terminal, and waits until one is ready, this one or whoever was faster.
"""

import os
import subprocess
import sys
from pathlib import Path

from vidrelay.client.beacon import Beacon, private_directory, read_beacon
from vidrelay.core.clock import Clock
from vidrelay.core.errors import ConfigError, RelayUnavailable

READY_SECONDS = 10.0
IDLE_EXIT = "60s"

_LOST_THE_RACE = 3
_WRONG_CONFIGURATION = 2

# A child that nobody holds would be warned about when it is collected, though it is meant to go on.
_STARTED: list[subprocess.Popen[bytes]] = []


async def start_relay(state_dir: Path, *, config: Path | None, clock: Clock, stale: Beacon | None) -> Beacon:
    """
    Start a detached relay that leaves when idle for a minute.

    Args:
        state_dir: Its state directory.
        config: Its configuration file; None: as the environment says.
        clock: For the waiting, at most `READY_SECONDS`.
        stale: A `relay.json` that is there now and leads nowhere; another one is waited for.

    Raises:
        ConfigError: The relay says that its configuration is wrong.
        RelayUnavailable: None is ready in time.
    """
    child, log = _spawn(state_dir, config)
    deadline = clock.monotonic() + READY_SECONDS
    while clock.monotonic() < deadline:
        beacon = read_beacon(state_dir)
        if beacon is not None and (stale is None or beacon.instance != stale.instance):
            return beacon
        status = child.poll()
        if status == _WRONG_CONFIGURATION:
            raise ConfigError(_last_words(log) or "The relay does not start with this configuration.")
        if status not in (None, _LOST_THE_RACE):
            raise RelayUnavailable(_last_words(log) or f"The relay ended at once, with status {status}.")
        await clock.sleep(0.02)
    raise RelayUnavailable(
        f"No relay was ready within {READY_SECONDS:g} seconds.", hint=f"See {log}, or run: vidrelay doctor"
    )


def _spawn(state_dir: Path, config: Path | None) -> tuple[subprocess.Popen[bytes], Path]:
    logs = state_dir / "logs"
    try:
        private_directory(logs)
        log = logs / f"start-{os.getpid()}.log"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        output = os.open(log, flags, 0o600)
    except OSError as error:
        raise RelayUnavailable(f"The state directory {state_dir} cannot be written: {error.strerror}.") from error
    command = [sys.executable, "-m", "vidrelay", "--state-dir", str(state_dir)]
    if config is not None:
        command += ["--config", str(config)]
    command += ["serve", "--idle-exit", IDLE_EXIT]
    detached = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    try:
        child = subprocess.Popen(  # noqa: S603 this program itself, its arguments are ours
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=state_dir,
            start_new_session=True,
            creationflags=detached,
        )
    finally:
        os.close(output)
    _STARTED.append(child)
    return child, log


def _last_words(log: Path) -> str:
    """
    What the relay wrote before it ended.
    """
    try:
        return log.read_text(encoding="utf-8", errors="replace")[-2000:].strip().removeprefix("vidrelay: ")
    except OSError:
        return ""
