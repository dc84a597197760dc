"""
fal's door: what is its own, beside what holds for every door.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vidrelay.core.door import Keep, Kept, Look, Phase, Submit, View
from vidrelay.core.errors import InvalidRequest, UnknownTask
from vidrelay.core.lifecycle import Failed, Saved
from vidrelay.core.messages import Json
from vidrelay.core.task import CancelOutcome, Problem, RemoteTimes, Request, Standing, State
from vidrelay.providers.fal.adapter import make as make_adapter
from vidrelay.providers.fal.door import make
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.testing.doors import (
    ASSET,
    BASE,
    DATA_URI,
    FILM,
    FILM_URI,
    SOUND,
    SOUND_URI,
    Create,
    DoorContract,
    DoorSheet,
    call_door,
    stored,
    view_of,
)
from vidrelay.testing.records import events_to, make_file, make_task, moved

DOOR = make(None)
ADAPTER = make_adapter(AdapterSettings(key="k", base_url=None, now=lambda: datetime.now(UTC)))
MODEL = "fal-ai/kling-video/v2/master/text-to-video"
REQUEST = "/fal-ai/kling-video/requests/{id}"
BOAT = {"prompt": "a boat", "duration": "5"}
UPLOAD = f"{BASE}/files/{'ab' * 32}"


class TestFalDoor(DoorContract):
    """What holds for every door."""

    sheet = DoorSheet(
        door=DOOR,
        adapter=ADAPTER,
        creates=(
            Create(
                path=f"/{MODEL}", body=BOAT, same=Request(prompt="a boat", model_version=MODEL, extra={"duration": "5"})
            ),
            Create(
                path="/fal-ai/veo3",
                body={"prompt": "a boat", "duration": 8, "image_url": DATA_URI},
                same=Request(prompt="a boat", model_version="fal-ai/veo3", duration=8),
                picture="first_frame",
            ),
            Create(
                path="/workflows/acme/clips/two",
                body={"prompt": "a boat", "image_url": UPLOAD},
                same=Request(prompt="a boat", model_version="workflows/acme/clips/two"),
                picture="first_frame",
            ),
            Create(path=f"/{MODEL}", body={"prompt": "a boat", "elements": [{"frontal_image_url": DATA_URI}]}),
        ),
        media=(
            (Create(path=f"/{MODEL}", body={**BOAT, "video_url": FILM_URI}), FILM, None),
            (Create(path=f"/{MODEL}", body={**BOAT, "audio_url": SOUND_URI}), SOUND, None),
            (Create(path=f"/{MODEL}", body={**BOAT, "video_url": UPLOAD}), FILM, None),
        ),
        status=f"{REQUEST}/status",
        word=lambda said: (said["status"], said.get("error_type")),
        words={
            Phase.WAITING: ("IN_QUEUE", None),
            Phase.WORKING: ("IN_PROGRESS", None),
            Phase.DONE: ("COMPLETED", None),
            Phase.FAILED: ("COMPLETED", "remote_error"),
            Phase.CANCELLED: ("COMPLETED", "client_cancelled"),
            Phase.EXPIRED: ("COMPLETED", "request_timeout"),
        },
    )

    def test_a_result_is_this_relays(self) -> None:
        """The result call names the clip's address at this relay."""
        view = view_of(State.DONE)
        assert result_of(view).json == {
            "video": {
                "url": view.files[0],
                "content_type": "video/mp4",
                "file_name": "output.mp4",
                "file_size": 1000,
            }
        }


def status_of(view: View, **query: str) -> Any:
    """A status read."""
    return call_door(DOOR, "GET", f"{REQUEST.format(id=view.task.id)}/status", grant=lambda _: view, query=query)


def result_of(view: View) -> Any:
    """A call for the result."""
    return call_door(DOOR, "GET", REQUEST.format(id=view.task.id), grant=lambda _: view)


def test_later_calls_go_to_the_app_without_the_path_below_it() -> None:
    """The SDK follows these addresses, and builds the same ones from an id."""
    said = call_door(DOOR, "POST", f"/{MODEL}", BOAT).json
    here = f"{BASE}{REQUEST.format(id=said['request_id'])}"
    assert said == {
        "status": "IN_QUEUE",
        "request_id": said["request_id"],
        "queue_position": 0,
        "response_url": here,
        "status_url": f"{here}/status",
        "cancel_url": f"{here}/cancel",
    }


@pytest.mark.parametrize(
    ("standing", "position"),
    [(Standing(ahead=3), 3), (Standing(queue_position=7), 7), (Standing(), 0)],
    ids=["in our line", "in theirs", "not told"],
)
def test_a_place_in_the_queue_stands_in_every_answer_of_one_that_waits(standing: Standing, position: int) -> None:
    """Without the key the SDK fails."""
    called = status_of(view_of(State.QUEUED, standing=standing))
    assert (called.reply.status, called.json["queue_position"]) == (202, position)


def test_logs_stand_elsewhere_and_are_a_list_for_those_who_ask() -> None:
    """The SDK wants the key, and its user goes through the list."""
    working, done = view_of(State.RUNNING, working=True), view_of(State.DONE)
    assert [status_of(view).json["logs"] for view in (working, done)] == [None, None]
    assert [status_of(working, logs=asked).json["logs"] for asked in ("1", "true", "false")] == [[], [], None]
    assert [status_of(view).reply.status for view in (working, done)] == [202, 200]


def test_the_time_that_it_ran_is_told() -> None:
    """As the provider measured it."""
    view = view_of(State.DONE)
    timed = replace(view, task=replace(view.task, remote_times=RemoteTimes(execute_seconds=88.4)))
    assert status_of(timed).json["metrics"] == {"inference_time": 88.4}


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING, State.UNCERTAIN])
def test_a_result_is_not_there_before_the_end(state: State) -> None:
    """As fal says it."""
    called = result_of(view_of(state))
    assert called.reply.status == 400
    assert "in progress" in called.json["detail"]


def test_a_result_that_is_gone_is_not_found() -> None:
    """As after fal's own hour."""
    with pytest.raises(UnknownTask):
        result_of(view_of(State.DONE, gone=True))


@pytest.mark.parametrize(
    ("code", "status", "shown"),
    [
        ("moderated", 422, (422, "content_policy_violation")),
        ("remote_expired", 502, (504, "request_timeout")),
        ("remote_cancelled", 502, (499, "client_cancelled")),
        ("remote_failed", 502, (502, "remote_failed")),
    ],
)
def test_a_failed_request_repeats_its_error_as_its_result(code: str, status: int, shown: tuple[int, str]) -> None:
    """With what keeps the SDK from taking it for a proxy's, and from asking again."""
    task = moved(make_task(), *events_to(State.RUNNING, make_task()))
    task = moved(task, Failed(problem=Problem(code=code, title="No", detail="they say nginx", status=status)))
    called = result_of(View(task=task, standing=Standing()))
    assert (called.reply.status, called.json["error_type"]) == shown
    assert called.json["detail"] == "they say nginx"
    assert called.reply.headers["x-fal-request-id"] == task.id
    assert called.reply.headers["x-fal-retryable"] == "false"


def test_several_clips_are_all_named_and_pictures_are_no_video() -> None:
    """The first is where one is expected."""
    task = make_task(parameters={"seed": 7})
    way = events_to(State.DOWNLOADING, task)
    for kind, name in (("video/mp4", "videos"), ("image/png", "images")):
        files = tuple(make_file(index, task_id=task.id, media_type=kind) for index in range(2))
        urls = tuple(f"{BASE}/{index}.{kind.rpartition('/')[2]}" for index in range(2))
        said = result_of(View(task=moved(task, *way, Saved(files=files)), standing=Standing(), files=urls)).json
        assert [file["url"] for file in said[name]] == list(urls)
        assert ("video" in said) is (name == "videos")
        assert said["seed"] == 7


@pytest.mark.parametrize(
    ("outcome", "status", "word"),
    [
        (CancelOutcome.STOPPED, 200, "OK"),
        (CancelOutcome.LOCAL, 200, "OK"),
        (CancelOutcome.PENDING, 202, "CANCELLATION_REQUESTED"),
        (CancelOutcome.UNSUPPORTED, 202, "CANCELLATION_REQUESTED"),
        (CancelOutcome.TOO_LATE, 400, "ALREADY_COMPLETED"),
    ],
)
def test_a_cancel_says_what_came_of_it(outcome: CancelOutcome, status: int, word: str) -> None:
    """In the words of the sheet."""
    seen = view_of(State.CANCELLED, cancel=outcome)
    called = call_door(DOOR, "PUT", f"{REQUEST.format(id='x')}/cancel", grant=lambda _: seen)
    assert (called.reply.status, called.json) == (status, {"status": word})


@pytest.mark.parametrize(
    ("seen", "status"),
    [(view_of(State.DONE), 200), (view_of(State.RUNNING), 504), (view_of(State.CANCELLED), 499)],
    ids=["done", "not yet", "cancelled"],
)
def test_run_waits_a_minute_and_answers_with_the_result(seen: View, status: int) -> None:
    """Later it is the queue's own word for a request that took too long, which the SDK does not resend."""
    called = call_door(
        DOOR,
        "POST",
        f"/run/{MODEL}",
        BOAT,
        grant=lambda wish: seen if isinstance(wish, Look) else view_of(State.QUEUED),
    )
    assert [wish.wait for wish in called.wishes if isinstance(wish, Look)] == [60]
    assert called.reply.status == status
    if status == 504:
        assert called.json["error_type"] == "request_timeout"


def test_run_asks_nothing_more_where_the_result_is_there() -> None:
    """A hit of the cache is answered at once."""
    called = call_door(DOOR, "POST", f"/run/{MODEL}", BOAT, grant=lambda _: view_of(State.DONE))
    assert [type(wish) for wish in called.wishes] == [Submit]


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/veo3", BOAT, {}),
        ("/fal-ai/../veo3", BOAT, {}),
        ("/run/fal-ai", BOAT, {}),
        (f"/{MODEL}", [BOAT], {}),
        (f"/{MODEL}", {**BOAT, "endpoint_id": "acme/other"}, {}),
        (f"/{MODEL}", {**BOAT, "fal_headers": {}}, {}),
        (f"/run/{MODEL}/stream", BOAT, {"accept": "text/event-stream, application/json"}),
    ],
    ids=["no app", "no name", "no app to run", "no object", "another address", "a word of ours", "a stream"],
)
def test_what_could_not_be_sent_as_it_came_makes_no_task(path: str, body: Any, headers: dict[str, str]) -> None:
    """It is refused before anything is paid."""
    with pytest.raises(InvalidRequest):
        call_door(DOOR, "POST", path, body, headers=headers)


def test_what_a_create_says_beside_its_body_is_sent_along_and_makes_no_other_request() -> None:
    """A callback address and fal's own headers; no credential and no other header."""
    headers = {"x-fal-queue-priority": "low", "x-fal-request-timeout": "90.0", "authorization": "Key token", "x-a": "b"}
    called = call_door(
        DOOR, "POST", f"/{MODEL}", BOAT, query={"fal_webhook": "https://app.test/hook?a=1"}, headers=headers
    )
    assert isinstance(called.wishes[0], Submit)
    task = make_task(parameters=stored(called.wishes[0].new.prepared.parameters))
    request = next(ADAPTER.submit(moved(task, *events_to(State.SUBMITTING, task))))
    assert request.url == f"https://queue.fal.run/{MODEL}?fal_webhook=https%3A%2F%2Fapp.test%2Fhook%3Fa%3D1"
    assert request.headers["Authorization"] == "Key k"
    told = {name: value for name, value in request.headers.items() if name.startswith("x-")}
    assert told == {"x-fal-queue-priority": "low", "x-fal-request-timeout": "90.0"}
    assert {"fal_webhook", "fal_headers"} <= ADAPTER.traits.irrelevant
    assert not isinstance(request.body, Json)
    assert b"fal_" not in (request.body or b"")  # type: ignore[operator]


def test_headers_of_a_task_are_those_that_fal_knows() -> None:
    """What stands in `extra` can change neither the key nor the host."""
    parameters = {
        "endpoint_id": MODEL,
        "fal_headers": {"authorization": "x", "host": "x", "x-fal-no-retry": "1\r\na: b"},
    }
    task = make_task(parameters=parameters)
    request = next(ADAPTER.submit(moved(task, *events_to(State.SUBMITTING, task))))
    assert set(request.headers) == {"Accept", "Authorization", "Content-Type"}
    assert request.headers["Authorization"] == "Key k"


def test_an_upload_is_kept_and_its_address_stands_for_it() -> None:
    """Its token is the one that was shown."""
    said = call_door(DOOR, "POST", "/storage/auth/token", {}, headers={"authorization": "Key vrl_1"}).json
    assert (said["token"], said["token_type"], said["base_url"]) == ("vrl_1", "Bearer", BASE)
    assert datetime.fromisoformat(said["expires_at"]) > datetime.now(UTC)
    called = call_door(DOOR, "POST", "/files/upload")
    assert (called.wishes, called.json) == ([Keep()], {"access_url": UPLOAD})
    made = call_door(DOOR, "POST", f"/{MODEL}", {**BOAT, "image_url": UPLOAD})
    assert made.wishes[0].new.prepared.parameters["image_url"] == Kept(asset=ASSET.id)  # type: ignore[union-attr]
