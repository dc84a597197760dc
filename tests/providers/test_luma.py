"""
Luma's Dream Machine, held against its fact sheet and the pretend provider in its words.
"""

import pytest

from vidrelay.core.adapter import Refused, Search, Undecided
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Accepted, Failed, Found, Ready, StillRunning
from vidrelay.core.task import Reference
from vidrelay.providers.luma.adapter import make
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.sheet import Sample, Sheet

FIELDS = {"duration": 5, "aspect_ratio": "16:9", "resolution": "720p", "model_version": "ray-2"}
JOB = {
    "id": "d1968551",
    "generation_type": "video",
    "failure_reason": None,
    "created_at": "2026-11-30T10:00:00Z",
    "assets": None,
    "model": "ray-2",
    "request": {"prompt": "a paper boat", "model": "ray-2"},
}


class TestLuma(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="luma",
        make=make,
        path="/dream-machine/v1",
        fields=FIELDS,
        picture=None,
        words={
            "queued": Standing.WAITING,
            "dreaming": Standing.WORKING,
            "completed": Standing.DONE,
            "failed": Standing.FAILED,
        },
        create_codes={
            **dict.fromkeys(("400", "404", "422"), Meaning.REJECTED),
            **dict.fromkeys(("401", "403"), Meaning.AUTH),
            "402": Meaning.BALANCE,
            "429": Meaning.RATE,
            **dict.fromkeys(("409", "500", "502", "503", "504"), Meaning.AGAIN),
        },
        job_codes={"moderation": Meaning.MODERATED, "broken": Meaning.AGAIN},
        refused=(
            ({"negative_prompt": "x"}, "negativePrompt"),
            ({"seed": 7}, "seed"),
            ({"duration": 7}, "duration"),
            ({"aspect_ratio": "2:1"}, "aspectRatio"),
            ({"resolution": "480p"}, "resolution"),
        ),
        samples=(
            Sample(of="submit", data={**JOB, "state": "queued"}, outcome=Accepted, status=201),
            Sample(of="poll", data={**JOB, "state": "dreaming"}, outcome=StillRunning),
            Sample(
                of="poll",
                data={
                    **JOB,
                    "state": "completed",
                    "assets": {
                        "video": "https://storage.cdn-luma.com/dream_machine/x/y.mp4",
                        "image": "https://storage.cdn-luma.com/dream_machine/x/y.jpg",
                    },
                },
                outcome=Ready,
            ),
        ),
    )


def test_pictures_are_public_addresses_alone():
    """A first and a last frame by address; a file is refused by name, since Luma fetches and is given none."""
    it = TestLuma.sheet.rehearse()
    frames = tuple(Reference(url=f"https://x.example/{role}.png", role=role) for role in ("first_frame", "last_frame"))
    assert it.task(references=frames).parameters["keyframes"] == {
        "frame0": {"type": "image", "url": "https://x.example/first_frame.png"},
        "frame1": {"type": "image", "url": "https://x.example/last_frame.png"},
    }
    with pytest.raises(InvalidRequest, match="https"):
        it.task(references=(Reference(url="http://x.example/a.png"),))


def test_a_model_that_is_not_known_has_its_own_lengths():
    """What the sheet does not tell is left to Luma."""
    assert TestLuma.sheet.rehearse().task(model_version="ray-9", duration=12).parameters["duration"] == "12s"


@pytest.mark.parametrize(
    ("status", "detail", "told"),
    [
        (400, "Insufficient credits", ("creates", "balance")),
        (403, "not enough credits", ("creates", "balance")),
        (403, "Not authenticated", ("calls", "auth")),
        (429, "Rate limit exceeded", ("calls", "rate")),
        (429, "Too many concurrent generations", ("creates", "window")),
        (429, "You are running out of credits", ("creates", "balance")),
        (400, "The prompt violates our content policy", "moderated"),
        (422, [{"loc": ["body", "model"], "msg": "field required", "type": "missing"}], "rejected"),
    ],
)
def test_errors_without_codes_are_known_by_their_text(status, detail, told):
    """A lack of credits or too many jobs pause creates; what is wrong with the request ends the task."""
    it = TestLuma.sheet.rehearse()
    seen = converse(it.adapter.submit(it.task()), reply({"detail": detail}, status=status))[1]
    assert isinstance(seen, Refused | Failed), seen
    assert told == ((seen.scope, seen.reason) if isinstance(seen, Refused) else seen.problem.code)


async def test_nothing_is_ever_deleted():
    """Whether DELETE stops a job is not documented, so a cancel asks for nothing there."""
    it = TestLuma.sheet.rehearse()
    task = await it.submitted(it.task())
    assert not it.adapter.traits.can_cancel
    assert (await it.run(it.adapter.cancel(task))).outcome == "unsupported"
    assert [request.method for request in it.requests] == ["POST"]


async def test_a_long_list_is_read_back_to_the_loss_and_no_further():
    """Two hundred and fifty clips of before do not hide the lost one, nor are they all read."""
    it = TestLuma.sheet.rehearse()
    for number in range(250):
        await it.submitted(it.task(f"clip {number}"))
    await it.clock.advance(3600)
    task = await it.submitted(it.task())
    before = len(it.requests)
    assert isinstance(await it.find(task), Found)
    assert len(it.requests) - before == 1


async def test_tasks_far_down_the_list_are_asked_for_by_themselves():
    """One list call for two tasks, however long the list is."""
    it = TestLuma.sheet.rehearse()
    tasks = [await it.submitted(it.task(f"mine {number}")) for number in range(2)]
    for number in range(120):
        await it.submitted(it.task(f"clip {number}"))
    before = len(it.requests)
    assert await it.run(it.adapter.poll_many(tasks)) == {}
    assert len(it.requests) - before == 1


@pytest.mark.parametrize(
    ("request_", "outcome"),
    [
        ({}, Found),
        ({"aspect_ratio": "16:9", "duration": "5s", "loop": False, "callback_url": "https://x.example"}, Found),
        ({"resolution": "1080p"}, Undecided),
        ({"loop": True}, Undecided),
        ({"concepts": [{"key": "dolly_zoom"}]}, Undecided),
        ({"model": "ray-flash-2"}, Undecided),
    ],
)
def test_a_request_that_says_more_is_not_the_lost_one(request_, outcome):
    """What Luma may have filled in itself is no difference; what somebody must have asked for is one."""
    it = TestLuma.sheet.rehearse()
    task = it.task()
    made = {"prompt": "a paper boat", "model": "ray-2", **request_}
    row = {**JOB, "state": "queued", "created_at": task.created_at.isoformat(), "request": made}
    search = Search(sent_at=task.created_at, lost_at=task.created_at, elapsed=0.0, lost_ago=0.0, owned=frozenset())
    listed = reply({"generations": [row], "has_more": False})
    assert isinstance(converse(it.adapter.find(task, search), listed)[1], outcome)
