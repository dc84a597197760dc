"""
Vidu, held against its fact sheet and the pretend provider in its words.
"""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from vidrelay.core.adapter import Refused, Search, Trouble, Undecided
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Accepted, Cancelled, Failed, Found, Ready, StillRunning
from vidrelay.core.task import Asset, CancelOutcome, Reference, Request
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.providers.vidu.adapter import make
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE
from vidrelay.testing.sheet import Sample, Sheet

FIELDS = {"duration": 5, "aspect_ratio": "16:9", "resolution": "720p", "seed": 7, "model_version": "viduq3-turbo"}


class TestVidu(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="vidu",
        make=make,
        path="/ent/v2",
        fields=FIELDS,
        picture={"duration": 5},
        words={
            "created": Standing.WAITING,
            "queueing": Standing.WAITING,
            "processing": Standing.WORKING,
            "success": Standing.DONE,
            "failed": Standing.FAILED,
        },
        create_codes={
            **dict.fromkeys(
                (
                    *("BadRequest", "FieldLacking", "FieldUnwanted", "FieldInvalid", "FieldItemCountOutOfRange"),
                    *("PageSizeOutOfRange", "ImageFormatInvalid", "ModelUnavailable"),
                    *("Conflict", "Canceled"),
                ),
                Meaning.REJECTED,
            ),
            **dict.fromkeys(
                ("TaskPromptPolicyViolation", "AuditSubmitIllegal", "CreationPolicyViolation"), Meaning.MODERATED
            ),
            **dict.fromkeys(("OperationInProcess", "TooManyRequests", "SystemThrottling"), Meaning.RATE),
            "ImageDownloadFailure": Meaning.RATE,
            **dict.fromkeys(("Unauthorized", "Forbidden"), Meaning.AUTH),
            "QuotaExceeded": Meaning.WINDOW,
            "CreditInsufficient": Meaning.BALANCE,
            "InternalServiceFailure": Meaning.AGAIN,
        },
        job_codes={
            "CreationPolicyViolation": Meaning.MODERATED,
            "UserCancelled": Meaning.CANCELLED,
            "InternalServiceFailure": Meaning.AGAIN,
        },
        refused=(({"negative_prompt": "x"}, "negativePrompt"), ({"duration": 99}, "duration")),
        samples=(
            Sample(
                of="submit",
                data={"task_id": "949913121705701376", "state": "created", "model": "viduq3-turbo", "prompt": "a cat"},
                outcome=Accepted,
            ),
            Sample(
                of="poll", data={"id": "9", "state": "queueing", "err_code": "", "creations": []}, outcome=StillRunning
            ),
            Sample(
                of="poll",
                data={"id": "9", "state": "success", "creations": [{"id": "c1", "url": "https://x.example/o.mp4"}]},
                outcome=Ready,
            ),
        ),
    )


async def test_a_payload_that_is_null_is_none():
    """SDKs send what was not set as null: our own key takes its place."""
    it = TestVidu.sheet.rehearse()
    task = it.task(**FIELDS, extra={"payload": None})
    await it.submitted(task)
    assert json.loads(it.requests[0].body)["payload"] == task.submission_key


async def test_the_kind_follows_from_the_pictures():
    """Text, a first frame, both frames, references: each has a call of its own."""
    it = TestVidu.sheet.rehearse()
    kinds = [
        it.task(references=tuple(Reference(asset=PICTURE.id, role=role) for role in roles)).parameters["kind"]
        for roles in ((), ("first_frame",), ("first_frame", "last_frame"), ("reference", "reference"))
    ]
    assert kinds == ["text2video", "img2video", "start-end2video", "reference2video"]


def _asset(width: int = 1280, height: int = 720, *, size_bytes: int = 5, name: str = "cd") -> Asset:
    asset_id = "sha256:" + name * 32
    return Asset(id=asset_id, pixels=name, width=width, height=height, size_bytes=size_bytes, media_type="image/png")


@pytest.mark.parametrize(("width", "height"), [(127, 400), (512, 128)])
def test_a_picture_that_is_too_small_or_too_long_is_refused(width, height):
    """128 pixels a side at least, and less than 4 to 1."""
    it, asset = TestVidu.sheet.rehearse(), _asset(width, height)
    with pytest.raises(InvalidRequest) as refusal:
        it.task(references=(Reference(asset=asset.id),), assets={asset.id: asset})
    assert refusal.value.field == "references[0]"


def test_pictures_that_do_not_fit_in_one_body_are_refused():
    """20 MB are taken, as base64, of all of them together."""
    it = TestVidu.sheet.rehearse()
    assets = {one.id: one for one in (_asset(size_bytes=8_000_000, name=name) for name in ("cd", "ef"))}
    references = tuple(Reference(asset=one, role="reference") for one in assets)
    assert it.task(references=references[:1], assets=assets).parameters["kind"] == "reference2video"
    with pytest.raises(InvalidRequest) as refusal:
        it.task(references=references, assets=assets)
    assert refusal.value.field == "references"


@pytest.mark.parametrize(("host", "most"), [("api.vidu.com", 5000), ("api.vidu.cn", 2000)])
def test_the_prompt_that_a_house_takes(host, most):
    """5000 characters, and 2000 in China."""
    adapter = make(AdapterSettings(now=FakeClock().now, base_url=f"https://{host}/ent/v2"))
    assert adapter.prepare(Request(prompt="猫" * most), {}).model == "viduq3-turbo"
    with pytest.raises(InvalidRequest) as refusal:
        adapter.prepare(Request(prompt="猫" * (most + 1)), {})
    assert refusal.value.field == "prompt"


def test_the_seconds_of_a_model_that_nobody_told_us_of():
    """They are the provider's to judge."""
    it = TestVidu.sheet.rehearse()
    assert it.task(model_version="viduq9", duration=30).parameters["duration"] == 30
    with pytest.raises(InvalidRequest):
        it.task(model_version="viduq2-pro", duration=11)


def test_metadata_that_is_written_into_the_clip_counts():
    """`meta_data` ends up in the file, so another one is another clip."""
    assert TestVidu.sheet.rehearse().adapter.traits.irrelevant == {"payload", "callback_url"}


def test_pictures_in_extra_are_refused():
    """They do not say which of the calls is meant; sent to the one for text they would be dropped."""
    with pytest.raises(InvalidRequest) as refusal:
        TestVidu.sheet.rehearse().task(extra={"images": ["https://x.example/a.png"]})
    assert refusal.value.field == "extra.images"


def test_an_off_peak_task_may_take_two_days():
    """It is done within 48 hours, so one of three has not come to a stop."""
    assert TestVidu.sheet.rehearse().adapter.traits.longest_run == timedelta(hours=48)


async def test_a_picture_that_could_not_be_fetched_is_tried_again():
    """Its address may answer another time; after three tries it is final."""
    it = TestVidu.sheet.rehearse()
    task = it.task(references=(Reference(url="https://x.example/a.png"),))
    for attempts, outcome in ((1, Refused), (2, Refused), (3, Failed)):
        it.arm("create-code=ImageDownloadFailure")
        assert isinstance(await it.run(it.adapter.submit(replace(task, attempts=attempts))), outcome)


async def test_a_cancel_that_something_else_is_in_the_way_of_is_tried_again():
    """`OperationInProcess` comes as a 400 as well, and says nothing of whether the task is scheduled."""
    it = TestVidu.sheet.rehearse()
    task = await it.submitted(it.task(**FIELDS))
    it.arm("delete-code=OperationInProcess")
    assert isinstance(await it.run(it.adapter.cancel(task)), Refused)
    assert await it.run(it.adapter.cancel(task)) == Cancelled(outcome=CancelOutcome.STOPPED)


def test_a_proxys_page_stops_nothing():
    """A task that was only said to be stopped would run on, be paid, and be fetched by nobody."""
    it = TestVidu.sheet.rehearse()
    task = replace(it.task(**FIELDS), remote_id="9")
    page = reply(b"<html>log in to the network</html>")
    assert isinstance(converse(it.adapter.cancel(task), page)[1], Trouble)
    assert converse(it.adapter.cancel(task), reply(b""))[1] == Cancelled(outcome=CancelOutcome.STOPPED)


def test_an_id_that_comes_as_a_number_is_one():
    """An id that is not read is a clip that was paid and cannot be found."""
    it, number = TestVidu.sheet.rehearse(), 949913121705701376
    task = it.task()
    made = converse(it.adapter.submit(task), reply({"task_id": number, "state": "created"}))[1]
    assert isinstance(made, Accepted)
    assert made.remote_id == str(number)
    running = replace(task, remote_id=made.remote_id)
    told = converse(it.adapter.poll_many([running]), reply({"tasks": [{"id": number, "state": "processing"}]}))[1]
    assert set(told) == {task.id}


# A lost create --------------------------------------------------------------------------------------------------------


async def test_two_lost_creates_of_one_prompt_are_not_confused():
    """Rows need not show what tells them apart: the payload that a task tells of itself says whose it is."""
    it = TestVidu.sheet.rehearse()
    one, other = (Reference(url=f"https://x.example/{name}.png") for name in "ab")
    arrived, missed = it.task(references=(one,)), it.task(references=(other,))
    await it.submitted(arrived)
    assert isinstance(await it.find(missed), Undecided)
    found = await it.find(arrived)
    assert isinstance(found, Found)
    assert found.remote_id in it.engine.jobs


async def test_a_task_that_shows_no_payload_is_left_to_a_person():
    """It can be it, and nothing proves it."""
    it = TestVidu.sheet.rehearse()
    task, now = it.task(), it.clock.now()
    row = {"id": "9", "state": "queueing", "prompt": task.request.prompt, "created_at": now.isoformat()}
    search = Search(sent_at=now, lost_at=now, elapsed=700.0, lost_ago=700.0, owned=frozenset())
    listed = reply({"tasks": [row], "next_page_token": ""})
    requests, seen = converse(it.adapter.find(task, search), listed, reply({"id": "9", "state": "queueing"}))
    assert isinstance(seen, Undecided)
    assert seen.candidates == ("9",)
    assert requests[1].url.endswith("/ent/v2/tasks/9/creations")
    other = reply({"id": "9", "state": "queueing", "payload": "another's"})
    assert converse(it.adapter.find(task, search), listed, other)[1].candidates == ()


async def test_a_payload_of_the_users_own_names_the_tasks_that_can_be_it():
    """One alone of that time is it; two are left to a person."""
    it = TestVidu.sheet.rehearse()
    task = it.task(extra={"payload": "mine"})
    await it.submitted(task)
    assert isinstance(await it.find(task), Found)
    await it.submitted(task)
    assert len((await it.find(task)).candidates) == 2


def test_a_list_that_does_not_show_the_clip_is_not_believed_to_have_none():
    """Such a task is asked for by itself."""
    it = TestVidu.sheet.rehearse()
    tasks = [replace(it.task(), id=name, remote_id=name) for name in ("1", "2")]
    rows = [{"id": "1", "state": "success"}, {"id": "2", "state": "processing"}]
    told = converse(it.adapter.poll_many(tasks), reply({"tasks": rows}))[1]
    assert set(told) == {"2"}
