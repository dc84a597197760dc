"""
The page that describes the database, held against the database.
"""

import re
from contextlib import closing
from pathlib import Path

import pytest

from vidrelay.store import migrate
from vidrelay.store.sqlite import LOG_ENTRIES

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "database.md").read_text(encoding="utf-8")


def described():
    """
    Each table of the page, with the words set as code in its row.
    """
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", PAGE, re.MULTILINE)
    return {table: set(re.findall(r"`(\w+)`", text)) for table, text in rows}


@pytest.fixture
def tables(path):
    """
    The database's tables, with their columns.
    """
    with closing(migrate.open_for_writing(path, migrate.migrations())) as connection:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        return {
            name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")} for (name,) in names.fetchall()
        }


def test_page_describes_every_table(tables):
    """
    No table is missing, and none is made up.
    """
    assert described().keys() == tables.keys()


def test_page_names_columns_that_exist(tables):
    """
    What a row sets as code is a column, of this table or another, or a word that stands in one.
    """
    columns = set().union(*tables.values())
    assert set().union(*described().values()) - columns == {"client_key", "request_id", "calls", "creates"}


def test_page_tells_the_numbers_of_the_code():
    """
    The marks of the file and the limits are those of the code.
    """
    assert f"`PRAGMA application_id` is {migrate.APPLICATION_ID} " in PAGE
    assert f"newest {LOG_ENTRIES:,} are kept, and up to {LOG_ENTRIES // 50:,} more" in PAGE
    assert f"above {migrate.CHECKED_BYTES // 2**20} MiB" in PAGE
