"""
A program like ComfyUI's own example, which sends no key, through a relay's door and directly: it sees the same.
"""

from typing import Any

import pytest

SAME = {
    "queued": 200,
    "told": ["execution_start", "executing", True],
    "files": {"12": [True]},
    "failed": [True, "error"],
    "running": [True],
    "interrupted": 200,
    "then": [True, "error"],
    "unknown": {},
    "no_graph": True,
    "at_once": [{"12": [True]}] * 3,
}


@pytest.mark.parametrize("through", ["door", "nothing"])
async def test_the_example_sees_the_same_through_the_door_as_at_the_server(
    run_door: Any, run_sdk: Any, through: str
) -> None:
    """Upload, create, websocket, history, files, a failure, an interruption; the same thrice is one job here."""
    if through == "door":
        ran = await run_door(
            "comfyui_example",
            provider="comfyui",
            dialect="comfyui",
            settings="door_key = true",
            keyed=True,
            run_seconds=0.3,
        )
    else:
        ran = await run_sdk("comfyui_example", dialect="comfyui", run_seconds=0.3)
    assert ran.printed == SAME
    assert ran.jobs[0].pictures == 1
    if through == "door":
        assert ran.ledger["creates"] == {"received": 4, "accepted": 4, "answered": 4, "refused": 0, "lost": 0}
        assert [task["joins"] for task in ran.tasks] == [0, 0, 0, 2]
    else:
        assert ran.ledger["creates"]["accepted"] == 6
