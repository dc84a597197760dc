"""
What reaches the terminal: machine-readable output on stdout, everything for people on stderr.

Text that came from somewhere else (prompts, providers' errors) is shown with control characters made visible, and never
as markup.
"""

import gc
import json
import sys
import unicodedata
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vidrelay.core.errors import ConfigError, InvalidRequest, RelayUnavailable, RequestError, UnknownAccount
from vidrelay.core.task import State

if TYPE_CHECKING:
    from rich.console import Console

    from vidrelay.client.calls import Client


class Exit(IntEnum):
    """
    The exit statuses (contract section 7).
    """

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNAVAILABLE = 3
    UNCERTAIN = 4
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """
    Which relay is meant: its state directory, and the configuration file if one was named.
    """

    state_dir: Path
    config: str | None

    def client(self, *, app: str | None = None) -> AbstractAsyncContextManager["Client"]:
        """
        A client of that relay, which is started where none runs; `app` is the name that it is told.

        Raises:
            RelayUnavailable: It does not start.
            ConfigError: The configuration of a relay that is started is wrong.
        """
        from vidrelay.client.calls import open_client

        # Off until all was loaded (`main`).
        gc.enable()
        return open_client(self.state_dir, config=self.config, app=app)


def exit_of(state: State) -> Exit:
    """
    The exit status for a task in that state; one that has not ended counts as done so far.
    """
    if state is State.UNCERTAIN:
        return Exit.UNCERTAIN
    return Exit.FAILED if state in (State.FAILED, State.CANCELLED, State.EXPIRED) else Exit.DONE


def exit_of_error(error: BaseException) -> Exit:
    """
    The exit status for an error.
    """
    if isinstance(error, RelayUnavailable):
        return Exit.UNAVAILABLE
    return Exit.USAGE if isinstance(error, ConfigError | InvalidRequest | UnknownAccount) else Exit.FAILED


def fault_lines(error: BaseException) -> list[str]:
    """
    An error in words, and what to do about it.
    """
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    field = getattr(error, "field", None)
    if field and field not in message:
        message = f"{field}: {message}"
    lines = [f"vidrelay: {shown(message)}"]
    hint = getattr(error, "hint", None)
    if hint:
        lines.append(f"  {shown(hint)}")
    elif isinstance(error, RequestError) and error.code == "unknown_task":
        lines.append("  The tasks that are there: vidrelay tasks")
    return lines


def shown(text: str) -> str:
    """
    Text with everything that could steer a terminal made visible; line breaks become blanks.
    """
    return "".join(_visible(letter) for letter in text)


def _visible(letter: str) -> str:
    if letter in "\n\r\t":
        return " "
    # Cf holds joiners that emoji and scripts need; only those that reorder or hide text are shown as codes.
    if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or letter in _BIDI:
        return f"\\x{ord(letter):02x}" if ord(letter) < 256 else f"\\u{ord(letter):04x}"
    return letter


_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\u2060\ufeff")


def shortened(text: str, width: int) -> str:
    """
    Shown text, cut to so many characters.
    """
    text = " ".join(shown(text).split())
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def out(text: str) -> None:
    """
    One line for machines, at once.
    """
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def out_json(value: Any) -> None:
    """
    One JSON value on one line for machines.
    """
    out(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def say(text: str = "") -> None:
    """
    One line for people. The text must be shown text already where it is foreign.
    """
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def agreed(question: str) -> bool:
    """
    Ask people, not machines: the answer comes on standard input, and none is no.
    """
    sys.stderr.write(f"{question} [y/N]: ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        say()
    return answer.strip().lower() in ("y", "yes")


def console() -> "Console":
    """
    The terminal for people.
    """
    from rich.console import Console

    screen = Console(stderr=True, markup=False, highlight=False, emoji=False)
    # Where nobody looks, nothing needs to fit: whoever reads a file or a pipe wants whole ids.
    return screen if screen.is_terminal else Console(stderr=True, markup=False, highlight=False, emoji=False, width=240)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> None:
    """
    A table for people; `right` are the columns of numbers. Cells are made safe here.
    """
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        # The first column is what is copied into the next command, so it stays whole.
        widest = max((len(shown(row[0])) for row in rows), default=0) if number == 0 else None
        drawn.add_column(
            heading,
            justify="right" if number in right else "left",
            overflow="ellipsis",
            no_wrap=True,
            min_width=widest,
        )
    for row in rows:
        drawn.add_row(*(Text(shown(cell)) for cell in row))
    console().print(drawn)


def span(seconds: float) -> str:
    """
    So many seconds in words that people use.
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def bulk(count: float) -> str:
    """
    So many bytes in words that people use.
    """
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
