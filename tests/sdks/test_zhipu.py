"""
The official SDKs of Zhipu and Z.ai, each in an environment that it can live in, against the pretend provider.
"""

from typing import Any

WRONG = ["APIAuthenticationError", 401, "1002"]
TWICE = ["APIRequestFailedError", 400, "1231"]


async def test_zai_sdk_at_both_houses(run_sdk: Any) -> None:
    """generations and retrieve_videos_result; a job that fails, a repeated request_id, one too many, a wrong key."""
    ran = await run_sdk("zai_sdk", dialect="zhipu", path="/api/paas/v4", key="id.right", window=1)
    said = ran.printed
    for house in ("zai", "zhipu"):
        assert said[house] == {"created": ["PROCESSING", house, True], "ended": "SUCCESS", "clip": True}
    assert said["twice"] == TWICE
    assert said["failed"] == "FAIL"
    assert said["busy"] == ["APIReachLimitError", 429, "1302"]
    assert said["refused"] == WRONG
    assert ran.ledger["creates"] == {"received": 7, "accepted": 4, "answered": 4, "refused": 3, "lost": 0}
    assert [job["downloads"] for job in ran.ledger["jobs"]] == [1, 1, 0, 0]
    assert ran.jobs[0].pictures == 2


async def test_zhipuai(run_sdk: Any) -> None:
    """The older SDK, which sends what is not set as null."""
    ran = await run_sdk("zhipuai_sdk", dialect="zhipu", path="/api/paas/v4", key="id.right", environment="zhipuai")
    said = ran.printed
    assert said["created"] == ["PROCESSING", "once", True]
    assert (said["ended"], said["clip"], said["failed"]) == ("SUCCESS", True, "FAIL")
    assert said["twice"] == TWICE
    assert said["refused"] == WRONG
    assert ran.ledger["creates"] == {"received": 4, "accepted": 2, "answered": 2, "refused": 2, "lost": 0}
