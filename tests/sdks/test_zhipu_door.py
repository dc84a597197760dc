"""
The official SDKs of Zhipu and Z.ai, each in an environment that it can live in, through a relay's door.
"""

from typing import Any

import pytest

DOOR = {"provider": "zhipu", "dialect": "zhipu", "upstream": "/api/paas/v4", "path": "/api/paas/v4"}
CLIENTS = (("zai", "ZaiClient", "main"), ("zai", "ZhipuAiClient", "main"), ("zhipuai", "ZhipuAI", "zhipuai"))


@pytest.mark.parametrize(("package", "client", "environment"), CLIENTS, ids=[client for _, client, _ in CLIENTS])
async def test_a_client_makes_and_fetches_clips(run_door: Any, package: str, client: str, environment: str) -> None:
    """With and without a picture, three times the same at once, another version, a failure, a wrong key."""
    ran = await run_door("zhipu_door", package, client, **DOOR, environment=environment, key="id.right")
    said = ran.printed
    assert said["created"] == ["PROCESSING", "once", "cogvideox-3"]
    assert (said["same"], said["forced"], said["one_picture"]) == (1, True, True)
    assert said["ended"] == ["SUCCESS", "once", True]
    assert (said["pictured"], said["failed"]) == ("SUCCESS", "FAIL")
    assert said["unknown"] == ["APIStatusError", 404, "1214"]
    assert said["refused"] == ["APIStatusError", 403]
    assert len(ran.tasks) == 5
    assert ran.ledger["creates"]["accepted"] == len(ran.jobs) == 5
    assert sorted(job.pictures for job in ran.jobs) == [0, 0, 0, 0, 1]
