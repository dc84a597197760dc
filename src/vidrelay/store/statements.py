"""
The named statements of `sqlite.sql`, and a connection that runs them.
"""

import re
import sqlite3
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from vidrelay.store.rows import Row

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def load(text: str) -> Mapping[str, str]:
    """
    Cut a file of statements at its `-- name: …` lines; what stands before the first is left out.
    """
    _, *parts = _NAME.split(text)
    return MappingProxyType({name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)})


STATEMENTS = load((files(__package__) / "sqlite.sql").read_text(encoding="utf-8"))


class Session:
    """
    A connection that runs statements by their names.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """
        Run a statement to its end and give its rows.
        """
        return self._connection.execute(STATEMENTS[name], values).fetchall()

    def row(self, name: str, /, **values: Any) -> Row | None:
        """
        Run a statement and give its first row, if any.
        """
        rows = self.rows(name, **values)
        return rows[0] if rows else None
