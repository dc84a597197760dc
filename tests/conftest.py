"""
What every room of the tests may ask for.
"""

import os
import shutil
from collections.abc import Callable

import pytest


@pytest.fixture
def needs() -> Callable[[str], None]:
    """
    `needs("fish")`: without that program the test is skipped and says so, and fails where CI is set.
    """

    def look(program: str) -> None:
        if shutil.which(program) is None:
            told = f"{program} is not on this machine"
            pytest.fail(told) if os.environ.get("CI") else pytest.skip(told)

    return look
