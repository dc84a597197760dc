from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fake_relay import FakeRelay
from loopback import Served, serving


@pytest.fixture
def relay(tmp_path: Path) -> FakeRelay:
    return FakeRelay(tmp_path)


@pytest.fixture
async def served(relay: FakeRelay) -> AsyncIterator[Served]:
    async with serving(relay) as it:
        yield it
