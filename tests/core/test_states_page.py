"""
The page on states says what the code does.
"""

import runpy
from pathlib import Path
from typing import get_args

import pytest

from vidrelay.core.lifecycle import Event
from vidrelay.core.task import State

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE = (REFERENCE / "states.md").read_text(encoding="utf-8")


def test_the_diagram_is_drawn_from_the_table() -> None:
    """
    If this fails, run docs/reference/draw_states.py.
    """
    drawn = runpy.run_path(str(REFERENCE / "draw_states.py"))["drawn"]
    assert drawn(PAGE) == PAGE
    assert "queued --> submitting: Started" in PAGE


@pytest.mark.parametrize("name", [*State, *(event.__name__ for event in get_args(Event))])
def test_every_state_and_event_is_explained(name: str) -> None:
    """
    The page's tables have a row for every state and every event.
    """
    assert f"\n| `{name}` |" in PAGE
