"""
Where the configuration and the state live, and whether a file there can be trusted.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from vidrelay.core.errors import ConfigError

MAX_CONFIG_BYTES = 256 * 1024
MAX_KEY_BYTES = 64 * 1024


def state_directory(option: str | Path | None, environ: Mapping[str, str]) -> Path:
    """
    The state directory: `--state-dir`, else `VIDRELAY_STATE_DIR`, else the platform's own place. Not made here.
    """
    named = option or environ.get("VIDRELAY_STATE_DIR")
    if named:
        return Path(named).expanduser().absolute()
    from platformdirs import user_state_path  # noqa: PLC0415 needed only where nothing is named

    return user_state_path("vidrelay")


def config_file(option: str | None, environ: Mapping[str, str]) -> tuple[Path, bool]:
    """
    The configuration file, and whether somebody named it (then it must exist): `--config`, else `VIDRELAY_CONFIG`,
    else `vidrelay.toml` in the platform's configuration directory.
    """
    named = option or environ.get("VIDRELAY_CONFIG")
    if named:
        return Path(named).expanduser().absolute(), True
    from platformdirs import user_config_path  # noqa: PLC0415 needed only where nothing is named

    return user_config_path("vidrelay") / "vidrelay.toml", False


def read_trusted(path: Path, *, max_bytes: int, secret: bool = False) -> str:
    """
    The text of a file that nobody else can have written, checked on the open file so that it cannot be swapped.

    Args:
        path: The file; a symbolic link is followed, and what it leads to is checked.
        max_bytes: Its largest size in bytes.
        secret: Also refuse a file of this user's that others can read.

    Raises:
        FileNotFoundError: There is no such file.
        ConfigError: It cannot be trusted or read; the hint says how to mend it.
    """
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"{path} cannot be opened: {error.strerror}.") from error
    try:
        _check(path, os.fstat(descriptor), max_bytes=max_bytes, secret=secret)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1)
    finally:
        os.close(descriptor)
    if len(data) > max_bytes:
        raise ConfigError(f"{path} is larger than {max_bytes // 1024} KB.", hint="Make it smaller.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text.", hint="Save the file as UTF-8.") from error


def _check(path: Path, facts: os.stat_result, *, max_bytes: int, secret: bool) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise ConfigError(f"{path} is not a regular file.", hint="Name a plain file.")
    if facts.st_size > max_bytes:
        raise ConfigError(f"{path} is larger than {max_bytes // 1024} KB.", hint="Make it smaller.")
    if not hasattr(os, "getuid"):
        return
    # The administrator may own it: such files come from a package or a container's secrets.
    if facts.st_uid not in (os.getuid(), 0):
        raise ConfigError(f"{path} belongs to another user.", hint=f"chown $(id -un) '{path}'")
    if facts.st_mode & 0o022:
        raise ConfigError(f"{path} can be written by other users.", hint=f"chmod go-w '{path}'")
    if secret and facts.st_uid != 0 and facts.st_mode & 0o044:
        raise ConfigError(f"{path} holds a key and can be read by other users.", hint=f"chmod 600 '{path}'")
