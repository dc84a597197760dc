"""
The official `openai` SDK in its own environment, both clients, against the pretend provider.
"""

from pathlib import Path
from typing import Any

import pytest

REFUSED = {"status": 401, "code": "invalid_api_key"}


async def test_the_blocking_client_makes_fetches_and_deletes_a_clip(run_sdk: Any) -> None:
    """create, retrieve, download, list, delete; a job that fails, and a key that is refused."""
    ran = await run_sdk("openai_sync", dialect="openai", path="/v1", key="right")
    said = ran.printed
    assert said["created"] == {"status": "queued", "seconds": "4", "size": "1280x720", "model": "sora-2"}
    assert said["ended"] == {"status": "completed", "progress": 100, "completed": True}
    assert said["clip"]["is_mp4"]
    assert said["clip"]["bytes"] > 500
    assert said["listed"]
    assert said["failed"] == {"status": "failed", "code": "moderation_blocked"}
    assert said["deleted"]
    assert said["gone"] == 404
    assert said["refused"] == REFUSED
    assert ran.ledger["creates"] == {"received": 3, "accepted": 2, "answered": 2, "refused": 1, "lost": 0}
    assert [job["downloads"] for job in ran.ledger["jobs"]] == [1, 0]


async def test_the_asynchronous_client_makes_clips_at_once(run_sdk: Any) -> None:
    """Three at once, fetched and listed; a job that fails, and a key that is refused."""
    ran = await run_sdk("openai_async", dialect="openai", path="/v1", key="right")
    said = ran.printed
    assert said["ended"] == ["completed"] * 3
    assert said["clips"] == [True] * 3
    assert said["listed"] == 3
    assert said["failed"] == {"status": "failed", "code": "generation_failed"}
    assert said["deleted"]
    assert said["refused"] == REFUSED
    assert ran.ledger["creates"] == {"received": 5, "accepted": 4, "answered": 4, "refused": 1, "lost": 0}
    assert sorted(ran.ledger["maxAtOnce"].values()) == [3]


async def test_a_program_that_fails_shows_why(run_sdk: Any) -> None:
    """What the SDK raised is in the test's failure, so that a CI log tells it."""
    with pytest.raises(AssertionError, match="AuthenticationError"):
        await run_sdk("openai_sync", dialect="openai", path="/v1", key="another")


@pytest.mark.parametrize(("ci", "raised"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
async def test_a_missing_environment_is_told(
    run_sdk: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ci: str, raised: type[BaseException]
) -> None:
    """Where CI=true it fails the test, so that nothing is passed over; elsewhere it skips, and says what to do."""
    monkeypatch.setenv("VIDRELAY_SDKS", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(raised, match="make sdks"):
        await run_sdk("openai_sync", dialect="openai", path="/v1")
