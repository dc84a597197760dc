"""
Ark, held against its fact sheet and the pretend provider in its words.
"""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from vidrelay.core.adapter import NotThere, Refused, Scope, Search, Trouble, Undecided
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Absent, Accepted, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.task import CancelOutcome, Reference, Task
from vidrelay.providers.ark import words
from vidrelay.providers.ark.adapter import ArkAdapter, make
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE, Rehearsal
from vidrelay.testing.sheet import Sample, Sheet

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
                    *("InvalidEndpointOrModel.ModelIDAccessDisabled", "AccessDenied", "OperationDenied.ServiceNotOpen"),
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
            "AuthenticationError": Meaning.AUTH,
            **dict.fromkeys(
                ("AccountOverdueError", "OperationDenied.ServiceOverdue", "SetLimitExceeded"), Meaning.BALANCE
            ),
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
            ({"resolution": "4k"}, "resolution"),
            ({"resolution": "4k", "model_version": "seedance-1-0-pro-250528"}, "resolution"),
            ({"seed": -2}, "seed"),
            ({"seed": 2**32}, "seed"),
            ({"references": (Reference(asset=PICTURE.id, role="last_frame"),)}, "references"),
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


def test_a_last_frame_stands_alone_where_that_can_be() -> None:
    """Where extra.content brings the first one, and where it is not known which model an endpoint is."""
    it = TestArk.sheet.rehearse()
    last = (Reference(asset=PICTURE.id, role="last_frame"),)
    first = {"type": "image_url", "image_url": {"url": "asset://asset-1"}, "role": "first_frame"}
    content = it.task(references=last, extra={"content": [first]}).parameters["content"]
    assert [part["role"] for part in content[1:]] == ["last_frame", "first_frame"]
    assert it.task(references=last, model_version="ep-20261101-abcde").parameters["content"][1]["role"] == "last_frame"


def test_what_a_model_or_an_endpoint_can_do_is_its_own() -> None:
    """From 2.0 on there is 4k; of an endpoint nobody has told us. A seed of -1 is any."""
    it = TestArk.sheet.rehearse()
    for model in ("doubao-seedance-2-0-260128", "ep-20261101-abcde"):
        assert it.task(model_version=model, resolution="4k").parameters["resolution"] == "4k"
    assert it.task(seed=-1).parameters["seed"] == -1


def test_a_picture_over_30_mb_is_sent_smaller() -> None:
    """Be they counted in tens or in twos; and so many as fill a body go along."""
    it = TestArk.sheet.rehearse()
    assert it.adapter.traits.pictures.max_bytes == 30_000_000
    big = [replace(PICTURE, id="sha256:" + digit * 64, size_bytes=24_000_000) for digit in "12"]
    references = tuple(Reference(asset=one.id, role="reference") for one in big)
    assert len(it.task(references=references, assets={one.id: one for one in big}).parameters["content"]) == 3


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


def test_the_key_is_shown_nowhere() -> None:
    """Neither of a refusal nor of a failure, be it in the code."""
    it = TestArk.sheet.rehearse()
    for code, message in (("Odd key-canary", "no"), ("InvalidParameter", "key-canary is wrong")):
        error = {"code": code, "message": message}
        refused = converse(it.adapter.submit(it.task(**FIELDS)), reply({"error": error}, status=400))[1]
        ended = converse(
            it.adapter.poll(replace(it.task(**FIELDS), remote_id=ID)), reply({"status": "failed", "error": error})
        )[1]
        for outcome in (refused, ended):
            assert isinstance(outcome, Failed)
            assert "key-canary" not in outcome.problem.detail


def test_a_proxys_page_stops_nothing():
    """A task that was only said to be stopped would run on, be paid, and be fetched by nobody."""
    it = TestArk.sheet.rehearse()
    task = replace(it.task(**TestArk.sheet.fields), remote_id="cgt-9")
    waits = reply({"id": "cgt-9", "status": "queued"})
    page = reply(b"<html>log in to the network</html>")
    assert isinstance(converse(it.adapter.cancel(task), waits, page)[1], Trouble)
    assert isinstance(converse(it.adapter.cancel(task), waits, reply(b""))[1], Cancelled)


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


def test_absence_is_not_claimed_beyond_the_list() -> None:
    """It goes back 7 days; what was lost before may have been made and is listed no more."""
    it = TestArk.sheet.rehearse()
    task = it.task(**FIELDS)
    days = timedelta(days=1).total_seconds()
    assert isinstance(_looked_for(it, task, {"items": [], "total": 0}, lost_ago=6 * days), Absent)
    assert isinstance(_looked_for(it, task, {"items": [], "total": 0}, lost_ago=8 * days), Undecided)


def test_absence_is_not_claimed_where_more_is_told_of_than_shown() -> None:
    """A page without rows, a row that is none, and pages between which rows may have moved."""
    it = TestArk.sheet.rehearse()
    task = it.task(**FIELDS)
    row = {**TASK, "model": "x", "status": "running", "created_at": it.clock.now().timestamp()}
    full = {"items": [row] * 200, "total": 201}
    for pages in (
        [{"items": [], "total": 9}],
        [{"items": ["odd"], "total": 1}],
        [full, {"items": [row], "total": 201}],
        [full, {"items": [], "total": 201}],
    ):
        assert isinstance(_looked_for(it, task, *pages), Undecided), pages[-1]


def test_an_old_row_ends_the_list_where_it_is_in_order_alone() -> None:
    """Newest first is no documented order: behind an old row in disorder the lost create may stand."""
    it = TestArk.sheet.rehearse()
    task = it.task(**FIELDS)
    now = it.clock.now().timestamp()
    new, old = ({**TASK, "model": "x", "status": "running", "created_at": at} for at in (now, now - 9000))
    assert isinstance(_looked_for(it, task, {"items": [new, old], "total": 900}), Absent)
    assert isinstance(_looked_for(it, task, {"items": [old, new, old], "total": 900}), Undecided)


def test_a_row_shows_what_was_left_open_as_what_it_became() -> None:
    """A length, a seed and a ratio that the model chose, and the model behind an endpoint: it may be ours."""
    it = TestArk.sheet.rehearse()
    row = {**TASK, "status": "running", "created_at": it.clock.now().timestamp()}
    row |= {"duration": 7, "seed": 42, "ratio": "4:3"}
    task = it.task(model_version="ep-1", aspect_ratio="adaptive", extra={"duration": -1, "seed": -1})
    found = _looked_for(it, task, {"items": [row], "total": 1})
    assert isinstance(found, Undecided)
    assert found.candidates == (ID,)


async def test_an_empty_tag_is_none() -> None:
    """Where extra leaves it open, ours is sent all the same: without it a lost create could not be told."""
    for nothing in (None, ""):
        it = TestArk.sheet.rehearse()
        task = it.task(**FIELDS, extra={"safety_identifier": nothing})
        await it.submitted(task)
        assert isinstance(await it.find(task), Found)


def test_many_tasks_are_asked_for_in_parts() -> None:
    """An address has a length that a server takes; a row without its clip leaves the task to a call of its own."""
    it = TestArk.sheet.rehearse()
    tasks = [replace(it.task(**FIELDS), id=f"t{number}", remote_id=f"{ID}{number}") for number in range(150)]
    rows = [{**TASK, "id": f"{ID}0", "status": "queued"}, {**TASK, "id": f"{ID}1", "status": "succeeded"}]
    requests, seen = converse(it.adapter.poll_many(tasks), reply({"items": rows, "total": 2}))
    assert len(requests[0].url) < 8000
    assert requests[0].url.count("filter.task_ids") == 100
    assert isinstance(seen, dict)
    assert set(seen) == {"t0"}


def _looked_for(it: Rehearsal, task: Task, *listed: Any, lost_ago: float = 700.0) -> Any:
    """
    What comes of looking for the task in that list, or those pages, when it was lost so many seconds ago.
    """
    lost_at = it.clock.now()
    search = Search(sent_at=lost_at, lost_at=lost_at, elapsed=700.0, lost_ago=lost_ago, owned=frozenset())
    return converse(it.adapter.find(task, search), *map(reply, listed), repeat=True)[1]


async def test_the_list_is_asked_by_status_model_and_tier() -> None:
    """As the sheet has it, by page; what was cancelled a day ago is in it no more."""
    it = TestArk.sheet.rehearse(workers=1)
    flex = await it.submitted(it.task("[queue=60] a boat", **FIELDS, extra={"service_tier": "flex"}))
    usual = await it.submitted(it.task("[queue=60] a boat", **{**FIELDS, "model_version": "ep-1"}))
    for query, ids in (
        ({}, [usual.remote_id, flex.remote_id]),
        ({"filter.service_tier": "flex"}, [flex.remote_id]),
        ({"filter.service_tier": "default"}, [usual.remote_id]),
        ({"filter.model": "ep-1"}, [usual.remote_id]),
        ({"filter.status": "running"}, []),
        ({"page_num": 2, "page_size": 1}, [flex.remote_id]),
    ):
        assert [row["id"] for row in await _listed(it, query)] == ids
    for wrong in ({"page_num": 0}, {"page_size": 501}, {"page_num": "x"}):
        assert await _listed(it, wrong) is None
    await it.run(it.adapter.cancel(usual))
    await it.clock.advance(3600 * 23)
    assert await _listed(it, {"filter.status": "cancelled"})
    await it.clock.advance(3600 * 2)
    assert await _listed(it, {"filter.status": "cancelled"}) == []
    assert isinstance(await it.poll(usual), NotThere)


async def _listed(it: Rehearsal, query: dict[str, Any]) -> Any:
    """
    The rows of the pretend provider's list, or None where it refuses.
    """
    assert isinstance(it.adapter, ArkAdapter)
    answer = await it.send(it.adapter.get(words.TASKS, **query))
    return json.loads(answer.body)["items"] if answer.status == 200 else None


async def test_the_pretend_provider_refuses_what_ark_refuses() -> None:
    """Values that there are not, what models from 2.0 on do not take, and a video that is no address."""
    video = {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA=="}, "role": "reference_video"}
    for wrong in (
        *({"ratio": "7:5"}, {"resolution": "8k"}, {"duration": 5.5}, {"frames": 30}),
        *({"content": [video]}, {"seed": 7, "model": "doubao-seedance-2-0-260128"}),
    ):
        it = TestArk.sheet.rehearse()
        task = it.task()
        refused = await it.run(it.adapter.submit(replace(task, parameters={**task.parameters, **wrong})))
        assert isinstance(refused, Failed), wrong
        assert "InvalidParameter" in refused.problem.detail


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


def test_what_is_denied_holds_up_nothing_else() -> None:
    """A poll that is denied is asked again, and the account does not rest: other clips would be lost meanwhile."""
    it = TestArk.sheet.rehearse()
    task = replace(it.task(**FIELDS), remote_id=ID)
    denied = {"error": {"code": "AccessDenied", "message": "no access to the requested resource", "type": "Forbidden"}}
    assert isinstance(converse(it.adapter.poll(task), reply(denied, status=403))[1], Trouble)
