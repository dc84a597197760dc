"""
Luma's Agents API, held against its fact sheet and the pretend provider in its words.
"""

import base64
import json
from dataclasses import replace

import pytest

from vidrelay.core.adapter import Refused, Unknown
from vidrelay.core.lifecycle import Accepted, Failed, Ready, StillRunning
from vidrelay.core.task import Reference
from vidrelay.providers.luma_agents.adapter import make
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE, PICTURE_BYTES, written
from vidrelay.testing.sheet import Sample, Sheet

FIELDS = {"duration": 5, "aspect_ratio": "16:9", "resolution": "720p", "model_version": "ray-3.2"}
JOB = {
    "id": "gen_01",
    "type": "video",
    "model": "ray-3.2",
    "created_at": "2026-11-30T10:00:00Z",
    "output": [],
    "failure_code": None,
    "failure_reason": None,
}


class TestLumaAgents(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="luma-agents",
        make=make,
        path="/v1",
        fields=FIELDS,
        picture={"duration": 5},
        words={
            "queued": Standing.WAITING,
            "processing": Standing.WORKING,
            "completed": Standing.DONE,
            "failed": Standing.FAILED,
        },
        create_codes={
            **dict.fromkeys(("400", "413", "422"), Meaning.REJECTED),
            **dict.fromkeys(("401", "403"), Meaning.AUTH),
            "402": Meaning.BALANCE,
            "429": Meaning.RATE,
            **dict.fromkeys(("500", "502", "503"), Meaning.AGAIN),
        },
        job_codes={
            "content_moderated": Meaning.MODERATED,
            # No money for a job that was begun ends it, as any other rejection does.
            **dict.fromkeys(
                ("budget_exhausted", "image_too_large", "unsupported_format", "corrupt_input", "invalid_request"),
                Meaning.REJECTED,
            ),
            **dict.fromkeys(("generation_failed", "output_not_found", "rate_limited"), Meaning.AGAIN),
        },
        refused=(
            ({"negative_prompt": "x"}, "negativePrompt"),
            ({"seed": 7}, "seed"),
            ({"duration": 9}, "duration"),
            ({"aspect_ratio": "5:1"}, "aspectRatio"),
            ({"resolution": "4k"}, "resolution"),
        ),
        samples=(
            Sample(of="submit", data={**JOB, "state": "queued"}, outcome=Accepted, status=201),
            Sample(of="poll", data={**JOB, "state": "processing"}, outcome=StillRunning),
            Sample(
                of="poll",
                data={
                    **JOB,
                    "state": "completed",
                    "output": [{"type": "video", "url": "https://storage.example/x.mp4?sig=y"}],
                },
                outcome=Ready,
            ),
        ),
    )


async def test_a_picture_is_base64_beside_its_type():
    """`data` and `media_type`, with no `data:` before; an address stands as `url`."""
    it = TestLumaAgents.sheet.rehearse()
    frames = (
        Reference(asset=PICTURE.id, role="first_frame"),
        Reference(url="https://x.example/b.png", role="last_frame"),
    )
    await it.submitted(it.task(references=frames))
    video = json.loads(written(it.requests[0])[1])["video"]
    assert video == {
        "start_frame": {"data": base64.b64encode(PICTURE_BYTES).decode(), "media_type": "image/png"},
        "end_frame": {"url": "https://x.example/b.png"},
    }


async def test_ten_seconds_take_frames_by_their_place():
    """The two named frames are for five seconds alone."""
    it = TestLumaAgents.sheet.rehearse()
    frames = tuple(Reference(url=f"https://x.example/{role}", role=role) for role in ("first_frame", "last_frame"))
    task = it.task(duration=10, references=frames)
    assert task.parameters["video"] == {
        "duration": "10s",
        "keyframes": [{"url": "https://x.example/first_frame"}, {"url": "https://x.example/last_frame"}],
        "keyframe_indexes": [0, 240],
    }
    await it.submitted(task)


@pytest.mark.parametrize(
    ("detail", "scope", "reason"),
    [
        ("Rate limit exceeded", "calls", "rate"),
        ("Too many concurrent generations", "creates", "window"),
    ],
)
def test_too_many_calls_are_not_too_many_jobs(detail, scope, reason):
    """Both are 429 with a Retry-After; the second pauses creates alone."""
    it = TestLumaAgents.sheet.rehearse()
    answer = reply({"detail": detail}, status=429, headers={"retry-after": "7"})
    outcome = converse(it.adapter.submit(it.task()), answer)[1]
    assert isinstance(outcome, Refused)
    assert (outcome.scope, outcome.reason, outcome.retry_after) == (scope, reason, 7.0)


def test_what_is_no_video_is_left_out():
    """An EXR beside the film is not fetched; the film is."""
    it = TestLumaAgents.sheet.rehearse()
    output = [{"type": "exr", "url": "https://s.example/x.exr"}, {"type": "video", "url": "https://s.example/x.mp4"}]
    task = replace(it.task(), remote_id="gen_01")
    ready = converse(it.adapter.poll(task), reply({**JOB, "state": "completed", "output": output}))[1]
    assert isinstance(ready, Ready)
    assert [one.url for one in ready.outputs] == ["https://s.example/x.mp4"]


def test_a_prompt_that_policy_refuses_is_moderated():
    """The text alone tells it."""
    it = TestLumaAgents.sheet.rehearse()
    outcome = converse(it.adapter.submit(it.task()), reply({"detail": "content policy violation"}, status=400))[1]
    assert isinstance(outcome, Failed)
    assert outcome.problem.code == "moderated"


@pytest.mark.parametrize(
    "body", [{"detail": "no"}, {"error": "no"}, {"message": "no"}, {"error": {"message": "no", "code": "x"}}]
)
@pytest.mark.parametrize(("status", "outcome"), [(401, Refused), (402, Refused), (422, Failed), (500, Unknown)])
def test_an_error_of_any_usual_form_is_read(body, status, outcome):
    """The form is not documented for sure: what is surely refused must not be left to a person for that."""
    it = TestLumaAgents.sheet.rehearse()
    assert isinstance(converse(it.adapter.submit(it.task()), reply(body, status=status))[1], outcome)
