"""
Ark, held against its fact sheet and the pretend provider in its words.
"""

from dataclasses import replace
from typing import Any

import pytest

from vidrelay.core.adapter import Refused, Scope, Search, Undecided
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Absent, Accepted, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.task import CancelOutcome, Reference, Task
from vidrelay.providers.ark.adapter import make
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract, Sample, Sheet
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE, Rehearsal

FIELDS = {
    "duration": 5,
    "aspect_ratio": "16:9",
    "resolution": "720p",
    "seed": 7,
    "model_version": "doubao-seedance-1-5-pro-251215",
}
ID = "cgt-20261101-abcde"
TASK = {
    "id": ID,
    "model": "doubao-seedance-1-5-pro-251215",
    "error": None,
    "created_at": 1764480000,
    "service_tier": "default",
    "execution_expires_after": 172800,
}
RESULT = "https://ark-content-generation-cn-beijing.tos-cn-beijing.volces.com/o.mp4?X-Tos-Expires=86400"


class TestArk(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="ark",
        make=make,
        path="/api/v3",
        fields=FIELDS,
        picture={"duration": 5},
        words={
            "queued": Standing.WAITING,
            "running": Standing.WORKING,
            "succeeded": Standing.DONE,
            "failed": Standing.FAILED,
            "cancelled": Standing.CANCELLED,
            "expired": Standing.EXPIRED,
        },
        create_codes={
            **dict.fromkeys(
                (
                    *("MissingParameter", "MissingParameter.model", "InvalidParameter", "InvalidParameter.duration"),
                    *("InvalidEndpoint.ClosedEndpoint", "ModelNotOpen", "InvalidEndpointOrModel.NotFound"),
                    "InvalidEndpointOrModel.ModelIDAccessDisabled",
                ),
                Meaning.REJECTED,
            ),
            **dict.fromkeys(
                (
                    *("SensitiveContentDetected", "SensitiveContentDetected.SevereViolation"),
                    *("InputTextSensitiveContentDetected", "InputImageSensitiveContentDetected"),
                    *("InputVideoSensitiveContentDetected", "InputAudioSensitiveContentDetected"),
                    *("InputImageSensitiveContentDetected.PrivacyInformation", "InputTextRiskDetection"),
                ),
                Meaning.MODERATED,
            ),
            **dict.fromkeys(("AuthenticationError", "AccessDenied"), Meaning.AUTH),
            **dict.fromkeys(("AccountOverdueError", "SetLimitExceeded"), Meaning.BALANCE),
            **dict.fromkeys(
                (
                    *("RateLimitExceeded.EndpointRPMExceeded", "RateLimitExceeded.EndpointTPMExceeded"),
                    *("ModelAccountRpmRateLimitExceeded", "ModelAccountTpmRateLimitExceeded", "RequestBurstTooFast"),
                    *("APIAccountRpmRateLimitExceeded", "AccountRateLimitExceeded", "ServerOverloaded"),
                ),
                Meaning.RATE,
            ),
            **dict.fromkeys(("QuotaExceeded", "InflightBatchsizeExceeded"), Meaning.WINDOW),
            "InternalServiceError": Meaning.AGAIN,
        },
        job_codes={
            "OutputVideoSensitiveContentDetected": Meaning.MODERATED,
            "InternalServiceError": Meaning.AGAIN,
            "SomethingNew": Meaning.AGAIN,
        },
        refused=(
            ({"negative_prompt": "x"}, "negativePrompt"),
            ({"style_preset": "x"}, "stylePreset"),
            ({"duration": 13}, "duration"),
            ({"duration": 5.5}, "duration"),
            ({"aspect_ratio": "2:1"}, "aspectRatio"),
            ({"resolution": "8k"}, "resolution"),
            ({"model_version": "doubao-seedance-2-0-260128"}, "seed"),
            ({"extra": {"content": {}}}, "extra.content"),
        ),
        samples=(
            Sample(of="submit", data={"id": ID, "safety_identifier": "relay-01J9"}, outcome=Accepted),
            Sample(
                of="poll",
                data={**TASK, "status": "running", "updated_at": 1764480010, "safety_identifier": "relay-01J9"},
                outcome=StillRunning,
            ),
            Sample(
                of="poll",
                data={
                    **TASK,
                    "status": "succeeded",
                    "content": {"video_url": RESULT},
                    "usage": {"completion_tokens": 108900, "total_tokens": 108900},
                    "seed": 42,
                    "resolution": "720p",
                    "ratio": "16:9",
                    "duration": 5,
                    "framespersecond": 24,
                    "updated_at": 1764480090,
                },
                outcome=Ready,
            ),
            Sample(
                of="submit",
                data={
                    "error": {
                        "code": "ServerOverloaded",
                        "message": "busy, try later",
                        "param": "",
                        "type": "TooManyRequests",
                    }
                },
                status=429,
                outcome=Refused,
            ),
        ),
    )


def test_each_dialect_has_its_own_address_and_hosts() -> None:
    """Volcengine in Beijing, BytePlus in the south-east of Asia."""
    told = {
        dialect: make(AdapterSettings(now=FakeClock().now, key="k", dialect=dialect))
        for dialect in ("volcengine", "byteplus")
    }
    assert told["volcengine"].base == "https://ark.cn-beijing.volces.com/api/v3"
    assert told["byteplus"].base == "https://ark.ap-southeast.bytepluses.com/api/v3"
    for adapter in told.values():
        assert adapter.base.split("/")[2] in adapter.traits.hosts


def test_byteplus_must_be_told_the_model() -> None:
    """Its names are not Volcengine's, so none is made up."""
    it = replace(TestArk.sheet, account_dialect="byteplus").rehearse()
    with pytest.raises(InvalidRequest) as refusal:
        it.task()
    assert refusal.value.field == "modelVersion"


def test_the_pictures_have_their_roles() -> None:
    """Frames and references beside each other, and what extra.content adds after them."""
    it = TestArk.sheet.rehearse()
    roles = ("first_frame", "last_frame", "reference")
    audio = {"type": "audio_url", "audio_url": {"url": "https://a.example/a.mp3"}, "role": "reference_audio"}
    task = it.task(
        references=tuple(Reference(asset=PICTURE.id, role=role) for role in roles), extra={"content": [audio]}
    )
    content = task.parameters["content"]
    assert content[0] == {"type": "text", "text": "a paper boat"}
    assert [part["role"] for part in content[1:]] == ["first_frame", "last_frame", "reference_image", "reference_audio"]
    assert content[-1] == audio


def test_pictures_that_are_too_much_together_are_refused() -> None:
    """A body has 64 MB at most."""
    it = TestArk.sheet.rehearse()
    big = [replace(PICTURE, id="sha256:" + digit * 64, size_bytes=29_000_000) for digit in "123"]
    references = tuple(Reference(asset=one.id, role="reference") for one in big)
    with pytest.raises(InvalidRequest) as refusal:
        it.task(references=references, assets={one.id: one for one in big})
    assert refusal.value.field == "references"


async def test_a_quota_that_is_used_up_is_not_one_that_is_full() -> None:
    """QuotaExceeded of a free trial pauses for money; of too many waiting tasks, for a place."""
    for message, reason in (("the free trial quota is exhausted", "balance"), ("too many queued tasks", "window")):
        it = TestArk.sheet.rehearse()
        error = {"error": {"code": "QuotaExceeded", "message": message}}
        _, outcome = converse(it.adapter.submit(it.task(**FIELDS)), reply(error, status=429))
        assert isinstance(outcome, Refused)
        assert (outcome.reason, outcome.scope) == (reason, Scope.CREATES)


async def test_a_finished_record_is_never_deleted() -> None:
    """DELETE leaves only after a poll that says queued."""
    for seconds, expected, deletes in ((0, Cancelled, 1), (10, Cancelled, 0), (60, CancelTooLate, 0)):
        it = TestArk.sheet.rehearse()
        task = await it.submitted(it.task(**FIELDS))
        await it.clock.advance(seconds)
        outcome = await it.run(it.adapter.cancel(task))
        assert isinstance(outcome, expected)
        assert sum(request.method == "DELETE" for request in it.requests) == deletes
        if seconds == 10:
            assert outcome == Cancelled(outcome=CancelOutcome.UNSUPPORTED)


async def test_a_word_that_nobody_knows_is_not_deleted() -> None:
    """It may have ended."""
    it = TestArk.sheet.rehearse()
    task = await it.submitted(it.task(**FIELDS))
    it.arm("poll-word=finalizing")
    assert await it.run(it.adapter.cancel(task)) == Cancelled(outcome=CancelOutcome.UNSUPPORTED)
    assert not any(request.method == "DELETE" for request in it.requests)


async def test_the_tag_tells_a_lost_create_from_its_equals() -> None:
    """Of two equal jobs, the one with our tag is ours."""
    it = TestArk.sheet.rehearse()
    ours, other = it.task(**FIELDS), replace(it.task(**FIELDS), submission_key="another")
    for task in (other, ours, other):
        await it.submitted(task)
    found = await it.find(ours)
    assert isinstance(found, Found)
    assert it.engine.jobs[found.remote_id].data["safety_identifier"] == ours.submission_key


def test_a_row_without_a_tag_is_left_to_a_person() -> None:
    """It shows no prompt, so it may be anybody's; absence is not claimed beside it either."""
    it = TestArk.sheet.rehearse()
    task = it.task(**FIELDS)
    row = {**TASK, "status": "running", "created_at": it.clock.now().timestamp()}
    found = _looked_for(it, task, {"items": [row], "total": 1})
    assert isinstance(found, Undecided)
    assert found.candidates == (ID,)


def test_absence_is_claimed_of_a_whole_list_alone() -> None:
    """Ten minutes later, and not where a row cannot be read or more rows are told of than were seen."""
    it = TestArk.sheet.rehearse()
    task = it.task(**FIELDS)
    assert isinstance(_looked_for(it, task, {"items": [], "total": 0}), Absent)
    for listed in ({"items": [{"id": [1]}], "total": 1}, {"items": [{**TASK, "status": "running"}], "total": 9000}):
        made_at = it.clock.now().timestamp()
        rows = [{**row, "created_at": made_at, "model": "x"} for row in listed["items"]]
        assert isinstance(_looked_for(it, task, {**listed, "items": rows}), Undecided)


def _looked_for(it: Rehearsal, task: Task, listed: Any) -> Any:
    """
    What comes of looking for the task, ten minutes later, in that list.
    """
    now = it.clock.now()
    search = Search(sent_at=now, lost_at=now, elapsed=700.0, lost_ago=700.0, owned=frozenset())
    return converse(it.adapter.find(task, search), reply(listed), repeat=True)[1]


async def test_the_last_frame_comes_along() -> None:
    """return_last_frame gives a second file."""
    it = TestArk.sheet.rehearse()
    task = await it.submitted(it.task(**FIELDS, extra={"return_last_frame": True}))
    await it.clock.advance(60)
    ready = await it.poll(task)
    assert len(ready.outputs) == 2
    assert ready.times.completed_at is not None


def test_a_failure_is_told_with_its_code() -> None:
    """And a job that expired there is told to be just that."""
    it = TestArk.sheet.rehearse()
    task = replace(it.task(**FIELDS), remote_id=ID)
    failed = {**TASK, "status": "failed", "error": {"code": "OutputVideoSensitiveContentDetected", "message": "no"}}
    outcome = converse(it.adapter.poll(task), reply(failed))[1]
    assert isinstance(outcome, Failed)
    assert (outcome.problem.code, outcome.problem.detail) == ("moderated", "OutputVideoSensitiveContentDetected: no")
