"""
What the relay logs, and where: event names and known fields, in a file of the state directory that turns over.
"""

import contextlib
import logging
import os
import re
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from vidrelay.client.beacon import private_directory
from vidrelay.core.proof import TOKEN_PREFIX

MAX_BYTES = 5_000_000
KEPT_FILES = 3
KEPT_STARTS = 3

_TOKEN = re.compile(rf"{TOKEN_PREFIX}[A-Za-z0-9_-]+|(?i:bearer|key|token)\s+[A-Za-z0-9._~+/-]{{8,}}=*")
_QUERY = re.compile(r"(https?://[^\s?#\"']+)[?#][^\s\"']*")
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]"
)


def log_to(state_dir: Path) -> None:
    """
    Send vidrelay's own logging to `logs/relay.log`. Libraries' loggers stay out of it: they write whole requests.

    Raises:
        OSError: The file cannot be opened.
    """
    directory = state_dir / "logs"
    private_directory(directory)
    handler = _PrivateFile(directory / "relay.log", maxBytes=MAX_BYTES, backupCount=KEPT_FILES, encoding="utf-8")
    handler.setFormatter(_Line("%(asctime)s %(levelname)s %(name)s %(message)s"))
    _forget_starts(directory)
    logger = logging.getLogger("vidrelay")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    logger.propagate = False


def _forget_starts(directory: Path) -> None:
    """
    Keep the last words of the newest detached starts only (`client/start.py` writes one file for each).
    """
    with contextlib.suppress(OSError):
        starts = sorted(directory.glob("start-*.log"), key=lambda path: path.lstat().st_mtime)
        for path in starts[:-KEPT_STARTS]:
            path.unlink(missing_ok=True)


class _PrivateFile(RotatingFileHandler):
    """
    A log that only this user can read and that follows no link.
    """

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        return TextIOWrapper(os.fdopen(os.open(self.baseFilename, flags, 0o600), "ab"), encoding="utf-8")


class _Line(logging.Formatter):
    """
    One line an entry: no credentials, no query of an address, no control characters, no more than the last frame of an
    exception.
    """

    def format(self, record: logging.LogRecord) -> str:
        """
        The entry's line.
        """
        return clean(super().format(record))

    def formatException(self, ei: object) -> str:  # noqa: N802 the base class's own name
        """
        Where an exception came from and its kind; its text may quote a request.
        """
        kind, _, trace = ei if isinstance(ei, tuple) else (None, None, None)
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else ""
        return f"error={getattr(kind, '__name__', 'unknown')}{where}"


def clean(line: str) -> str:
    """
    Take credentials, queries and unprintable characters out of a line.
    """
    line = _QUERY.sub(r"\1?…", _TOKEN.sub("…", line))
    return _UNPRINTABLE.sub(lambda found: f"\\x{ord(found[0]):02x}" if found[0] != "\n" else " ", line)
