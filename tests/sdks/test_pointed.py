"""
Official SDKs, unmodified and with no word of the relay in the program: `vidrelay run` points them there.
"""

from typing import Any

import pytest

ACCOUNTS: dict[str, dict[str, Any]] = {
    "openai": {"upstream": "/v1"},
    "replicate": {},
    "fal": {},
    "runway": {},
    "luma": {"upstream": "/dream-machine/v1"},
    "luma-agents": {"upstream": "/v1"},
    "google": {"upstream": "/v1beta"},
    "dashscope": {"upstream": "/api/v1"},
    "zai": {"provider": "zhipu", "dialect": "zhipu", "upstream": "/api/paas/v4", "key": "id.right"},
    "zhipuai": {
        "provider": "zhipu",
        "dialect": "zhipu",
        "upstream": "/api/paas/v4",
        "key": "id.right",
        "environment": "zhipuai",
    },
}


@pytest.mark.parametrize("name", ACCOUNTS)
async def test_an_sdk_that_is_told_nothing_makes_its_clip_through_the_relay(run_door: Any, name: str) -> None:
    """Address and key from the environment alone: one create, one job, one task, and the clip."""
    account = {"provider": name, "dialect": name, **ACCOUNTS[name]}
    ran = await run_door("pointed", name, pointed=True, **account, queue_seconds=0.1, run_seconds=0.3)
    assert ran.printed == {"is_clip": True}
    assert ran.ledger["creates"]["received"] == 1
    assert len(ran.jobs) == len(ran.tasks) == 1
