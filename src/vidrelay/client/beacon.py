"""
`relay.json`: where a relay says that it is ready. To its readers it is a hint that nothing is built on unproved.
"""

import contextlib
import errno
import json
import os
import re
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vidrelay.core.proof import is_token

NAME = "relay.json"
MAX_BYTES = 16 * 1024

# No link is followed, no child inherits it, no line's end is changed; each where the system knows of that.
_EXACT = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_WORD = re.compile(r"[A-Za-z0-9.:+_-]{1,128}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beacon:
    """
    What a ready relay tells: its port and token, its process, and whether it leaves by itself when idle.

    `started_at` is RFC 3339; `instance` names this one run. `tls_port` is where it speaks https, None: nowhere.
    """

    port: int
    token: str = field(repr=False)
    pid: int
    version: str
    instance: str
    started_at: str
    idle_exit: bool = False
    tls_port: int | None = None

    @property
    def url(self) -> str:
        """
        Where the relay listens.
        """
        return f"http://127.0.0.1:{self.port}"


def read_beacon(state_dir: Path) -> Beacon | None:
    """
    What `relay.json` says; None where it is missing, not ours alone, or not what a relay writes.
    """
    data = read_private(state_dir / NAME)
    return None if data is None else _parse(data)


def read_private(path: Path, *, max_bytes: int = MAX_BYTES) -> bytes | None:
    """
    A small file of this user's alone; None where it is missing, a link, larger than that, or open to others.
    """
    flags = os.O_RDONLY | _EXACT | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return None
    try:
        if not _is_ours(os.fstat(descriptor), max_bytes):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(max_bytes + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _is_ours(facts: os.stat_result, max_bytes: int) -> bool:
    """
    Whether an open file is a small one that only this user can have written, and only this user can read.
    """
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > max_bytes:
        return False
    if not hasattr(os, "getuid"):
        return True
    return facts.st_uid == os.getuid() and not facts.st_mode & 0o077


def _parse(data: bytes) -> Beacon | None:
    try:
        told: Any = json.loads(data.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    try:
        return Beacon(
            port=_count(told["port"], low=1, high=65535),
            token=_token(told["token"]),
            pid=_count(told["pid"], low=1, high=2**32),
            version=_word(told["version"]),
            instance=_word(told["instance"]),
            started_at=_word(told["startedAt"]),
            idle_exit=told.get("idleExit") is True,
            tls_port=None if told.get("tlsPort") is None else _count(told["tlsPort"], low=1, high=65535),
        )
    except (KeyError, ValueError):
        return None


def _count(value: Any, *, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError("not a number in range")
    return value


def _token(value: Any) -> str:
    if not is_token(value):
        raise ValueError("not a token")
    return value


def _word(value: Any) -> str:
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise ValueError("not a word of the kind")
    return value


def write_beacon(state_dir: Path, beacon: Beacon) -> None:
    """
    Say that the relay is ready: whole or not at all, for this user alone.

    Raises:
        OSError: The file cannot be written.
    """
    told: dict[str, object] = {
        "port": beacon.port,
        "token": beacon.token,
        "pid": beacon.pid,
        "version": beacon.version,
        "instance": beacon.instance,
        "startedAt": beacon.started_at,
    }
    if beacon.idle_exit:
        told["idleExit"] = True
    if beacon.tls_port is not None:
        told["tlsPort"] = beacon.tls_port
    write_private(state_dir / NAME, json.dumps(told))


def private_directory(path: Path) -> None:
    """
    Make a directory for this user alone, unless it is there; a link in its place is not followed.

    Raises:
        OSError: It cannot be made, or something else stands there.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "A link stands where a directory should be", str(path))


def write_private(path: Path, text: str) -> None:
    """
    Replace a small file by one of mode 0600, so that a crash leaves the old or the new one.

    Raises:
        OSError: It cannot be written.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _EXACT
    descriptor = os.open(part, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(descriptor)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    # Windows cannot open a directory; its rename is durable enough for a hint.
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_beacon(state_dir: Path, instance: str) -> None:
    """
    Take `relay.json` away if it is still this run's.
    """
    beacon = read_beacon(state_dir)
    if beacon is not None and beacon.instance == instance:
        (state_dir / NAME).unlink(missing_ok=True)
