"""
OpenRouter, held against its fact sheet and the pretend provider in its words.
"""

from dataclasses import replace

import pytest

from vidrelay.core.adapter import Refused, Unknown
from vidrelay.core.lifecycle import Accepted, Failed, Ready, StillRunning
from vidrelay.core.task import Reference, RemoteFile
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.openrouter.adapter import make
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE
from vidrelay.testing.sheet import Sample, Sheet

MODEL = "google/veo-3.1"
FIELDS = {"duration": 8, "aspect_ratio": "16:9", "resolution": "720p", "seed": 7, "model_version": MODEL}
ID = "gen-vid-1790000000-abcdefghij0123456789"
URL = f"https://openrouter.ai/api/v1/videos/{ID}"


class TestOpenRouter(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="openrouter",
        make=make,
        path="/api/v1",
        fields=FIELDS,
        picture={"duration": 5, "model_version": MODEL},
        words={
            "pending": Standing.WAITING,
            "in_progress": Standing.WORKING,
            "completed": Standing.DONE,
            "failed": Standing.FAILED,
            "cancelled": Standing.CANCELLED,
            "expired": Standing.EXPIRED,
        },
        create_codes={
            **dict.fromkeys(("400", "404", "413"), Meaning.REJECTED),
            **dict.fromkeys(("401", "403"), Meaning.AUTH),
            "402": Meaning.BALANCE,
            "429": Meaning.RATE,
            **dict.fromkeys(("499", "500", "502", "503"), Meaning.AGAIN),
        },
        job_codes={"moderation_blocked": Meaning.MODERATED, "out_of_luck": Meaning.AGAIN},
        refused=(
            ({"negative_prompt": "x"}, "negativePrompt"),
            ({"style_preset": "anime"}, "stylePreset"),
            ({"model_version": None}, "modelVersion"),
            ({"duration": 4.5}, "duration"),
            ({"aspect_ratio": "5:1"}, "aspectRatio"),
            ({"resolution": "8K"}, "resolution"),
        ),
        samples=(
            Sample(of="submit", data={"id": ID, "polling_url": URL, "status": "pending"}, outcome=Accepted, status=202),
            Sample(of="poll", data={"id": ID, "polling_url": URL, "status": "in_progress"}, outcome=StillRunning),
            Sample(
                of="poll",
                data={
                    "id": ID,
                    "polling_url": f"/api/v1/videos/{ID}",
                    "status": "completed",
                    "generation_id": "gen-1790000000-x",
                    "usage": {"cost": 0.4, "is_byok": False},
                    "unsigned_urls": [f"{URL}/content?index=0"],
                },
                outcome=Ready,
            ),
            Sample(of="poll", data={"id": ID, "status": "failed", "error": "no"}, outcome=Failed),
        ),
    )


@pytest.mark.parametrize(
    ("told", "outputs"),
    [
        ({"unsigned_urls": [f"{URL}/content?index=0"]}, [(f"{URL}/content?index=0", True)]),
        (
            {
                "unsigned_urls": [f"/api/v1/videos/{ID}/content?index=0", f"{URL}/content?index=1"],
                "urls": ["https://s/"],
            },
            [(f"{URL}/content?index=0", True), (f"{URL}/content?index=1", True)],
        ),
        ({"unsigned_urls": ["https://elsewhere.example/x.mp4"]}, [(f"{URL}/content?index=0", True)]),
        ({"urls": ["https://store.example/x.mp4?sig=1"]}, [("https://store.example/x.mp4?sig=1", False)]),
        ({}, [(f"{URL}/content?index=0", True)]),
    ],
)
def test_the_key_goes_with_openrouters_own_addresses_alone(told, outputs):
    """`unsigned_urls` want it, the signed ones do not, and no other host gets it."""
    adapter = make(AdapterSettings(now=FakeClock().now, key="key-canary"))
    task = replace(TestOpenRouter.sheet.rehearse().task(**FIELDS), remote_id=ID)
    ready = converse(adapter.poll(task), reply({"id": ID, "status": "completed", **told}))[1]
    assert isinstance(ready, Ready)
    assert [(one.url, one.needs_key) for one in ready.outputs] == outputs
    for one in ready.outputs:
        assert ("Authorization" in adapter.download(task, one).headers) is one.needs_key
    away = RemoteFile(url="https://openrouter.ai.evil.example/x.mp4", needs_key=True)
    assert "Authorization" not in adapter.download(task, away).headers


@pytest.mark.parametrize("signed", [["https://s.example/1"], ["https://s.example/1", "https://s.example/2"], [], None])
def test_signed_addresses_stand_in_for_openrouters_own(signed):
    """They are tried where its own give no clip; of another number than the clips they belong to nobody knows which."""
    it = TestOpenRouter.sheet.rehearse()
    task = replace(it.task(**FIELDS), remote_id=ID)
    told = {"id": ID, "status": "completed", "unsigned_urls": [f"{URL}/content?index={n}" for n in (0, 1)]}
    ready = converse(it.adapter.poll(task), reply({**told, "urls": signed}))[1]
    assert [one.otherwise for one in ready.outputs] == (signed if signed and len(signed) == 2 else [None, None])
    assert all(one.needs_key for one in ready.outputs)


def test_an_error_in_an_answer_of_200_is_one():
    """Its own code decides, and not the status."""
    it = TestOpenRouter.sheet.rehearse()
    task = it.task(**FIELDS)
    outcome = converse(it.adapter.submit(task), reply({"error": {"code": 402, "message": "Insufficient credits"}}))[1]
    assert isinstance(outcome, Refused)
    assert (outcome.scope, outcome.reason) == ("creates", "balance")
    outcome = converse(it.adapter.submit(task), reply({"error": {"code": 502, "message": "vendor"}}))[1]
    assert isinstance(outcome, Unknown)


def test_a_flagged_prompt_is_moderated_and_leaves_the_account_alone():
    """403 is the key's, unless it tells reasons."""
    it = TestOpenRouter.sheet.rehearse()
    error = {"code": 403, "message": "Your input was flagged", "metadata": {"reasons": ["violence"]}}
    outcome = converse(it.adapter.submit(it.task(**FIELDS)), reply({"error": error}, status=403))[1]
    assert isinstance(outcome, Failed)
    assert outcome.problem.code == "moderated"


async def test_frames_and_references_each_have_their_field():
    """A first and a last frame, and references, as image addresses or data URIs."""
    it = TestOpenRouter.sheet.rehearse()
    roles = ("first_frame", "last_frame", "reference")
    references = (*(Reference(asset=PICTURE.id, role=role) for role in roles), Reference(url="https://x.example/a.png"))
    task = it.task(model_version=MODEL, references=references)
    assert [one["frame_type"] for one in task.parameters["frame_images"]] == ["first_frame", "last_frame"]
    assert task.parameters["input_references"][1] == {
        "type": "image_url",
        "image_url": {"url": "https://x.example/a.png"},
    }
    await it.submitted(task)
    assert next(iter(it.engine.jobs.values())).pictures == 4


@pytest.mark.parametrize("code", [400, 402, 429])
@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_5xx_never_proves_that_nothing_was_made(status, code):
    """Whatever code the vendor behind it gave: a create that is sent again could be paid twice."""
    it = TestOpenRouter.sheet.rehearse()
    told = {"error": {"code": code, "message": "no"}}
    assert isinstance(converse(it.adapter.submit(it.task(**FIELDS)), reply(told, status=status))[1], Unknown)


@pytest.mark.parametrize("url", ["https://[", "//[::1", "https://[fe80::1%25/x", "http://a]b/"])
def test_an_address_that_is_none_is_asked_for_at_openrouter(url):
    """It raises nothing."""
    it = TestOpenRouter.sheet.rehearse()
    task = replace(it.task(**FIELDS), remote_id=ID)
    ready = converse(it.adapter.poll(task), reply({"id": ID, "status": "completed", "unsigned_urls": [url]}))[1]
    assert isinstance(ready, Ready)
    assert ready.outputs[0].url.endswith(f"/api/v1/videos/{ID}/content?index=0")
