"""
Runway, held against its fact sheet, its SDK's types and the pretend provider in its words.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from vidrelay.core.adapter import Refused, Trouble, Unknown
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Ready, StillRunning
from vidrelay.core.task import CancelOutcome, Reference, RemoteState, Task
from vidrelay.providers.runway.adapter import make
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE
from vidrelay.testing.sheet import Sample, Sheet

FIELDS: dict[str, Any] = {
    "model_version": "veo3.1",
    "duration": 6,
    "aspect_ratio": "16:9",
    "resolution": "720p",
    "seed": 7,
    "negative_prompt": "rain",
}
CREATED = {"id": "17f20503-6c24-4c16-946b-35dbbce2af2f", "estimatedCost": {"credits": 60}}
TASK = {"id": CREATED["id"], "createdAt": "2026-11-30T10:00:00.000Z"}
RUNNING = {**TASK, "status": "RUNNING", "progress": 0.35, "estimatedCost": {"credits": 60}}
SUCCEEDED = {
    **TASK,
    "status": "SUCCEEDED",
    "output": ["https://dnznrvs05pmza.cloudfront.net/abc.mp4?_jwt=x"],
    "cost": {"credits": 60},
}
FAILED = {**TASK, "status": "FAILED", "failure": "text", "failureCode": "SAFETY.INPUT.TEXT", "cost": {"credits": 0}}
FIRST = Reference(asset=PICTURE.id, role="first_frame")
LAST = Reference(url="https://x.example/2.png", role="last_frame")
MORE = Reference(url="https://x.example/3.png", role="reference")


class TestRunway(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="runway",
        make=make,
        fields=FIELDS,
        picture={"model_version": "gen4_turbo", "duration": 5},
        words={
            "THROTTLED": Standing.WAITING,
            "PENDING": Standing.WAITING,
            "RUNNING": Standing.WORKING,
            "SUCCEEDED": Standing.DONE,
            "FAILED": Standing.FAILED,
            "CANCELLED": Standing.CANCELLED,
        },
        create_codes={
            "400": Meaning.REJECTED,
            "401": Meaning.AUTH,
            "404": Meaning.REJECTED,
            "405": Meaning.REJECTED,
            "429": Meaning.RATE,
            "500": Meaning.AGAIN,
            "502": Meaning.AGAIN,
            "503": Meaning.AGAIN,
            "504": Meaning.AGAIN,
        },
        job_codes={
            "SAFETY.INPUT.TEXT": Meaning.MODERATED,
            "SAFETY.INPUT.IMAGE": Meaning.MODERATED,
            "SAFETY.OUTPUT.VIDEO": Meaning.MODERATED,
            "INPUT_PREPROCESSING.SAFETY.TEXT": Meaning.MODERATED,
            "INTERNAL.BAD_OUTPUT.CODE01": Meaning.AGAIN,
            "INTERNAL": Meaning.AGAIN,
            "ASSET.INVALID": Meaning.REJECTED,
            "THIRD_PARTY.UNAVAILABLE": Meaning.AGAIN,
            "SOMETHING.NEW": Meaning.AGAIN,
        },
        refused=(
            ({"style_preset": "anime"}, "stylePreset"),
            ({"duration": 5}, "duration"),
            ({"aspect_ratio": "1:1"}, "aspectRatio"),
            ({"resolution": "480p"}, "resolution"),
            ({"seed": -1}, "seed"),
            ({"references": (MORE,)}, "references[0].role"),
            ({"references": (LAST,)}, "references"),
            ({"references": (replace(FIRST, asset=None, url="https://x.example/" + "a" * 2048),)}, "references[0].url"),
        ),
        samples=(
            Sample(of="submit", data=CREATED, outcome=Accepted),
            Sample(of="poll", data=RUNNING, outcome=StillRunning),
            Sample(of="poll", data=SUCCEEDED, outcome=Ready),
            Sample(of="poll", data=FAILED, outcome=Failed),
        ),
    )


def parameters(**fields: Any) -> Any:
    return TestRunway.sheet.rehearse().task(**fields).parameters


def underway() -> tuple[Any, Task]:
    it = TestRunway.sheet.rehearse()
    return it.adapter, replace(it.task(), remote_id="17f20503")


def test_the_version_is_in_every_call() -> None:
    """Runway refuses what names none."""
    adapter, task = underway()
    for conversation in (adapter.submit(task), adapter.poll(task), adapter.limits(), adapter.check()):
        assert next(conversation).headers["X-Runway-Version"] == "2024-11-06"


@pytest.mark.parametrize(
    ("fields", "call", "more"),
    [
        ({"model_version": "gen4.5"}, "text_to_video", {"ratio": "1280:720", "duration": 5}),
        ({"model_version": "gen4.5", "references": (FIRST,)}, "image_to_video", {"ratio": "1280:720", "duration": 5}),
        ({"model_version": "seedance2", "references": (MORE, MORE)}, "text_to_video", {}),
        ({"model_version": "veo3.1", "references": (FIRST, LAST)}, "image_to_video", {"ratio": "1280:720"}),
        ({"model_version": "klingO3_pro", "references": (FIRST, MORE)}, "image_to_video", {}),
    ],
)
def test_the_call_follows_from_the_pictures(fields: Any, call: str, more: dict[str, Any]) -> None:
    """A frame makes it image to video; references alone go with a text; what must be sent is filled in."""
    sent = parameters(**fields)
    pictures = {name: sent.pop(name) for name in ("promptImage", "references") if name in sent}
    assert sent == {"call": call, "model": fields["model_version"], "promptText": "a paper boat", **more}
    asset = {"$asset": PICTURE.id, "mediaType": "image/png"}
    wanted = fields.get("references", ())
    if LAST in wanted:
        last = {"uri": "https://x.example/2.png", "position": "last"}
        assert pictures == {"promptImage": [{"uri": asset, "position": "first"}, last]}
    elif FIRST in wanted:
        assert pictures["promptImage"] == asset
    assert len(pictures.get("references", [])) == wanted.count(MORE)


@pytest.mark.parametrize(
    ("model", "aspect", "resolution", "ratio"),
    [
        ("gen4.5", "9:16", None, "720:1280"),
        ("gen4.5", "720:1280", "720p", "720:1280"),
        ("veo3.1", "16:9", "1080p", "1920:1080"),
        ("veo3.1_fast", "9:16", None, "720:1280"),
        ("veo3.1", None, "1080p", "1920:1080"),
        ("seedance2", "16:9", "480p", "864:496"),
        ("seedance2", "4:3", "1080p", "1664:1248"),
        ("seedance2", "21:9", None, "1470:630"),
        ("seedance2", "1:1", "4K", "3840:3840"),
        ("seedance2", "16:9", "2160p", "3840:2160"),
        ("seedance2_5", "9:16", "480p", "480:854"),
        ("happyhorse_1_0", "3:4", "1080p", "1248:1662"),
        ("kling2.5_turbo_pro", "1:1", "720p", "720:720"),
        ("kling_4", "21:9", "1080p", "2200:940"),
        ("kling3.0_4k", "16:9", None, "3840:2160"),
        ("gemini_omni_flash_1.1", "16:9", "360p", "640:360"),
        ("grok_imagine_1_5_lite", "3:2", "720p", "1088:720"),
        ("wan3", "16:9", "480p", "832:480"),
        ("wan3", None, None, None),
        ("some_new_model", "16:9", None, "16:9"),
    ],
)
def test_a_shape_and_a_resolution_are_one_ratio_of_the_models_own(
    model: str, aspect: str | None, resolution: str | None, ratio: str | None
) -> None:
    """As the sheet's table has them, each model its own."""
    sent = parameters(model_version=model, aspect_ratio=aspect, resolution=resolution)
    assert sent.get("ratio") == ratio
    assert "resolution" not in sent


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"model_version": "hailuo3", "aspect_ratio": "4:3", "resolution": "2K"}, {"ratio": "4:3", "resolution": "2k"}),
        ({"model_version": "happyhorse_1_0", "resolution": "1080p", "references": (FIRST,)}, {"resolution": "1080p"}),
        ({"model_version": "h3_max", "resolution": "768p", "seed": 5}, {"resolution": "768p"}),
        ({"model_version": "wan3", "resolution": "1080p", "references": (FIRST,)}, {"ratio": "auto_1080p"}),
        ({"model_version": "grok_imagine_1_5", "aspect_ratio": "3:2"}, {"ratio": "3:2"}),
        ({"model_version": "some_new_model", "resolution": "8k"}, {"resolution": "8k"}),
    ],
)
def test_some_models_have_a_resolution_of_its_own(fields: Any, sent: dict[str, Any]) -> None:
    """Beside a named ratio, or in its place."""
    told = parameters(**fields)
    assert {name: told[name] for name in ("ratio", "resolution") if name in told} == sent


@pytest.mark.parametrize(
    ("size", "ratio"),
    [((1280, 720), "1280:720"), ((700, 1200), "720:1280"), ((1000, 1000), "960:960"), ((2400, 1000), "1584:672")],
)
def test_a_ratio_that_must_be_sent_is_the_first_frames(size: tuple[int, int], ratio: str) -> None:
    """Nobody asked for another, and nothing is cut off."""
    it = TestRunway.sheet.rehearse()
    picture = replace(PICTURE, width=size[0], height=size[1])
    task = it.task(model_version="gen4_turbo", references=(FIRST,), assets={PICTURE.id: picture})
    assert task.parameters["ratio"] == ratio


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"model_version": "gen4_turbo"}, "references"),
        ({"model_version": "gen4.5", "duration": 11}, "duration"),
        ({"model_version": "gen4.5", "duration": 2.5}, "duration"),
        ({"model_version": "gen4.5", "negative_prompt": "rain"}, "negativePrompt"),
        ({"model_version": "gen4.5", "resolution": "1080p"}, "resolution"),
        ({"model_version": "gen4.5", "aspect_ratio": "1:1"}, "aspectRatio"),
        ({"model_version": "gen4.5", "references": (FIRST, LAST)}, "references[1].role"),
        ({"model_version": "hailuo3", "seed": 1}, "seed"),
        ({"model_version": "hailuo3", "duration": 4}, "duration"),
        ({"model_version": "happyhorse_1_0", "aspect_ratio": "1:1", "references": (FIRST,)}, "aspectRatio"),
        ({"model_version": "seedance2_fast", "resolution": "1080p"}, "resolution"),
        ({"model_version": "seedance2", "references": (FIRST, MORE)}, "references"),
        ({"model_version": "seedance2", "references": (MORE,) * 10}, "references"),
        ({"model_version": "klingO3_pro", "references": (MORE, MORE)}, "references"),
        ({"model_version": "wan3", "aspect_ratio": "16:9", "references": (FIRST,)}, "aspectRatio"),
        ({"model_version": "gemini_omni_flash", "duration": 12}, "duration"),
        ({"model_version": "gen4.5", "seed": 4294967296}, "seed"),
    ],
)
def test_what_a_model_does_not_take_is_refused_by_name(fields: Any, field: str) -> None:
    """Before it is sent: closed schemas refuse a field that they do not know."""
    with pytest.raises(InvalidRequest) as refused:
        parameters(**fields)
    assert refused.value.field == field


def test_prompts_are_counted_in_utf_16() -> None:
    """A sign beyond the first plane counts as two."""
    it = TestRunway.sheet.rehearse()
    it.task("🚤" * 500)
    with pytest.raises(InvalidRequest) as refused:
        it.task("🚤" * 501)
    assert refused.value.field == "prompt"


@pytest.mark.parametrize("model", ["seedance2", "seedance2_5", "hailuo3", "happyhorse_1_0"])
async def test_closed_schemas_take_what_is_sent(model: str) -> None:
    """The pretend provider refuses any field that the sheet does not name for the model."""
    it = TestRunway.sheet.rehearse()
    seed: dict[str, Any] = {"seed": 7} if model.startswith("seedance") else {}
    await it.submitted(it.task(model_version=model, duration=6, aspect_ratio="16:9", resolution=None, **seed))
    refused = await it.run(it.adapter.submit(it.task(model_version=model, extra={"zz": 1})))
    assert isinstance(refused, Failed)


def test_progress_is_told() -> None:
    """A number from 0 to 1, and none else is believed."""
    adapter, task = underway()
    for told, read in ((0.35, 0.35), (0, 0.0), (1, 1.0), (35, None), ("0.35", None), (True, None)):
        seen = converse(adapter.poll(task), reply({**RUNNING, "progress": told}))[1]
        assert seen.progress == read
    throttled = converse(adapter.poll(task), reply({**TASK, "status": "THROTTLED"}))[1]
    assert throttled.remote_state is RemoteState.WAITING


async def test_above_its_limit_a_task_is_throttled_and_waits() -> None:
    """It is taken all the same, and its turn comes."""
    it = TestRunway.sheet.rehearse(queue_seconds=0.0)
    first, second = [await it.submitted(it.task()) for _ in range(2)]
    assert (await it.poll(second)).remote_state is RemoteState.WAITING
    await it.clock.advance(25)
    assert isinstance(await it.poll(first), Ready)
    assert (await it.poll(second)).remote_state is RemoteState.WORKING


def test_the_limits_are_told_by_model() -> None:
    """A number for each; null is no limit; what cannot be read is left out."""
    adapter, _ = underway()
    models = {
        "gen4.5": {"maxConcurrentGenerations": 3, "maxDailyGenerations": 500},
        "veo3.1": {"maxConcurrentGenerations": None, "maxDailyGenerations": None},
        "odd": {"maxConcurrentGenerations": "3"},
        "none": {"maxDailyGenerations": 5},
        "shut": {"maxConcurrentGenerations": 0},
    }
    told = converse(adapter.limits(), reply({"creditBalance": 5, "tier": {"models": models}, "usage": {}}))[1]
    assert told == {"gen4.5": 3, "veo3.1": 100}


def test_what_has_ended_is_never_deleted() -> None:
    """DELETE erases a finished clip: the task is asked for first, and a word that is not known stops it, too."""
    adapter, task = underway()
    for told, outcome in (
        (SUCCEEDED, CancelTooLate),
        (FAILED, CancelTooLate),
        ({**TASK, "status": "CANCELLED"}, Cancelled),
        ({**TASK, "status": "POLISHING"}, Trouble),
        ({"status": 5}, Trouble),
    ):
        requests, came = converse(adapter.cancel(task), reply(told))
        assert [request.method for request in requests] == ["GET"]
        assert isinstance(came, outcome), (told, came)
    for status in ("THROTTLED", "PENDING", "RUNNING"):
        requests, came = converse(adapter.cancel(task), reply({**TASK, "status": status}), reply(b"", status=204))
        assert [request.method for request in requests] == ["GET", "DELETE"]
        assert came == Cancelled(outcome=CancelOutcome.STOPPED)


def test_a_second_cancel_is_no_trouble() -> None:
    """What is gone when it is deleted was stopped before."""
    adapter, task = underway()
    gone = reply({"error": "Not found"}, status=404)
    assert isinstance(converse(adapter.cancel(task), reply(RUNNING), gone)[1], Cancelled)
    assert isinstance(converse(adapter.cancel(task), gone)[1], Trouble)


@pytest.mark.parametrize(
    ("status", "text", "reason"),
    [
        (400, "You do not have enough credits to run this task.", "balance"),
        (429, "You have reached the daily limit of generations.", "balance"),
        (429, "Too many requests.", "rate"),
        (401, "The API key is not valid.", "auth"),
    ],
)
def test_money_and_quotas_are_known_by_their_words(status: int, text: str, reason: str) -> None:
    """There are no codes; a lack of credits is a 400."""
    adapter, task = underway()
    outcome = converse(adapter.submit(task), reply({"error": text}, status=status))[1]
    assert isinstance(outcome, Refused)
    assert outcome.reason == reason


def test_issues_are_told() -> None:
    """What is wrong with which field comes through."""
    adapter, task = underway()
    body = {"error": "Validation of body failed", "issues": [{"code": "x", "path": ["ratio"], "message": "bad ratio"}]}
    outcome = converse(adapter.submit(task), reply(body, status=400))[1]
    assert isinstance(outcome, Failed)
    assert "bad ratio" in outcome.problem.detail
    assert isinstance(converse(adapter.submit(task), reply(b"<h1>no</h1>", status=400))[1], Unknown)


async def test_the_daily_limit_pauses_creates() -> None:
    """Fifty a day in the first tier; the next is refused, surely unpaid."""
    it = TestRunway.sheet.rehearse(queue_seconds=0.0, run_seconds=0.1)
    for _ in range(50):
        await it.submitted(it.task())
    refused = await it.run(it.adapter.submit(it.task()))
    assert isinstance(refused, Refused)
    assert (refused.reason, len(it.engine.jobs)) == ("balance", 50)


def test_the_body_is_what_the_sheet_says() -> None:
    """The call's name is in the address and not in the body."""
    adapter, _ = underway()
    task = TestRunway.sheet.rehearse().task(**FIELDS)
    request = next(adapter.submit(task))
    assert request.url.endswith("/v1/text_to_video")
    assert json.loads(request.body) == {
        "model": "veo3.1",
        "promptText": "a paper boat",
        "ratio": "1280:720",
        "duration": 6,
        "seed": 7,
        "negativePrompt": "rain",
    }
