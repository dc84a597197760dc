"""
new-api, held against its fact sheet and the pretend gateway in its words.
"""

import json
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from vidrelay.core.adapter import Dedupe, NotThere, Refused, Trouble, Unknown
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Accepted, Cancelled, Failed, Ready, StillRunning
from vidrelay.core.messages import Form
from vidrelay.core.task import CancelOutcome, Reference, RemoteState
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.new_api.adapter import make
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE
from vidrelay.testing.sheet import Sample, Sheet

FIELDS: dict[str, Any] = {
    "duration": 5,
    "aspect_ratio": "16:9",
    "resolution": "720p",
    "negative_prompt": "rain",
    "model_version": "kling-v2-6",
}
ID = "task_Zk3v9Q"
VIDEO = {"id": ID, "object": "video", "model": "kling-v2-6", "created_at": 1764480000}
WRAPPED = {
    "code": "success",
    "message": "",
    "data": {
        "task_id": ID,
        "status": "IN_PROGRESS",
        "progress": "50%",
        "fail_reason": "",
        "submit_time": 1764480000,
        "start_time": 1764480005,
        "finish_time": 0,
    },
}


class TestNewApi(AdapterContract):
    """
    What holds for every provider.
    """

    sheet: ClassVar[Sheet] = Sheet(
        dialect="new-api",
        make=make,
        path="/v1",
        fields=FIELDS,
        picture={"model_version": "kling-v2-6"},
        words={
            "queued": Standing.WAITING,
            "in_progress": Standing.WORKING,
            "completed": Standing.DONE,
            "failed": Standing.FAILED,
            "unknown": Standing.UNKNOWN,
            "NOT_START": Standing.WAITING,
            "SUBMITTED": Standing.WAITING,
            "QUEUED": Standing.WAITING,
            "IN_PROGRESS": Standing.WORKING,
            "SUCCESS": Standing.DONE,
            "FAILURE": Standing.FAILED,
            "UNKNOWN": Standing.UNKNOWN,
        },
        create_codes={
            "invalid_request": Meaning.REJECTED,
            "model_not_found": Meaning.REJECTED,
            "insufficient_user_quota": Meaning.BALANCE,
            "pre_consume_token_quota_failed": Meaning.BALANCE,
            "fail_to_fetch_task": Meaning.REJECTED,
            "do_request_failed": Meaning.AGAIN,
        },
        job_codes={"something_new": Meaning.AGAIN, "content_policy_violation": Meaning.MODERATED},
        refused=(
            ({"seed": 7}, "seed"),
            ({"style_preset": "x"}, "stylePreset"),
            ({"duration": 5.5}, "duration"),
            ({"resolution": "big"}, "resolution"),
            ({"aspect_ratio": "wide"}, "aspectRatio"),
            ({"model_version": None}, "modelVersion"),
            ({"references": (Reference(asset=PICTURE.id, role="last_frame"),)}, "references[0].role"),
        ),
        samples=(
            Sample(
                of="submit",
                data={**VIDEO, "task_id": ID, "status": "queued", "progress": 0, "seconds": "5", "size": "1280x720"},
                outcome=Accepted,
            ),
            Sample(of="poll", data={**VIDEO, "status": "in_progress", "progress": 50}, outcome=StillRunning),
            Sample(
                of="poll",
                data={
                    **VIDEO,
                    "status": "completed",
                    "progress": 100,
                    "completed_at": 1764480200,
                    "metadata": {"url": "https://cdn.klingai.com/o.mp4"},
                },
                outcome=Ready,
            ),
            Sample(of="poll", data=WRAPPED, outcome=StillRunning),
        ),
    )


def test_a_lost_create_is_never_looked_for() -> None:
    """There is nothing to look in, and a repeat would be paid again."""
    assert TestNewApi.sheet.rehearse().adapter.traits.dedupe is Dedupe.NONE


async def test_nothing_stops_a_job() -> None:
    """There is no such call, so none is sent."""
    it = TestNewApi.sheet.rehearse()
    task = await it.submitted(it.task(**FIELDS))
    before = len(it.requests)
    assert await it.run(it.adapter.cancel(task)) == Cancelled(outcome=CancelOutcome.UNSUPPORTED)
    assert len(it.requests) == before
    assert not it.adapter.traits.can_cancel


def test_a_base_without_a_path_gets_the_usual_one() -> None:
    """Whoever writes the host alone means `/v1`."""
    for base, expected in (("https://gw.example", "https://gw.example/v1"), ("https://gw.example/x/v1/", None)):
        adapter = make(AdapterSettings(now=FakeClock().now, base_url=base))
        assert adapter.base == (expected or base.rstrip("/"))


def test_the_words_go_as_json() -> None:
    """The negative prompt as metadata, which the gateway hands on; what extra adds to that stands beside it."""
    it = TestNewApi.sheet.rehearse()
    task = it.task(**FIELDS, extra={"metadata": {"mode": "pro"}, "mode": "std"})
    requests, _ = converse(it.adapter.submit(task), reply({"id": ID}))
    assert isinstance(requests[0].body, bytes)
    assert json.loads(requests[0].body) == {
        "model": "kling-v2-6",
        "prompt": "a paper boat",
        "duration": 5,
        "size": "1280x720",
        "metadata": {"negative_prompt": "rain", "mode": "pro"},
        "mode": "std",
    }


async def test_a_picture_for_sora_goes_as_a_file() -> None:
    """In a form, where the length is called seconds and the metadata's names stand by themselves."""
    it = TestNewApi.sheet.rehearse()
    fields = {**FIELDS, "model_version": "sora-2", "references": (Reference(asset=PICTURE.id),)}
    await it.submitted(it.task(**fields))
    form = it.requests[0].body
    assert isinstance(form, Form)
    assert dict(form.fields) == {
        "model": "sora-2",
        "prompt": "a paper boat",
        "seconds": "5",
        "size": "1280x720",
        "negative_prompt": "rain",
    }
    job = next(iter(it.engine.jobs.values()))
    assert (job.pictures, job.data) == (1, {"metadata": {"negative_prompt": "rain"}})
    with pytest.raises(InvalidRequest) as refusal:
        it.task(**{**fields, "references": (Reference(asset=PICTURE.id, role="reference"),) * 2})
    assert refusal.value.field == "references"


def test_a_form_loses_no_word_of_the_metadata() -> None:
    """There it stands beside the fields, so it must not be called as one of them is."""
    it = TestNewApi.sheet.rehearse()
    fields = {**FIELDS, "model_version": "sora-2", "references": (Reference(asset=PICTURE.id),)}
    for name in ("prompt", "size"):
        with pytest.raises(InvalidRequest) as refusal:
            it.task(**fields, extra={"metadata": {name: "x"}})
        assert refusal.value.field == f"extra.metadata.{name}"
    assert it.task(**FIELDS, extra={"metadata": {"size": "x"}}).parameters["metadata"]["size"] == "x"


def test_an_address_is_no_file_for_sora() -> None:
    """The gateway's word for such a picture is a file of a form alone."""
    it = TestNewApi.sheet.rehearse()
    with pytest.raises(InvalidRequest) as refusal:
        it.task(**{**FIELDS, "model_version": "sora-2"}, references=(Reference(url="https://a.example/a.png"),))
    assert refusal.value.field == "references[0].url"


def test_a_frame_does_not_go_among_references() -> None:
    """One list holds them all, and nothing in it says which is which."""
    it = TestNewApi.sheet.rehearse()
    with pytest.raises(InvalidRequest) as refusal:
        it.task(
            **FIELDS, references=tuple(Reference(asset=PICTURE.id, role=one) for one in ("first_frame", "reference"))
        )
    assert refusal.value.field == "references"


async def test_several_pictures_go_as_a_list() -> None:
    """Addresses as they are, the others as data URIs."""
    it = TestNewApi.sheet.rehearse()
    references = (Reference(asset=PICTURE.id), Reference(url="https://a.example/a.png"))
    task = it.task(**FIELDS, references=references)
    assert task.parameters["images"] == [
        {"$asset": PICTURE.id, "mediaType": "image/png"},
        "https://a.example/a.png",
    ]
    await it.submitted(task)
    assert next(iter(it.engine.jobs.values())).pictures == 2


async def test_the_file_comes_through_the_gateway() -> None:
    """With the token, and not from the address in the metadata, which is somebody else's."""
    it = TestNewApi.sheet.rehearse()
    task = await it.submitted(it.task(**FIELDS))
    await it.clock.advance(60)
    ready = await it.poll(task)
    assert [one.url for one in ready.outputs] == [f"http://127.0.0.1:8199/v1/videos/{task.remote_id}/content"]
    assert it.adapter.download(task, ready.outputs[0]).headers == {"Authorization": "Bearer key-canary"}
    assert ready.times.completed_at is not None


def test_the_wrapped_task_tells_when_it_began() -> None:
    """The gateway's own shape has three times."""
    it = TestNewApi.sheet.rehearse()
    task = replace(it.task(**FIELDS), remote_id=ID)
    seen = converse(it.adapter.poll(task), reply(WRAPPED))[1]
    assert isinstance(seen, StillRunning)
    assert seen.remote_state is RemoteState.WORKING
    assert seen.times.started_at is not None
    assert seen.progress is None


def test_an_unknown_task_is_400() -> None:
    """And so is much else, so the code decides."""
    it = TestNewApi.sheet.rehearse()
    task = replace(it.task(**FIELDS), remote_id=ID)
    told = {"code": "task_not_exist", "message": "task_not_exist", "data": None}
    assert isinstance(converse(it.adapter.poll(task), reply(told, status=400))[1], NotThere)
    fork = {"error": {"message": "Task task_Zk3v9Q not found", "type": "invalid_request_error"}}
    assert isinstance(converse(it.adapter.poll(task), reply(fork, status=404))[1], NotThere)


def test_a_way_that_leads_nowhere_says_nothing_of_the_task() -> None:
    """A gateway behind another path answers 404 as well: the paid clip is not given up, and the check tells it."""
    it = TestNewApi.sheet.rehearse()
    task = replace(it.task(**FIELDS), remote_id=ID)
    told = {"error": {"message": f"Invalid URL (GET /videos/{ID})", "type": "invalid_request_error", "code": ""}}
    assert isinstance(converse(it.adapter.poll(task), reply(told, status=404))[1], Trouble)
    assert isinstance(converse(it.adapter.check(), reply(told, status=404))[1], Trouble)
    assert isinstance(converse(it.adapter.submit(task), reply(told, status=404))[1], Failed)


def test_no_word_of_an_error_shows_the_key() -> None:
    """Neither its code nor its text."""
    it = TestNewApi.sheet.rehearse()
    told = {"code": "key-canary", "message": "key-canary", "data": None}
    outcome = converse(it.adapter.submit(it.task(**FIELDS)), reply(told, status=400))[1]
    assert isinstance(outcome, Failed)
    assert "key-canary" not in outcome.problem.detail


@pytest.mark.parametrize(
    ("status", "error", "outcome", "reason"),
    [
        (401, {"error": {"message": "invalid token", "type": "new_api_error", "code": ""}}, Refused, "auth"),
        (403, {"error": {"message": "user quota is not enough", "type": "new_api_error"}}, Refused, "balance"),
        (403, {"code": "quota_x", "message": "用户额度不足", "data": None}, Refused, "balance"),
        (401, {"code": "fail_to_fetch_task", "message": "bad upstream key", "data": None}, Failed, "rejected"),
        (402, {"code": "fail_to_fetch_task", "message": "no credit upstream", "data": None}, Failed, "rejected"),
        (400, {"code": "fail_to_fetch_task", "message": "sensitive content", "data": None}, Failed, "moderated"),
        (429, {"code": "fail_to_fetch_task", "message": "slow down", "data": None}, Refused, "rate"),
        (500, {"code": "fail_to_fetch_task", "message": "oops", "data": None}, Unknown, None),
        (502, {"error": {"message": "bad gateway", "type": "upstream_error"}}, Unknown, None),
    ],
)
def test_each_shape_of_an_error_is_read(status: int, error: Any, outcome: type, reason: str | None) -> None:
    """What the gateway says is told apart from what the provider behind has said."""
    it = TestNewApi.sheet.rehearse()
    seen: Any = converse(it.adapter.submit(it.task(**FIELDS)), reply(error, status=status))[1]
    assert isinstance(seen, outcome)
    if isinstance(seen, Refused):
        assert seen.reason == reason
    if isinstance(seen, Failed):
        assert seen.problem.code == reason
