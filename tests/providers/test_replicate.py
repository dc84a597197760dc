"""
Replicate, held against its fact sheet and the pretend provider in its words.
"""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from vidrelay.core.adapter import Refused, Search, Trouble, Undecided
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import (
    Absent,
    Accepted,
    Answered,
    Cancelled,
    CancelTooLate,
    Failed,
    Found,
    Ready,
    StillRunning,
)
from vidrelay.core.task import Reference, RemoteFile
from vidrelay.providers.replicate.adapter import make
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE
from vidrelay.testing.sheet import Sample, Sheet

MODEL = "minimax/video-01"
FIELDS: dict[str, Any] = {
    "model_version": MODEL,
    "duration": 5,
    "aspect_ratio": "16:9",
    "resolution": "720p",
    "seed": 7,
    "negative_prompt": "rain",
}
STARTING = {
    "id": "gm3qorz",
    "model": "minimax/video-01",
    "version": "hidden",
    "input": {"prompt": "a paper boat"},
    "logs": "",
    "output": None,
    "error": None,
    "status": "starting",
    "created_at": "2026-11-30T10:00:00.000Z",
    "data_removed": False,
    "urls": {
        "get": "https://api.replicate.com/v1/predictions/gm3qorz",
        "cancel": "https://api.replicate.com/v1/predictions/gm3qorz/cancel",
    },
}
PROCESSING = {
    **STARTING,
    "logs": " 40%|####      | 20/50",
    "status": "processing",
    "started_at": "2026-11-30T10:00:07.500Z",
}
SUCCEEDED = {
    **PROCESSING,
    "logs": "done",
    "output": "https://replicate.delivery/xezq/abc/tmp.mp4",
    "status": "succeeded",
    "metrics": {"predict_time": 91.2, "total_time": 98.7},
    "completed_at": "2026-11-30T10:01:38.700Z",
}


class TestReplicate(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="replicate",
        make=make,
        fields=FIELDS,
        picture={"model_version": MODEL},
        words={
            "starting": Standing.WAITING,
            "processing": Standing.WORKING,
            "succeeded": Standing.DONE,
            "failed": Standing.FAILED,
            "canceled": Standing.CANCELLED,
            "aborted": Standing.EXPIRED,
        },
        create_codes={
            "400": Meaning.REJECTED,
            "401": Meaning.AUTH,
            "402": Meaning.BALANCE,
            "404": Meaning.REJECTED,
            "413": Meaning.REJECTED,
            "422": Meaning.REJECTED,
            "429": Meaning.RATE,
            "500": Meaning.AGAIN,
            "502": Meaning.AGAIN,
            "503": Meaning.AGAIN,
            "504": Meaning.AGAIN,
        },
        job_codes={"E9243": Meaning.AGAIN, "NSFW": Meaning.MODERATED},
        refused=(
            ({"model_version": None}, "modelVersion"),
            ({"model_version": "video-01"}, "modelVersion"),
            ({"model_version": "a/../b"}, "modelVersion"),
            ({"style_preset": "anime"}, "stylePreset"),
            ({"references": (Reference(url="https://x.example/1.png", role="last_frame"),)}, "references"),
        ),
        samples=(
            Sample(of="submit", data=STARTING, outcome=Accepted, status=201),
            Sample(of="submit", data=PROCESSING, outcome=Accepted, status=202),
            Sample(of="submit", data=SUCCEEDED, outcome=Answered, status=201),
            Sample(of="poll", data=PROCESSING, outcome=StillRunning),
            Sample(of="poll", data=SUCCEEDED, outcome=Ready),
            Sample(of="poll", data={**SUCCEEDED, "output": None, "data_removed": True}, outcome=Failed),
        ),
    )


def polled(data: dict[str, Any]) -> Any:
    it = TestReplicate.sheet.rehearse()
    task = replace(it.task(**FIELDS), remote_id="gm3qorz")
    return converse(it.adapter.poll(task), reply(data))[1]


@pytest.mark.parametrize(
    ("model", "path", "body"),
    [
        (MODEL, "/v1/models/minimax/video-01/predictions", {"input": {"prompt": "a paper boat"}}),
        ("deployments/acme/clips", "/v1/deployments/acme/clips/predictions", {"input": {"prompt": "a paper boat"}}),
        ("acme/clips:5c7d", "/v1/predictions", {"version": "5c7d", "input": {"prompt": "a paper boat"}}),
        ("ab" * 32, "/v1/predictions", {"version": "ab" * 32, "input": {"prompt": "a paper boat"}}),
    ],
)
def test_the_call_follows_from_the_model(model: str, path: str, body: dict[str, Any]) -> None:
    """A model, a deployment, a version of a model, a bare version: each has its own address."""
    it = TestReplicate.sheet.rehearse()
    sent = converse(it.adapter.submit(it.task(model_version=model)), reply(STARTING, status=201))[0]
    assert [request.url.partition("8199")[2] for request in sent] == [path]
    assert isinstance(sent[0].body, bytes)
    assert json.loads(sent[0].body) == body


def test_the_instants_are_the_providers_own() -> None:
    """Created, started, completed and the time of the run are told, so both halves are exact."""
    times = polled(SUCCEEDED).times
    assert times.started_at - times.created_at == timedelta(seconds=7.5)
    assert times.completed_at - times.created_at == timedelta(seconds=98.7)
    assert times.execute_seconds == 91.2


@pytest.mark.parametrize(
    ("logs", "progress"),
    [
        (" 40%|####      | 20/50", 0.4),
        ("  0%| | 0/50\r 10%|#| 5/50\n 98%|##| 49/50\nsaving", 0.98),
        ("Using seed 5", None),
        ("250%|####", None),
        (None, None),
    ],
)
def test_progress_is_what_the_model_printed_last(logs: str | None, progress: float | None) -> None:
    """The last line of the kind `NN%|`, and nothing where there is none."""
    assert polled({**PROCESSING, "logs": logs}).progress == progress


@pytest.mark.parametrize(
    ("output", "urls"),
    [
        ("https://r.example/a.mp4", ["a"]),
        (["https://r.example/a.mp4", "https://r.example/b.mp4", "https://r.example/a.mp4"], ["a", "b"]),
        ({"video": "https://r.example/a.mp4", "thumbnail": "https://r.example/b.png"}, ["a"]),
        ({"clip": {"url": "https://r.example/a.mp4"}, "seed": 5}, ["a"]),
    ],
)
def test_outputs_of_every_shape(output: Any, urls: list[str]) -> None:
    """One address, a list, or an object, in which a video counts before the rest."""
    ready = polled({**SUCCEEDED, "output": output})
    assert [one.url for one in ready.outputs] == [f"https://r.example/{name}.mp4" for name in urls]


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://replicate.delivery/a.mp4", True),
        ("https://pbxt.replicate.delivery/a.mp4", True),
        ("https://replicate.delivery.evil.example/a.mp4", False),
        ("https://evilreplicate.delivery/a.mp4", False),
        ("http://replicate.delivery/a.mp4", False),
        ("https://evil.example/?replicate.delivery", False),
    ],
)
def test_the_key_goes_to_the_delivery_hosts_alone(url: str, sent: bool) -> None:
    """Exactly that domain and what is below it, and only over TLS."""
    it = TestReplicate.sheet.rehearse()
    request = it.adapter.download(it.task(**FIELDS), RemoteFile(url=url, needs_key=True))
    assert ("Authorization" in request.headers) is sent


def test_a_429_names_its_seconds_in_words() -> None:
    """The text says how long to wait where no header does; a header wins."""
    it = TestReplicate.sheet.rehearse()
    told = {"title": "Too many", "status": 429, "detail": "Request was throttled. Expected available in 12 seconds."}
    outcome = converse(it.adapter.submit(it.task(**FIELDS)), reply(told, status=429))[1]
    assert isinstance(outcome, Refused)
    assert outcome.retry_after == 12.0
    late = reply(told, status=429, headers={"retry-after": "3"})
    outcome = converse(it.adapter.submit(it.task(**FIELDS)), late)[1]
    assert isinstance(outcome, Refused)
    assert outcome.retry_after == 3.0


def test_pictures_go_where_extra_wants_them() -> None:
    """`image` is the first frame's place unless extra.input names another."""
    it = TestReplicate.sheet.rehearse()
    frames = (
        Reference(asset=PICTURE.id, role="first_frame"),
        Reference(url="https://x.example/2.png", role="last_frame"),
    )
    wanted = {"input": {"start": {"$reference": "first_frame"}, "tail": {"$reference": "last_frame"}}}
    task = it.task(model_version=MODEL, references=frames, extra=wanted)
    picture = {"$asset": PICTURE.id, "mediaType": "image/png"}
    assert task.parameters["input"] == {"prompt": "a paper boat", "start": picture, "tail": "https://x.example/2.png"}


def test_extra_cannot_say_again_what_a_field_says() -> None:
    """A duration in both is refused, not guessed."""
    it = TestReplicate.sheet.rehearse()
    with pytest.raises(InvalidRequest):
        it.task(**FIELDS, extra={"input": {"duration": 10}})


async def test_absence_is_believed_only_while_inputs_are_kept() -> None:
    """Ten minutes after the loss the list proves it; after an hour inputs are erased, and it proves nothing."""
    it = TestReplicate.sheet.rehearse()
    task = it.task(**FIELDS)
    await it.clock.advance(700)
    assert isinstance(await it.find(task, elapsed=700.0), Absent)
    await it.clock.advance(3600)
    assert isinstance(await it.find(task, elapsed=4300.0), Undecided)


async def test_a_lost_create_is_found_behind_many_others() -> None:
    """The first page shows the provider's clock; then only the time in question is asked for."""
    it = TestReplicate.sheet.rehearse()
    lost = it.task(**FIELDS)
    made = await it.submitted(lost)
    for number in range(101):
        await it.submitted(it.task(f"at once {number}", **FIELDS))
    await it.clock.advance(600)
    for number in range(101):
        await it.submitted(it.task(f"later {number}", **FIELDS))
    asked = len(it.requests)
    found = await it.find(lost, elapsed=600.0)
    assert isinstance(found, Found)
    assert found.remote_id == made.remote_id
    queries = [request.url.partition("?")[2].partition("=")[0] for request in it.requests[asked:]]
    assert queries == ["", "created_after", "cursor"]


async def test_the_list_is_read_no_further_back_than_the_oldest_task() -> None:
    """By the provider's own clock, and on to the next page where there are many."""
    it = TestReplicate.sheet.rehearse()
    await it.submitted(it.task("of yesterday", **FIELDS))
    await it.clock.advance(86400)
    tasks = []
    for number in range(102):
        made = await it.run(it.adapter.submit(task := it.task(str(number), **FIELDS)))
        assert isinstance(made, Accepted)
        tasks.append(replace(task, remote_id=made.remote_id, remote_times=made.times))
    asked = len(it.requests)
    told = await it.run(it.adapter.poll_many(tasks))
    assert isinstance(told, dict)
    assert set(told) == {task.id for task in tasks}
    first, second = (request.url.partition("?")[2] for request in it.requests[asked:])
    assert first.startswith("created_after=2")
    assert second.startswith("cursor=")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("canceled", Cancelled),
        ("aborted", Cancelled),
        ("succeeded", CancelTooLate),
        ("failed", CancelTooLate),
        ("processing", Trouble),
        ("pondering", Trouble),
    ],
)
def test_a_cancel_is_believed_by_the_word_it_is_answered_with(status: str, outcome: type) -> None:
    """What is told to stop and still runs is asked to once more."""
    it = TestReplicate.sheet.rehearse()
    task = replace(it.task(**FIELDS), remote_id="gm3qorz")
    assert isinstance(converse(it.adapter.cancel(task), reply({**STARTING, "status": status}))[1], outcome)


async def test_an_erased_clip_is_told_as_expired() -> None:
    """An hour after the end, output and input are gone."""
    it = TestReplicate.sheet.rehearse()
    task = await it.submitted(it.task(**FIELDS))
    await it.clock.advance(3700)
    ended = await it.poll(task)
    assert isinstance(ended, Failed)
    assert ended.problem.code == "remote_expired"


@pytest.mark.parametrize(
    "other",
    [
        {**FIELDS, "extra": {"input": {"fps": 30}}},
        {**FIELDS, "references": (Reference(url="https://x.example/1.png"),)},
    ],
)
async def test_a_request_that_says_more_is_not_the_lost_one(other: dict[str, Any]) -> None:
    """Ours never arrived, and another of the same prompt did: it is not taken for ours, nor for proof of absence."""
    it = TestReplicate.sheet.rehearse()
    lost = it.task(**FIELDS)
    made = await it.submitted(it.task(**other))
    await it.clock.advance(700)
    found = await it.find(lost, elapsed=700.0)
    assert isinstance(found, Undecided)
    assert found.candidates == (made.remote_id,)


async def test_a_deployment_is_part_of_what_was_asked_for() -> None:
    """The same input at another deployment is another clip."""
    it = TestReplicate.sheet.rehearse()
    lost = it.task(model_version="deployments/acme/clips")
    await it.submitted(it.task(model_version="deployments/acme/drafts"))
    assert not isinstance(await it.find(lost), Found)
    made = await it.submitted(it.task(model_version="deployments/acme/clips"))
    found = await it.find(lost)
    assert isinstance(found, Found)
    assert found.remote_id == made.remote_id


def test_what_cannot_be_read_raises_nothing() -> None:
    """An address that is none gets no key; a job made at the beginning of time is listed all the same."""
    it = TestReplicate.sheet.rehearse()
    task = it.task(**FIELDS)
    request = it.adapter.download(task, RemoteFile(url="https://[replicate.delivery/a.mp4", needs_key=True))
    assert "Authorization" not in request.headers
    old = {**STARTING, "created_at": "0001-01-01T00:00:00Z"}
    made = converse(it.adapter.submit(task), reply(old, status=201))[1]
    assert isinstance(made, Accepted)
    task = replace(task, remote_id=made.remote_id, remote_times=made.times)
    requests, told = converse(it.adapter.poll_many([task]), reply({"results": [old], "next": None}))
    assert requests[0].url.endswith("/v1/predictions")
    assert set(told) == {task.id}


@pytest.mark.parametrize(("seconds", "sent"), [(5, "5"), (5.0, "5"), (5.5, "5.5")])
def test_a_whole_number_of_seconds_has_no_point(seconds: float, sent: str) -> None:
    """However it was typed, the same is sent: a model that takes whole numbers may not take 5.0."""
    it = TestReplicate.sheet.rehearse()
    task = it.task(model_version=MODEL, duration=seconds)
    assert json.dumps(task.parameters["input"]["duration"]) == sent


@pytest.mark.parametrize(
    "change",
    [
        {"created_at": None},
        {"created_at": 1790000000},
        {"id": 5},
        {"input": None},
        {"input": "a paper boat"},
        {"model": None},
        {"data_removed": True},
        {"source": "sdk"},
    ],
)
def test_a_list_that_cannot_all_be_read_proves_no_absence(change: dict[str, Any]) -> None:
    """The row that is not as it should be may be the lost create, which must not be paid twice."""
    it = TestReplicate.sheet.rehearse()
    task = it.task(model_version=MODEL)
    row = {**STARTING, "created_at": task.created_at.isoformat(), **change}
    search = Search(sent_at=task.created_at, lost_at=task.created_at, elapsed=700.0, lost_ago=700.0, owned=frozenset())
    for rows in ([row], [5]):
        found = converse(it.adapter.find(task, search), reply({"results": rows, "next": None}))[1]
        assert not isinstance(found, Absent), found
    for end, outcome in ((None, Absent), ({"cursor": "x"}, Undecided), ("https://api.replicate.com/", Undecided)):
        assert isinstance(converse(it.adapter.find(task, search), reply({"results": [], "next": end}))[1], outcome)


HASH = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa"


def looked_for(sent: dict[str, Any], row: dict[str, Any]) -> Any:
    """What a look in a list of that one row, eleven minutes after the loss, tells of a create with these parameters."""
    it = TestReplicate.sheet.rehearse()
    task = replace(it.task(model_version=MODEL), parameters={"input": {"prompt": "a paper boat"}, **sent})
    listed = {**STARTING, "source": "api", "created_at": task.created_at.isoformat(), **row}
    search = Search(sent_at=task.created_at, lost_at=task.created_at, elapsed=700.0, lost_ago=700.0, owned=frozenset())
    return converse(it.adapter.find(task, search), reply({"results": [listed], "next": None}))[1]


@pytest.mark.parametrize("version", [HASH, f"acme/boats:{HASH}", f"Acme/boats:{HASH}"])
def test_a_version_is_the_same_however_it_was_named(version: str) -> None:
    """A create through the door may name it with its model before it; the list shows the two apart."""
    assert isinstance(looked_for({"version": version}, {"model": "acme/boats", "version": HASH}), Found)
    assert isinstance(looked_for({"version": version}, {"model": "acme/boats", "version": "0" * 64}), Absent)


@pytest.mark.parametrize(
    ("sent", "row"),
    [
        ({"model": MODEL}, {"model": "minimax/video-01-renamed"}),
        ({"version": "minimax/video-01"}, {"model": "minimax/hailuo"}),
        ({"model": MODEL, "input": {"prompt": "a paper boat", "sparkle": True}}, {}),
        ({"deployment": "acme/clips"}, {"deployment": "clips", "input": {"prompt": "a paper boat", "fps": 24}}),
    ],
)
def test_a_job_that_may_be_ours_under_another_name_is_no_absence(sent: dict[str, Any], row: dict[str, Any]) -> None:
    """Models are renamed, inputs that they do not know are dropped: a person chooses, and nothing is paid twice."""
    assert isinstance(looked_for(sent, row), Undecided)


@pytest.mark.parametrize(
    "row", [{"input": {"prompt": "a kite"}}, {"input": {"image": "https://x.example/a.png"}}, {"deployment": "acme/x"}]
)
def test_another_clip_is_none_of_ours(row: dict[str, Any]) -> None:
    """Another prompt, an input without one, or a deployment that was not asked."""
    assert isinstance(looked_for({"model": MODEL}, row), Absent)
