"""
The official `replicate` SDK in its own environment, both clients, against the pretend provider.
"""

from typing import Any


async def test_replicate_makes_fetches_lists_and_cancels(run_sdk: Any) -> None:
    """By model, version and deployment, with a picture; run, list; failed, cancelled, refused; three at once."""
    ran = await run_sdk(
        "replicate_both",
        dialect="replicate",
        key="right",
        run_seconds=0.2,
        environ={"REPLICATE_POLL_INTERVAL": "0.05"},
    )
    said = ran.printed
    assert said["created"] == {
        "status": "starting",
        "model": "minimax/video-01",
        "version": "hidden",
        "input": {"prompt": "a paper boat", "duration": 5},
    }
    assert said["ended"] == ["succeeded", None, True, 1.0]
    assert said["is_mp4"]
    assert (said["by_version"], said["by_deployment"], said["ran"]) == (["succeeded", True, True], "succeeded", True)
    assert said["failed"] == ["failed", True, None]
    assert said["cancelled"] == "canceled"
    assert said["listed"] == [6, True, None]
    assert (said["account"], said["gone"], said["wrong"], said["refused"]) == ("acme", 404, 422, 401)
    assert said["at_once"] == ["succeeded"] * 3
    assert ran.ledger["creates"] == {"received": 10, "accepted": 9, "answered": 9, "refused": 1, "lost": 0}
    states = [job["state"] for job in ran.ledger["jobs"]]
    assert states == ["done", "done", "done", "done", "failed", "stopped", "done", "done", "done"]
    assert [job.pictures for job in ran.jobs] == [0, 1, 0, 0, 0, 0, 0, 0, 0]
