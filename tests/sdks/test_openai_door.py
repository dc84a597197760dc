"""
The official `openai` SDK through a relay's door: SDK, relay and pretend provider.
"""

from typing import Any

DOOR = {"provider": "openai", "dialect": "openai", "upstream": "/v1", "path": "/v1"}


async def test_the_blocking_client_makes_fetches_and_deletes_a_clip(run_door: Any) -> None:
    """create, retrieve, download, list, delete; a job that fails, and a key that is not the token."""
    ran = await run_door("openai_sync", **DOOR)
    said = ran.printed
    assert said["created"] == {"status": "queued", "seconds": "4", "size": "1280x720", "model": "sora-2"}
    assert said["ended"] == {"status": "completed", "progress": 100, "completed": True}
    assert said["clip"]["is_mp4"]
    assert said["listed"]
    assert said["failed"]["status"] == "failed"
    assert said["deleted"]
    assert said["gone"] == 404
    assert said["refused"]["status"] == 403
    assert ran.ledger["creates"]["received"] == 2
