"""
fal, held against its fact sheet and the pretend provider in its words.
"""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from vidrelay.core.adapter import Copied, NotThere, Refused, Search, Trouble, Undecided, Unknown
from vidrelay.core.lifecycle import Accepted, Cancelled, Failed, Found, Ready, StillRunning
from vidrelay.core.messages import HttpReply, HttpRequest
from vidrelay.core.task import CancelOutcome, Reference, RemoteFile, RemoteState, Task
from vidrelay.providers.fal.adapter import make
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE, Broken
from vidrelay.testing.sheet import Sample, Sheet

MODEL = "fal-ai/kling-video/v2/master/text-to-video"
APP = "fal-ai/kling-video"
FIELDS: dict[str, Any] = {
    "model_version": MODEL,
    "duration": 5,
    "aspect_ratio": "16:9",
    "resolution": "720p",
    "seed": 7,
    "negative_prompt": "rain",
}
URLS = {
    "response_url": "https://queue.fal.run/fal-ai/kling-video/requests/80e732af",
    "status_url": "https://queue.fal.run/fal-ai/kling-video/requests/80e732af/status",
    "cancel_url": "https://queue.fal.run/fal-ai/kling-video/requests/80e732af/cancel",
}
QUEUED = {"status": "IN_QUEUE", "request_id": "80e732af", "queue_position": 3, **URLS}
WORKING = {"status": "IN_PROGRESS", "request_id": "80e732af", "logs": None, **URLS}
COMPLETED = {
    "status": "COMPLETED",
    "request_id": "80e732af",
    "logs": None,
    "metrics": {"inference_time": 88.4},
    "response_url": "https://queue.fal.run/fal-ai/kling-video/requests/80e732af",
}
VIDEO = {
    "video": {
        "url": "https://v3b.fal.media/files/b/panda/abc_output.mp4",
        "content_type": "video/mp4",
        "file_name": "output.mp4",
        "file_size": 4183020,
    }
}


class TestFal(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="fal",
        make=make,
        fields=FIELDS,
        picture={"model_version": MODEL},
        words={
            "IN_QUEUE": Standing.WAITING,
            "IN_PROGRESS": Standing.WORKING,
            "COMPLETED": Standing.DONE,
        },
        create_codes={
            "content_policy_violation": Meaning.MODERATED,
            "value_error": Meaning.REJECTED,
            "400": Meaning.REJECTED,
            "401": Meaning.AUTH,
            "403": Meaning.AUTH,
            "404": Meaning.REJECTED,
            "409": Meaning.AGAIN,
            "422": Meaning.REJECTED,
            "429": Meaning.RATE,
            "500": Meaning.AGAIN,
            "502": Meaning.AGAIN,
            "request_timeout": Meaning.AGAIN,
            "startup_timeout": Meaning.AGAIN,
            "runner_scheduling_failure": Meaning.AGAIN,
        },
        job_codes={
            "request_timeout": Meaning.EXPIRED,
            "startup_timeout": Meaning.EXPIRED,
            "runner_scheduling_failure": Meaning.AGAIN,
            "runner_connection_timeout": Meaning.AGAIN,
            "runner_disconnected": Meaning.AGAIN,
            "runner_connection_refused": Meaning.AGAIN,
            "content_policy_violation": Meaning.MODERATED,
            "value_error": Meaning.AGAIN,
            "image_too_small": Meaning.REJECTED,
        },
        refused=(
            ({"model_version": None}, "modelVersion"),
            ({"model_version": "kling"}, "modelVersion"),
            ({"model_version": "fal-ai/../x"}, "modelVersion"),
            ({"model_version": "fal-ai/x?fal_webhook=y"}, "modelVersion"),
            ({"style_preset": "anime"}, "stylePreset"),
            ({"references": (Reference(url="https://x.example/1.png", role="last_frame"),)}, "references"),
        ),
        samples=(
            Sample(of="submit", data=QUEUED, outcome=Accepted),
            Sample(of="poll", data=QUEUED, outcome=StillRunning, status=202),
            Sample(of="poll", data=WORKING, outcome=StillRunning, status=202),
        ),
    )

    async def test_a_lost_create(self) -> None:
        """
        The list sorts by the end and may show finished requests only: it is found once it has ended, and not before.
        """
        it = self.sheet.rehearse()
        task = it.task(**self.sheet.fields)
        it.arm("create-drop-after")
        with pytest.raises(Broken):
            await it.run(it.adapter.submit(task))
        assert isinstance(await it.find(task), Undecided)
        await it.clock.advance(60)
        found = await it.find(task, elapsed=60.0)
        assert isinstance(found, Found)
        await self._ready(it, replace(task, remote_id=found.remote_id))
        owned = frozenset({found.remote_id, f"{APP}/{found.remote_id}"})
        assert isinstance(await it.find(task, elapsed=60.0, owned=owned), Undecided)

    async def test_two_jobs_that_can_be_it_are_left_to_a_person(self) -> None:
        """Two equal requests that have both ended."""
        it = self.sheet.rehearse()
        task = it.task(**self.sheet.fields)
        for _ in range(2):
            await it.submitted(task)
        await it.clock.advance(60)
        found = await it.find(task, elapsed=60.0)
        assert isinstance(found, Undecided)
        assert len(found.candidates) == 2

    async def test_a_list_that_lags(self) -> None:
        """A request that has ended and is not listed yet is not absent."""
        it = self.sheet.rehearse(list_lag=100.0)
        task = it.task(**self.sheet.fields)
        await it.submitted(task)
        await it.clock.advance(90)
        assert isinstance(await it.find(task, elapsed=90.0), Undecided)
        await it.clock.advance(11)
        assert isinstance(await it.find(task, elapsed=101.0), Found)


def underway() -> tuple[Any, Task]:
    it = TestFal.sheet.rehearse()
    return it.adapter, replace(it.task(**FIELDS), remote_id="80e732af")


def polled(*replies: Any) -> Any:
    adapter, task = underway()
    return converse(adapter.poll(task), *replies)[1]


async def test_absence_is_never_claimed() -> None:
    """However long ago it was lost: whether waiting requests show is not known."""
    it = TestFal.sheet.rehearse()
    task = it.task(**FIELDS)
    await it.clock.advance(90_000)
    assert isinstance(await it.find(task, elapsed=90_000.0), Undecided)


def test_a_request_is_asked_for_at_its_app() -> None:
    """The path below the app is left out after the submit, and the result is fetched once it is completed."""
    adapter, task = underway()
    requests, outcome = converse(adapter.poll(task), reply(COMPLETED), reply(VIDEO))
    paths = [request.url.partition("8199")[2] for request in requests]
    assert paths == [f"/{APP}/requests/80e732af/status", f"/{APP}/requests/80e732af"]
    assert isinstance(outcome, Ready)
    assert outcome.outputs == (RemoteFile(url="https://v3b.fal.media/files/b/panda/abc_output.mp4"),)
    assert outcome.times.execute_seconds == 88.4


@pytest.mark.parametrize(
    ("model", "app"),
    [("workflows/acme/clips", "workflows/acme/clips"), ("comfy/acme/clips/fast", "comfy/acme/clips"), (MODEL, APP)],
)
def test_some_apps_have_a_namespace(model: str, app: str) -> None:
    """As the SDK reads them: three parts there, else two."""
    it = TestFal.sheet.rehearse()
    task = replace(it.task(model_version=model), remote_id="80e732af")
    requests, _ = converse(it.adapter.poll(task), reply(QUEUED, status=202))
    assert requests[0].url.endswith(f"/{app}/requests/80e732af/status")


def test_an_app_that_the_answer_names_is_kept() -> None:
    """Where later calls go to another app than the address tells, the id holds it; no host is taken from an answer."""
    it = TestFal.sheet.rehearse()
    other = {**QUEUED, "response_url": "https://evil.example/fal-ai/other-app/requests/80e732af"}
    _, accepted = converse(it.adapter.submit(it.task(**FIELDS)), reply(other))
    assert isinstance(accepted, Accepted)
    assert accepted.remote_id == "fal-ai/other-app/80e732af"
    assert it.adapter.valid_id(accepted.remote_id)
    task = replace(it.task(**FIELDS), remote_id=accepted.remote_id)
    requests, _ = converse(it.adapter.poll(task), reply(QUEUED, status=202))
    assert requests[0].url == "http://127.0.0.1:8199/fal-ai/other-app/requests/80e732af/status"


def test_the_place_in_the_queue_is_told() -> None:
    """fal alone tells it; 0 is the next."""
    assert polled(reply(QUEUED, status=202)).queue_position == 3
    assert polled(reply({**QUEUED, "queue_position": 0}, status=202)).queue_position == 0
    assert polled(reply({**QUEUED, "queue_position": "3"}, status=202)).queue_position is None


def test_completed_is_no_success() -> None:
    """An error beside the word ends it, without asking for the result."""
    failed = polled(reply({**COMPLETED, "error": "Request timed out", "error_type": "request_timeout"}))
    assert isinstance(failed, Failed)
    assert failed.problem.code == "remote_expired"


@pytest.mark.parametrize(
    ("status", "data", "headers", "outcome"),
    [
        (422, {"detail": [{"type": "content_policy_violation", "msg": "no"}]}, {}, "moderated"),
        (422, {"detail": [{"type": "x", "msg": "no"}]}, {"x-fal-retryable": "false"}, "rejected"),
        (422, {"detail": [{"type": "x", "msg": "no"}]}, {"x-fal-retryable": "true"}, "remote_failed"),
        (500, {"detail": "Internal Server Error"}, {}, "remote_failed"),
        (504, {"detail": "slow"}, {"x-fal-error-type": "startup_timeout"}, "remote_expired"),
        (503, {"detail": "gone", "error_type": "runner_disconnected"}, {"x-fal-request-id": "1"}, "remote_failed"),
        (503, {"detail": "unavailable"}, {}, Trouble),
        (502, "<h1>Bad Gateway</h1>", {}, Trouble),
        (400, {"detail": "Request is still in progress"}, {}, Trouble),
        (
            422,
            {"detail": [{"type": "x", "msg": "A stream in progress is no film"}]},
            {"x-fal-retryable": "false"},
            "rejected",
        ),
        (404, {"detail": "Request not found"}, {}, NotThere),
        (401, {"detail": "no"}, {}, Refused),
        (429, {"detail": "slowly"}, {}, Refused),
        (200, {"seed": 5}, {}, Trouble),
        (200, [1], {}, Trouble),
    ],
)
def test_the_result_call_repeats_the_models_error(
    status: int, data: Any, headers: dict[str, str], outcome: Any
) -> None:
    """What the model said ends the task; what a gate or a proxy said does not."""
    seen = polled(reply(COMPLETED), reply(data, status=status, headers=headers))
    if isinstance(outcome, str):
        assert isinstance(seen, Failed), seen
        assert seen.problem.code == outcome
    else:
        assert isinstance(seen, outcome), seen


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ({"video": {"url": "https://m.example/a.mp4"}}, ["a.mp4"]),
        ({"videos": [{"url": "https://m.example/a.mp4"}, {"url": "https://m.example/b.mp4"}]}, ["a.mp4", "b.mp4"]),
        ({"image": {"url": "https://m.example/i.png"}, "video": {"url": "https://m.example/a.mp4"}}, ["a.mp4"]),
        (
            {
                "output": {"url": "https://m.example/a.mp4", "content_type": "video/mp4"},
                "cover": "https://m.example/c.png",
            },
            ["a.mp4"],
        ),
        ({"video_url": "https://m.example/a.mp4"}, ["a.mp4"]),
        ({"data": {"video": {"url": "https://m.example/a.mp4"}}}, ["a.mp4"]),
        ({"images": [{"url": "https://m.example/i.png"}]}, ["i.png"]),
    ],
)
def test_a_video_is_found_in_any_models_output(output: Any, names: list[str]) -> None:
    """Under `video`, in `videos`, by its content type; without one, all that has an address."""
    ready = polled(reply(COMPLETED), reply(output))
    assert [one.url.rpartition("/")[2] for one in ready.outputs] == names


async def test_a_running_app_may_ignore_a_cancel() -> None:
    """The signal is sent, and nothing is claimed: its place is held until it ends."""
    it = TestFal.sheet.rehearse()
    task = await it.submitted(it.task(**FIELDS))
    await it.clock.advance(10)
    outcome = await it.run(it.adapter.cancel(task))
    assert isinstance(outcome, Cancelled)
    assert outcome.outcome is CancelOutcome.UNSUPPORTED


async def test_what_waits_is_taken_out_of_the_queue() -> None:
    """It is stopped, and told as cancelled afterwards."""
    it = TestFal.sheet.rehearse()
    task = await it.submitted(it.task(**FIELDS))
    outcome = await it.run(it.adapter.cancel(task))
    assert outcome == Cancelled(outcome=CancelOutcome.STOPPED)
    ended = await it.poll(task)
    assert isinstance(ended, Failed)
    assert ended.problem.code == "remote_cancelled"


async def test_the_media_host_sees_a_token_and_no_key() -> None:
    """Two calls: the key to fal's own host, what that gave to the host of the media."""
    it = TestFal.sheet.rehearse()
    copied = await it.run(it.adapter.upload({"$asset": PICTURE.id, "mediaType": "image/png"}))
    assert isinstance(copied, Copied)
    told = [request.headers["Authorization"] for request in it.requests]
    assert told == ["Key key-canary", "Bearer cdn-token"]
    assert not any(request.creates for request in it.requests)


def test_the_other_hosts_follow_the_base_address() -> None:
    """By default each has its own; with a base address of one's own, all is asked there."""
    now = FakeClock().now
    task = underway()[1]
    for base, hosts in (
        (None, ["api.fal.ai", "rest.fal.ai"]),
        ("https://queue.fal.run/", ["api.fal.ai", "rest.fal.ai"]),
        ("https://fal.run", ["api.fal.ai", "rest.fal.ai"]),
        ("https://api.fal.ai/v1", ["api.fal.ai", "rest.fal.ai"]),
    ):
        adapter = make(AdapterSettings(now=now, key="k", base_url=base))
        asked = [next(adapter.check()), next(adapter.upload({"$asset": "sha256:1"}))]
        assert [request.url.split("/")[2] for request in asked] == hosts
        assert next(adapter.poll(task)).url.startswith("https://queue.fal.run/fal-ai/")
    adapter = make(AdapterSettings(now=now, key="k", base_url="http://127.0.0.1:9"))
    asked = [next(adapter.check()), next(adapter.upload({"$asset": "sha256:1"})), next(adapter.poll(task))]
    assert {request.url.split("/")[2] for request in asked} == {"127.0.0.1:9"}


def test_a_5xx_never_proves_that_nothing_was_made() -> None:
    """Whatever code comes with it."""
    it = TestFal.sheet.rehearse()
    told = {"detail": "slow", "error_type": "request_timeout"}
    _, outcome = converse(it.adapter.submit(it.task(**FIELDS)), reply(told, status=504))
    assert isinstance(outcome, Unknown)


def test_a_locked_account_is_about_money() -> None:
    """A 403 whose text names the balance pauses the account's creates."""
    it = TestFal.sheet.rehearse()
    told = {"detail": "User is locked. Reason: Exhausted balance."}
    _, outcome = converse(it.adapter.submit(it.task(**FIELDS)), reply(told, status=403))
    assert isinstance(outcome, Refused)
    assert outcome.reason == "balance"


def test_pictures_go_where_extra_wants_them() -> None:
    """`image_url` is the first frame's place; the last one's differs by model."""
    it = TestFal.sheet.rehearse()
    frames = (
        Reference(asset=PICTURE.id, role="first_frame"),
        Reference(url="https://x.example/2.png", role="last_frame"),
    )
    task = it.task(model_version=MODEL, references=frames, extra={"tail_image_url": {"$reference": "last_frame"}})
    assert task.parameters["image_url"]["$asset"] == PICTURE.id
    assert task.parameters["tail_image_url"] == "https://x.example/2.png"


async def test_the_queue_and_the_run_are_told_apart_by_the_list() -> None:
    """A lost create that was found brings the instants that only the list has."""
    it = TestFal.sheet.rehearse()
    task = it.task(**FIELDS)
    await it.submitted(task)
    await it.clock.advance(60)
    found = await it.find(task, elapsed=60.0)
    assert isinstance(found, Found)
    assert found.times.started_at is not None
    assert found.times.created_at is not None
    assert found.times.started_at - found.times.created_at == timedelta(seconds=5)


async def test_a_request_that_says_more_is_not_the_lost_one() -> None:
    """Ours never arrived, and another of the same prompt did: it is left to a person."""
    it = TestFal.sheet.rehearse()
    lost = it.task(**FIELDS)
    made = await it.submitted(it.task(**FIELDS, extra={"cfg_scale": 0.7}))
    await it.clock.advance(60)
    found = await it.find(lost, elapsed=60.0)
    assert isinstance(found, Undecided)
    assert found.candidates == (made.remote_id,)


def test_a_full_page_without_a_cursor_is_no_end() -> None:
    """The cursor's name is not documented: where it is another, what stands further down is not known."""
    it = TestFal.sheet.rehearse()
    task = it.task(**FIELDS)
    sent = {name: value for name, value in task.parameters.items() if name != "endpoint_id"}
    row = {"request_id": "1", "sent_at": task.created_at.isoformat(), "json_input": sent}
    others = [{"request_id": str(number), "json_input": {}} for number in range(2, 101)]
    search = Search(sent_at=task.created_at, lost_at=task.created_at, elapsed=0.0, lost_ago=0.0, owned=frozenset())
    for rows, outcome in (([row], Found), ([row, *others], Undecided)):
        assert isinstance(converse(it.adapter.find(task, search), reply({"items": rows}))[1], outcome)


@pytest.mark.parametrize(("seconds", "sent"), [(5, "5"), (5.0, "5"), (5.5, "5.5")])
def test_a_whole_number_of_seconds_has_no_point(seconds: float, sent: str) -> None:
    """However it was typed, the same is sent: a model that takes whole numbers may not take 5.0."""
    it = TestFal.sheet.rehearse()
    assert repr(it.task(model_version=MODEL, duration=seconds).parameters["duration"]) == sent


@pytest.mark.parametrize(
    "listed",
    ["data:image/png;base64,UE5HIQ==", "https://v3.fal.media/files/1.png"],
)
def test_a_picture_that_cannot_be_compared_is_left_to_a_person(listed: str) -> None:
    """Of two creates of one prompt that were lost together, neither may get the other's clip."""
    it = TestFal.sheet.rehearse()
    task = it.task(model_version=MODEL, references=(Reference(asset=PICTURE.id),))
    row = {
        "request_id": "1",
        "sent_at": task.created_at.isoformat(),
        "json_input": {"prompt": "a paper boat", "image_url": listed},
    }
    search = Search(sent_at=task.created_at, lost_at=task.created_at, elapsed=0.0, lost_ago=0.0, owned=frozenset())
    assert isinstance(converse(it.adapter.find(task, search), reply({"items": [row]}))[1], Undecided)


# The status as a stream


def followed(body: bytes, known: StillRunning, *, status: int = 200) -> tuple[HttpRequest, Any]:
    """
    The call that lasts, and what comes of it where the stream says that.
    """
    it = TestFal.sheet.rehearse()
    task = replace(it.task(model_version=MODEL), remote_id="80e732af")
    conversation = it.adapter.follow([task], {task.id: known})
    request = next(conversation)
    try:
        conversation.send(HttpReply(status=status, body=body))
    except StopIteration as ended:
        told = ended.value
        return request, told[task.id] if isinstance(told, dict) else told
    raise AssertionError("it asks on")


def event(data: Any) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def test_the_stream_is_asked_for_as_events() -> None:
    """Its own address, and the type that is wanted."""
    request, _ = followed(event(WORKING), StillRunning(remote_state=RemoteState.WORKING))
    assert request.url.endswith(f"/{APP}/requests/80e732af/status/stream")
    assert request.headers["Accept"] == "text/event-stream"
    assert request.headers["Authorization"] == "Key key-canary"


@pytest.mark.parametrize(
    ("body", "enough"),
    [
        (event(QUEUED), False),
        (event(QUEUED) + event({**QUEUED, "queue_position": 2}), True),
        (event(WORKING), True),
        (event(WORKING)[:-1], False),
        (event(COMPLETED), True),
        (b": ping\n\n" + event(QUEUED) + b": ping\n\n", False),
        (event(QUEUED).replace(b"\n", b"\r\n"), False),
        (event(WORKING).replace(b"\n", b"\r\n"), True),
        (b"data: {\n\n", False),
        (b"event: x\n\n", False),
        (b"", False),
    ],
)
def test_a_stream_is_enough_when_it_says_something_new(body: bytes, enough: bool) -> None:
    """Another state, another place in line, or the end; not a whole event yet, or none at all, is no news."""
    known = StillRunning(remote_state=RemoteState.WAITING, queue_position=3)
    request, _ = followed(event(QUEUED), known)
    assert request.held is not None
    assert request.held.enough(bytearray(body)) is enough


@pytest.mark.parametrize("body", [b"", b"data: {", b"data: []\n\n", b"data: {}\n\n", b"<html>\n\n", b"data: nan\n\n"])
def test_a_stream_that_tells_nothing_is_trouble(body: bytes) -> None:
    """So the status is asked for in the ordinary way."""
    assert isinstance(followed(body, StillRunning())[1], Trouble)


@pytest.mark.parametrize(("status", "outcome"), [(404, Trouble), (500, Trouble), (429, Refused), (401, Refused)])
def test_a_stream_that_is_refused(status: int, outcome: type) -> None:
    """What the account is told holds for it; what is said of the job is left to a poll."""
    assert isinstance(followed(b'{"detail": "no"}', StillRunning(), status=status)[1], outcome)


def test_the_last_event_counts() -> None:
    """A stream says how it is now at its end."""
    _, seen = followed(event(QUEUED) + event(WORKING), StillRunning(remote_state=RemoteState.WAITING))
    assert seen == StillRunning(remote_state=RemoteState.WORKING)


@pytest.mark.parametrize(
    ("status", "detail", "expected"),
    [
        (403, "User is locked. Reason: Exhausted balance.", ("creates", "balance")),
        (401, "Invalid key", ("calls", "auth")),
        (503, "unavailable", None),
    ],
)
def test_a_refused_upload_says_what_the_account_lacks(
    status: int, detail: str, expected: tuple[str, str] | None
) -> None:
    """Without balance nothing new is made till that is mended; trouble says nothing of the account."""
    adapter = underway()[0]
    outcome = converse(adapter.upload({"$asset": "sha256:1"}), reply({"detail": detail}, status=status))[1]
    if expected is None:
        assert isinstance(outcome, Trouble)
    else:
        assert isinstance(outcome, Refused)
        assert (outcome.scope, outcome.reason) == expected
