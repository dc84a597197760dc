"""
A store on disk for every test, closed at its end.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from vidrelay.store.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "relay.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(path)
    yield opened
    await opened.aclose()
