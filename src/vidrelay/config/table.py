"""
Reads TOML so that every fault can be told with its file and line, and no key is passed over in silence.
"""

import math
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from vidrelay.core.errors import ConfigError

T = TypeVar("T")

_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*'))*)\s*="""
)
_HEADER = re.compile(r"\s*\[{1,2}([^\[\]\n]+)\]{1,2}\s*(?:#.*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """
    One configuration file as text.
    """

    path: Path
    text: str

    def parse(self) -> dict[str, Any]:
        """
        The file's tables.

        Raises:
            ConfigError: It is not TOML.
        """
        try:
            return tomllib.loads(self.text)
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            found = re.search(r"\(at line (\d+), column \d+\)", str(error))
            at_end = "(at end of document)" in str(error)
            line = found[1] if found else self.text.rstrip().count("\n") + 1
            where = f"{self.path}:{line}" if found or at_end else str(self.path)
            detail = re.sub(r" \(at .*\)$", "", str(error))
            raise ConfigError(f"{where}: not valid TOML: {detail}.") from error

    def line_of(self, path: tuple[str, ...]) -> int | None:
        """
        The line where that key, or the table that holds it, is written; None where that cannot be told.
        """
        table: tuple[str, ...] = ()
        best: tuple[int, int] | None = None
        for number, line in enumerate(self.text.splitlines(), start=1):
            header = _HEADER.fullmatch(line)
            key = _KEY.match(line)
            if header:
                table = found = _parts(header[1])
            elif key:
                found = table + _parts(key[1])
            else:
                continue
            if path[: len(found)] == found and (best is None or len(found) > best[0]):
                best = (len(found), number)
        return best[1] if best else None


def _parts(key: str) -> tuple[str, ...]:
    """
    A dotted key's parts, as TOML reads it; none where it is not one after all.
    """
    try:
        value: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    parts: list[str] = []
    while isinstance(value, dict):
        name, value = next(iter(value.items()))
        parts.append(name)
    return tuple(parts)


@dataclass(slots=True, kw_only=True)
class Table:
    """
    One table being read: each key is taken once, and `finish` refuses what nobody took.
    """

    source: Source
    path: tuple[str, ...]
    values: dict[str, Any]
    taken: set[str] = field(default_factory=set)

    def fail(self, key: str | None, fault: str, *, hint: str | None = None) -> NoReturn:
        """
        Refuse the configuration because of this key, or of the whole table.
        """
        raise ConfigError(f"{self.place(key)} {fault}.", hint=hint)

    def place(self, key: str | None = None) -> str:
        """
        Where this key, or the whole table, is written, for an error: the file, the line and its dotted name.
        """
        path = (*self.path, key) if key else self.path
        line = self.source.line_of(path)
        where = f"{self.source.path}:{line}" if line else str(self.source.path)
        return f"{where}: {'.'.join(path)}"

    def value(self, key: str) -> Any:
        """
        What is written under the key, or None.
        """
        self.taken.add(key)
        return self.values.get(key)

    def text(self, key: str) -> str | None:
        """
        A text that is not empty.
        """
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            self.fail(key, "must be a text in quotes")
        if any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
            self.fail(key, "must not hold a line break or another control character")
        return value

    def read(self, key: str, reader: Callable[[str], T]) -> T | None:
        """
        A text that `reader` understands.
        """
        text = self.text(key)
        if text is None:
            return None
        try:
            return reader(text)
        except ValueError as error:
            self.fail(key, str(error))

    def flag(self, key: str, default: bool) -> bool:
        """
        A yes or no: `true` or `false`.
        """
        value = self.value(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fail(key, "must be true or false")
        return value

    def number(self, key: str, default: float, *, low: float, high: float) -> float:
        """
        A number from `low` to `high`.
        """
        value = self.value(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.fail(key, f"must be a number from {low:g} to {high:g}")
        if not low <= value <= high:
            self.fail(key, f"must be from {low:g} to {high:g}")
        return float(value)

    def whole(self, key: str, *, low: int, high: int) -> int | None:
        """
        A whole number from `low` to `high`, or None.
        """
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.fail(key, f"must be a whole number from {low} to {high}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """
        A list of texts.
        """
        value = self.value(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            self.fail(key, "must be a list of texts in quotes")
        return tuple(value)

    def table(self, key: str) -> "Table":
        """
        The table under the key; an empty one where it is not written.
        """
        value = self.value(key)
        if value is not None and not isinstance(value, dict):
            self.fail(key, "must be a table")
        return Table(source=self.source, path=(*self.path, key), values=value or {})

    def finish(self, *, refused: dict[str, str] | None = None) -> None:
        """
        Refuse any key that nobody took; `refused` explains the ones people are likely to try.
        """
        for key in self.values:
            if key in self.taken:
                continue
            if refused and key in refused:
                self.fail(key, refused[key])
            known = ", ".join(sorted(self.taken))
            self.fail(key, "is not a setting", hint=f"Known here: {known}.")
