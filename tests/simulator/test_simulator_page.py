"""
The reference page of the simulator is held to its code.
"""

from dataclasses import fields
from pathlib import Path

import pytest

from vidrelay.simulator.faults import AFTER, BEFORE, CONTENT
from vidrelay.simulator.options import SimulatorOptions

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/simulator.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("field", [one.name for one in fields(SimulatorOptions)])
def test_every_setting_is_on_the_page(field: str) -> None:
    """Each flag has its row, with the words of its help."""
    flag = "--fault" if field == "faults" else "--" + field.replace("_", "-")
    told = next(one.metadata["told"] for one in fields(SimulatorOptions) if one.name == field)
    assert f"| `{flag}` | {told}" in PAGE


@pytest.mark.parametrize(("effect", "told"), [*BEFORE.items(), *AFTER.items(), *CONTENT.items()])
def test_every_fault_is_on_the_page(effect: str, told: str) -> None:
    """Each effect has its row."""
    assert f"| `{effect}` | {told} |" in PAGE
