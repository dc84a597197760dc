"""
The preview adapter says requests in the renderer's words and reads its replies.
"""

import json
from datetime import timedelta

import pytest

from vidrelay.core.adapter import Search, Trouble, Undecided, Unknown
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.messages import HttpReply
from vidrelay.core.task import Asset, CancelOutcome, Reference, RemoteFile, RemoteState, Request
from vidrelay.providers.preview.adapter import PreviewAdapter
from vidrelay.testing.clock import START
from vidrelay.testing.records import make_task

PICTURE = Asset(id="sha256:" + "a" * 64, pixels="p1:8x8:b", width=8, height=8, size_bytes=99, media_type="image/png")
QUEUED = {"id": "t", "status": "queued", "position": 2, "created_at": "2026-11-30T12:00:00+00:00"}
WORKING = QUEUED | {"status": "rendering", "progress": 0.4, "eta_seconds": 3.5}
TASK = make_task(id="task-1", parameters={"prompt": "a lighthouse", "model": "animatic-1"})
RUNNING = make_task(id="task-1", parameters={"prompt": "a lighthouse"}, remote_id="task-1")


def reply(status, fields=None):
    return HttpReply(status=status, body=b"" if fields is None else json.dumps(fields).encode())


def talk(conversation, *replies):
    """Hold a conversation with these replies; returns what it sent and what it concluded."""
    sent = [next(conversation)]
    for number, answer in enumerate(replies):
        try:
            sent.append(conversation.send(answer))
        except StopIteration as stop:
            assert number == len(replies) - 1
            return sent, stop.value
    raise AssertionError("it wants to go on")


def prepare(**fields):
    return PreviewAdapter().prepare(Request(prompt="a lighthouse", **fields), {PICTURE.id: PICTURE})


def test_every_default_but_the_seed_is_filled_in():
    """
    A prompt alone becomes a full set of parameters, in which no seed is made up.
    """
    prepared = prepare()

    assert prepared.model == "animatic-1"
    assert prepared.seconds == 5.0
    assert prepared.parameters == {
        "model": "animatic-1",
        "prompt": "a lighthouse",
        "aspect_ratio": "16:9",
        "resolution": "720p",
        "duration": 5,
        "fps": 24,
    }


def test_what_is_asked_for_is_said():
    """
    Seed, negative prompt, style, references and extra stand in the parameters under the renderer's names.
    """
    parameters = prepare(
        seed=4,
        negative_prompt="rain",
        style_preset="noir",
        references=(Reference(asset=PICTURE.id),),
        extra={"fps": 12},
    ).parameters

    assert parameters["seed"] == 4
    assert parameters["negative_prompt"] == "rain"
    assert parameters["style"] == "noir"
    assert parameters["fps"] == 12
    assert parameters["references"] == [{"$asset": PICTURE.id, "mediaType": "image/png"}]


@pytest.mark.parametrize(
    ("fields", "aspect_ratio", "resolution"),
    [
        ({"resolution": "640x360"}, "16:9", "640x360"),
        ({"resolution": "640×360", "aspect_ratio": "16:9"}, "16:9", "640x360"),
        ({"aspect_ratio": "9:16", "resolution": "1080P"}, "9:16", "1080p"),
    ],
)
def test_a_size_can_be_said_in_lines_or_in_pixels(fields, aspect_ratio, resolution):
    """
    A resolution is taken as lines or as width and height, in any of their usual spellings.
    """
    parameters = prepare(**fields).parameters

    assert (parameters["aspect_ratio"], parameters["resolution"]) == (aspect_ratio, resolution)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"model_version": "sora-2"}, "modelVersion"),
        ({"aspect_ratio": "wide"}, "aspectRatio"),
        ({"aspect_ratio": "16:0"}, "aspectRatio"),
        ({"aspect_ratio": "9:1"}, "aspectRatio"),
        ({"resolution": "4k"}, "resolution"),
        ({"resolution": "143p"}, "resolution"),
        ({"resolution": "8000x8000"}, "resolution"),
        ({"resolution": "641x361"}, "resolution"),
        ({"resolution": "640x360", "aspect_ratio": "1:1"}, "aspectRatio"),
        ({"duration": 0}, "duration"),
        ({"duration": 61}, "duration"),
        ({"duration": float("nan")}, "duration"),
        ({"duration": True}, "duration"),
        ({"seed": 2**70}, "seed"),
        ({"extra": {"fps": 1000}}, "extra.fps"),
        ({"extra": {"fps": True}}, "extra.fps"),
        ({"extra": {"fps": [24]}}, "extra.fps"),
        ({"extra": {"steps": 4}}, "extra.steps"),
        ({"references": (Reference(url="https://example.com/a.png"),)}, "references[0].url"),
        ({"references": (Reference(asset=PICTURE.id),) * 13}, "references"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(fields, field):
    """
    A model, size, length, seed or extra out of range is refused, and the error names the field.
    """
    with pytest.raises(InvalidRequest) as refused:
        prepare(**fields)

    assert refused.value.field == field


def test_a_submit_puts_the_job_under_the_tasks_own_id():
    """
    The create is one PUT under the task's id, and its answer an acceptance with state and times.
    """
    sent, outcome = talk(PreviewAdapter().submit(TASK), reply(201, QUEUED))

    assert [(one.method, one.url, one.creates) for one in sent] == [("PUT", "preview://local/jobs/task-1", True)]
    assert json.loads(sent[0].body) == TASK.parameters
    assert outcome == Accepted(remote_id="task-1", remote_state=RemoteState.WAITING, times=outcome.times)
    assert outcome.times.created_at == START


@pytest.mark.parametrize(("status", "kind"), [(409, Failed), (422, Failed), (500, Unknown)])
def test_a_submit_that_is_not_taken_says_so(status, kind):
    """
    A refusal fails the task, and trouble leaves the create's fate unknown.
    """
    _, outcome = talk(PreviewAdapter().submit(TASK), reply(status, {"error": "no"}))

    assert isinstance(outcome, kind)


def test_a_poll_tells_place_progress_and_time_left():
    """
    A waiting job tells its place in line, and a working one its progress and seconds left.
    """
    _, waiting = talk(PreviewAdapter().poll(RUNNING), reply(200, QUEUED))
    _, working = talk(PreviewAdapter().poll(RUNNING), reply(200, WORKING))

    assert (waiting.remote_state, waiting.queue_position) == (RemoteState.WAITING, 2)
    assert (working.remote_state, working.progress, working.eta_seconds) == (RemoteState.WORKING, 0.4, 3.5)


def test_a_renderer_that_forgot_the_job_is_asked_again():
    """
    A poll answered with 404 puts the job anew, which costs nothing, and the task runs on.
    """
    sent, outcome = talk(PreviewAdapter().poll(RUNNING), reply(404, {"error": "?"}), reply(201, QUEUED))

    assert [(one.method, one.creates) for one in sent] == [("GET", False), ("PUT", False)]
    assert isinstance(outcome, StillRunning)


def test_a_finished_job_gives_its_file_and_times():
    """
    A job that is done gives the address of its file, the completion and the measured run.
    """
    done = QUEUED | {"status": "done", "completed_at": "2026-11-30T12:00:05+00:00", "execute_seconds": 4.0}
    _, outcome = talk(PreviewAdapter().poll(RUNNING), reply(200, done))

    assert isinstance(outcome, Ready)
    assert outcome.outputs == (RemoteFile(url="preview://local/jobs/task-1/content"),)
    assert outcome.times.completed_at == START + timedelta(seconds=5)
    assert outcome.times.execute_seconds == 4.0


def test_a_failed_job_says_why():
    """
    The renderer's error becomes the detail of the task's problem.
    """
    _, outcome = talk(PreviewAdapter().poll(RUNNING), reply(200, QUEUED | {"status": "failed", "error": "no encoder"}))

    assert isinstance(outcome, Failed)
    assert outcome.problem.detail == "no encoder"


def test_an_answer_that_cannot_be_read_is_only_trouble():
    """
    An answer that is no JSON is trouble to ask again after, and no failure.
    """
    _, outcome = talk(PreviewAdapter().poll(RUNNING), HttpReply(status=200, body=b"<html>"))

    assert isinstance(outcome, Trouble)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, Cancelled(outcome=CancelOutcome.STOPPED)),
        (404, Cancelled(outcome=CancelOutcome.STOPPED)),
        (409, CancelTooLate()),
    ],
)
def test_a_cancel_stops_the_job_or_comes_too_late(status, expected):
    """
    A DELETE that is done, or finds no job, has stopped it; one in conflict came too late.
    """
    sent, outcome = talk(PreviewAdapter().cancel(RUNNING), reply(status, {}))

    assert [one.method for one in sent] == ["DELETE"]
    assert outcome == expected


@pytest.mark.parametrize(("status", "kind"), [(200, Found), (201, Found), (500, Undecided)])
def test_a_lost_create_is_settled_by_putting_it_again(status, kind):
    """
    A second PUT finds the job, whether new or there already, and trouble leaves it undecided.
    """
    search = Search(sent_at=START, lost_at=START, elapsed=0, lost_ago=0, owned=frozenset())
    sent, outcome = talk(PreviewAdapter().find(TASK, search), reply(status, QUEUED))

    assert [(one.method, one.creates) for one in sent] == [("PUT", False)]
    assert isinstance(outcome, kind)


def test_the_window_is_as_many_as_the_renderer_has_slots():
    """
    The account's window is the number of slots that the renderer tells.
    """
    _, limits = talk(PreviewAdapter().limits(), reply(200, {"slots": 3}))

    assert limits == {"*": 3}
