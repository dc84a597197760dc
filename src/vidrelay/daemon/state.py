"""
The state directory: private, and held by one relay at a time through a lock of the operating system.
"""

import errno
import json
import os
import re
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeGuard

from vidrelay.client.beacon import read_private, write_private
from vidrelay.core.errors import RelayUnavailable
from vidrelay.core.proof import is_token

LOCK_NAME = "relay.lock"
KEEP_NAME = "keep.json"

_DRAFT = re.compile(r"\.(?:relay\.json|keep\.json|tls\.pem)\.[0-9a-f]{16}")


def prepare(state_dir: Path) -> None:
    """
    Make the state directory, for this user alone; one that is there already is closed to others.

    Raises:
        RelayUnavailable: It cannot be made, or belongs to somebody else.
    """
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = state_dir.stat()
        if not stat.S_ISDIR(facts.st_mode):
            raise RelayUnavailable(f"The state directory {state_dir} is not a directory.")
        if hasattr(os, "getuid") and facts.st_uid != os.getuid():
            raise RelayUnavailable(f"The state directory {state_dir} belongs to another user.")
        if facts.st_mode & 0o077:
            state_dir.chmod(0o700)
    except OSError as error:
        raise RelayUnavailable(
            f"The state directory {state_dir} cannot be used: {error.strerror}.",
            hint="Name another: --state-dir DIR, or VIDRELAY_STATE_DIR.",
        ) from error


def clear_drafts(state_dir: Path) -> None:
    """
    Delete what a relay that was killed in the middle of writing its small files left of them; needs the lock.
    """
    for path in state_dir.iterdir():
        if _DRAFT.fullmatch(path.name) and not path.is_dir():
            path.unlink(missing_ok=True)


class StateLock:
    """
    The lock that makes a state directory one relay's. Its file is never deleted: a deleted one could be locked twice.

    It is the system's own, so it goes with the process, however that ends.
    """

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / LOCK_NAME
        self._descriptor: int | None = None

    def take(self) -> bool:
        """
        Take the lock if nobody holds it; whether that worked.

        Raises:
            RelayUnavailable: It cannot be opened, or the file system has no locks.
        """
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            descriptor = os.open(self._path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)
        except OSError as error:
            raise RelayUnavailable(f"The lock {self._path} cannot be opened: {error.strerror}.") from error
        taken = False
        try:
            taken = stat.S_ISREG(os.fstat(descriptor).st_mode) and _lock(descriptor)
        except OSError as error:
            raise RelayUnavailable(
                f"The file system of {self._path.parent} has no locks: {error.strerror}.",
                hint="Name a state directory on a local disk: --state-dir DIR.",
            ) from error
        finally:
            if not taken:
                os.close(descriptor)
        if taken:
            self._descriptor = descriptor
        return taken

    def is_held(self) -> bool:
        """
        Whether the lock is this process's, and still the one that another would find in the directory.
        """
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.lstat(self._path))
        except OSError:
            return False

    def release(self) -> None:
        """
        Let go of the lock, if it is held.
        """
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        """
        Hold what was taken.
        """
        return self

    def __exit__(self, *_: object) -> None:
        """
        Let go.
        """
        self.release()


def _lock(descriptor: int) -> bool:
    """
    Lock the open file without waiting; False where somebody else holds it.
    """
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 there on this platform only

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        return True
    import fcntl  # noqa: PLC0415 there on this platform only

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """
    The token and port of `token = "keep"`, and the port for https where there is one.
    """

    token: str = field(repr=False)
    port: int
    tls_port: int | None = None


def read_kept(state_dir: Path) -> Kept | None:
    """
    What `keep.json` keeps; None where it is missing, or not what a relay writes.
    """
    # Before the directory was closed to others, somebody may have put a token there that they know.
    data = read_private(state_dir / KEEP_NAME)
    try:
        told: Any = json.loads((data or b"").decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    token, port, tls_port = told.get("token"), told.get("port"), told.get("tlsPort")
    if not is_token(token) or not _is_port(port):
        return None
    return Kept(token=token, port=port, tls_port=tls_port if _is_port(tls_port) else None)


def _is_port(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65535


def write_kept(state_dir: Path, kept: Kept) -> None:
    """
    Keep them for the next start.

    Raises:
        OSError: The file cannot be written.
    """
    told = {"token": kept.token, "port": kept.port} | ({} if kept.tls_port is None else {"tlsPort": kept.tls_port})
    write_private(state_dir / KEEP_NAME, json.dumps(told))
