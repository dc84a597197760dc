"""
The official `replicate` SDK through a relay's door: SDK, relay and pretend provider.
"""

from pathlib import Path
from typing import Any

from vidrelay.testing.samples import film, sound

DOOR = {"provider": "replicate", "dialect": "replicate", "run_seconds": 0.2}


async def test_the_sdk_makes_runs_uploads_lists_and_cancels(run_door: Any) -> None:
    """Both clients: by model, version and deployment, with a picture, run, held, forced, failed, refused; a list."""
    ran = await run_door("replicate_door", **DOOR, environ={"REPLICATE_POLL_INTERVAL": "0.05"})
    said = ran.printed
    assert said["created"] == {
        "status": "starting",
        "model": "minimax/video-01",
        "version": "hidden",
        "input": {"prompt": "a paper boat", "duration": 5},
    }
    assert said["ended"] == ["succeeded", None, 1.0, "data:video/mp4;base64,"]
    assert said["at_home"] == [True, True]
    assert (said["ran"], said["ran_version"]) == (True, True)
    assert said["held"] == ["starting", True]
    assert said["with_picture"] == ["succeeded", True, True]
    assert said["same_picture"]
    assert said["file"] == ["a.png", True, {"a": 1}, True]
    assert said["by_deployment"] == "succeeded"
    assert said["forced"] == [True, False]
    assert (said["failed"], said["model_error"]) == (["failed", True, None], True)
    assert said["cancelled"] == "canceled"
    assert said["listed"] == [9, True, None, "http:"]
    assert (said["gone"], said["wrong"], said["refused"]) == (404, None, 403)
    # Three identical creates at once are one task and one job.
    assert said["at_once"] == [1, True]
    assert ran.ledger["creates"] == {"received": 11, "accepted": 11, "answered": 11, "refused": 0, "lost": 0}
    assert len(ran.tasks) == len(ran.jobs) == 11
    assert sum(job.pictures for job in ran.jobs) == 1
    assert {task["state"] for task in ran.tasks} == {"done", "failed", "cancelled"}


async def test_a_film_and_a_sound_go_along_uploaded_or_in_line(run_door: Any, tmp_path: Path) -> None:
    """They are one task whichever way they came, and each is uploaded to the provider once."""
    for name, content in (("a.mp4", film()), ("a.wav", sound(10.0))):
        (tmp_path / name).write_bytes(content)
    paths = [str(tmp_path / name) for name in ("a.mp4", "a.wav")]
    ran = await run_door("replicate_film", *paths, **DOOR, environ={"REPLICATE_POLL_INTERVAL": "0.05"})
    assert ran.printed == {
        "status": "succeeded",
        "same": True,
        "shown": [True, True],
        "file": ["video/mp4", True],
    }
    assert len(ran.tasks) == len(ran.jobs) == 1
    assert ran.jobs[0].pictures == 2
