"""
Kling, held against its fact sheet and the pretend provider in its words.
"""

import json
from dataclasses import replace
from datetime import timedelta

import jwt
import pytest

from vidrelay.core.adapter import NotThere, Refused, Undecided, Unknown
from vidrelay.core.errors import ConfigError, InvalidRequest
from vidrelay.core.lifecycle import Accepted, Failed, Found, Ready, StillRunning
from vidrelay.core.task import Asset, Reference
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.kling.adapter import make
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE, Broken
from vidrelay.testing.sheet import Sample, Sheet

ACCESS, SECRET = "access-canary", "secret-canary-of-32-characters-and-more"
KEY = f"{ACCESS}:{SECRET}"
FIELDS = {"duration": 5, "aspect_ratio": "16:9", "negative_prompt": "rain", "model_version": "kling-v2-5-turbo"}
DONE = {
    "code": 0,
    "message": "SUCCEED",
    "request_id": "b1c4",
    "data": {
        "task_id": "867283741759111202",
        "task_status": "succeed",
        "task_info": {"external_task_id": "relay-01J9"},
        "task_result": {"videos": [{"id": "v-1", "url": "https://cdn.klingai.com/x/out.mp4", "duration": "5.1"}]},
        "final_unit_deduction": "2",
        "created_at": 1764480000000,
        "updated_at": 1764480300000,
    },
}


def _running(word: str) -> dict:
    told = {"task_id": "867283741759111202", "task_status": word, "task_info": {"external_task_id": "relay-01J9"}}
    times = {"created_at": 1764480000000, "updated_at": 1764480000000}
    return {"code": 0, "message": "SUCCEED", "request_id": "b1c2", "data": told | times}


class TestKling(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="kling",
        make=make,
        key=KEY,
        fields=FIELDS,
        picture={"duration": 5},
        words={
            "submitted": Standing.WAITING,
            "processing": Standing.WORKING,
            "succeed": Standing.DONE,
            "failed": Standing.FAILED,
        },
        create_codes={
            **dict.fromkeys(("1000", "1001", "1002", "1003", "1004", "1100", "1304"), Meaning.AUTH),
            **dict.fromkeys(("1101", "1102"), Meaning.BALANCE),
            **dict.fromkeys(("1103", "1200", "1201", "1202", "1203"), Meaning.REJECTED),
            **dict.fromkeys(("1300", "1301"), Meaning.MODERATED),
            "1302": Meaning.RATE,
            "1303": Meaning.WINDOW,
            **dict.fromkeys(("5000", "5001", "5002"), Meaning.AGAIN),
        },
        refused=(
            ({"seed": 7}, "seed"),
            ({"resolution": "720p"}, "resolution"),
            ({"duration": 7}, "duration"),
            ({"aspect_ratio": "4:3"}, "aspectRatio"),
            ({"references": (Reference(url="https://x.example/a.png", role="last_frame"),)}, "references"),
            ({"references": (Reference(url="https://x.example/a.png"),)}, "aspectRatio"),
        ),
        samples=(
            Sample(of="submit", data=_running("submitted"), outcome=Accepted),
            Sample(of="poll", data=_running("processing"), outcome=StillRunning),
            Sample(of="poll", data=DONE, outcome=Ready),
            Sample(
                of="submit",
                data={"code": 1303, "message": "concurrency of the resource pack reached", "request_id": "b1c5"},
                outcome=Refused,
                status=429,
            ),
            Sample(of="submit", data={"code": 1303, "message": "reached"}, outcome=Refused),
            Sample(of="poll", data={"code": 1203, "message": "task not found"}, outcome=NotThere, status=404),
        ),
    )


def rehearse(**options):
    """An account whose key is known to the pretend provider too."""
    it = TestKling.sheet.rehearse(**options)
    it.engine.change({"key": KEY})
    return it


async def test_the_words_of_a_request():
    """The seconds are text, a picture is bare base64, and the kind follows from the pictures."""
    it = TestKling.sheet.rehearse()
    frames = (Reference(asset=PICTURE.id, role="first_frame"), Reference(asset=PICTURE.id, role="last_frame"))
    task = it.task(duration=10, references=frames)
    assert (task.parameters["kind"], task.parameters["duration"]) == ("image2video", "10")
    assert it.task().parameters == {"kind": "text2video", "model_name": "kling-v1", "prompt": "a paper boat"}
    await it.submitted(task)
    assert next(iter(it.engine.jobs.values())).pictures == 2


def test_a_picture_in_extra_chooses_the_kind_too():
    """Sent to the call for text it would be dropped, and a clip without it paid for."""
    it = TestKling.sheet.rehearse()
    for name in ("image", "image_tail"):
        assert it.task(extra={name: "https://x.example/a.png"}).parameters["kind"] == "image2video"


def test_a_model_of_pictures_is_refused_without_one():
    """kling-v1-5 and kling-v2-1 are of image2video alone; kling-v2-1-master is another."""
    it = TestKling.sheet.rehearse()
    for model in ("kling-v1-5", "kling-v2-1"):
        with pytest.raises(InvalidRequest) as refusal:
            it.task(model_version=model)
        assert refusal.value.field == "modelVersion"
        it.task(model_version=model, references=(Reference(asset=PICTURE.id),))
    it.task(model_version="kling-v2-1-master")


def test_the_seconds_that_a_model_makes():
    """5 or 10 in the older ones, 3 to 15 in v3; a model that nobody has told us of is not held to either."""
    it = TestKling.sheet.rehearse()
    assert it.task(duration=7, model_version="kling-v3").parameters["duration"] == "7"
    assert it.task(duration=30, model_version="kling-v9").parameters["duration"] == "30"
    with pytest.raises(InvalidRequest):
        it.task(duration=16, model_version="kling-v3")


def test_a_picture_that_is_too_small_or_too_long_is_refused():
    """300 pixels a side at least, and 2.5 to 1 at most."""
    it = TestKling.sheet.rehearse()
    for width, height in ((299, 400), (1000, 300)):
        asset = Asset(id="sha256:" + "cd" * 32, pixels="p", width=width, height=height, size_bytes=5, media_type="x/y")
        with pytest.raises(InvalidRequest) as refusal:
            it.task(references=(Reference(asset=asset.id),), assets={asset.id: asset})
        assert refusal.value.field == "references[0]"


# The token ------------------------------------------------------------------------------------------------------------


async def test_the_token_is_signed_and_used_for_25_minutes():
    """Made of access key and time with the secret; the same until 25 minutes have passed, never after half an hour."""
    it = rehearse()
    began = int(it.clock.now().timestamp())
    task = await it.submitted(it.task(**FIELDS))
    first = it.requests[-1].headers["Authorization"].removeprefix("Bearer ")
    assert jwt.get_unverified_header(first) == {"alg": "HS256", "typ": "JWT"}
    claims = jwt.decode(first, SECRET, algorithms=["HS256"], options={"verify_exp": False, "verify_nbf": False})
    assert claims == {"iss": ACCESS, "exp": began + 1800, "nbf": began - 5}
    await it.clock.advance(24 * 60)
    await it.poll(task)
    assert it.requests[-1].headers["Authorization"] == f"Bearer {first}"
    await it.clock.advance(61)
    await it.poll(task)
    second = it.requests[-1].headers["Authorization"].removeprefix("Bearer ")
    assert second != first
    assert SECRET not in repr(it.requests[-1].headers)


async def test_a_wrong_secret_is_refused():
    """By the signature: the access key alone opens nothing."""
    it = rehearse()
    for key in (f"{ACCESS}:another-secret-of-32-characters-or-more", f"other:{SECRET}", ACCESS):
        it.adapter = make_with(it, key)
        outcome = await it.run(it.adapter.submit(it.task(**FIELDS)))
        assert isinstance(outcome, Refused), (key, outcome)
        assert outcome.reason == "auth"
    assert not it.engine.jobs


async def test_a_key_without_a_colon_is_the_token_itself():
    """Newer keys are sent as they are."""
    it = TestKling.sheet.rehearse()
    it.engine.change({"key": "plain-canary"})
    it.adapter = make_with(it, "plain-canary")
    await it.submitted(it.task(**FIELDS))
    assert it.requests[-1].headers["Authorization"] == "Bearer plain-canary"


@pytest.mark.parametrize("ahead", [timedelta(hours=2), timedelta(hours=-2)])
async def test_a_clock_that_is_wrong_is_put_right_by_the_provider(ahead):
    """1003 and 1004 are answered with a token made by the provider's own time; a create is not sent twice at once."""
    it = rehearse()
    ours = it.clock.now() + ahead
    it.adapter = make_with(it, KEY, now=lambda: ours)
    outcome = await dated(it, it.adapter.submit(it.task(**FIELDS)))
    assert isinstance(outcome, Refused)
    assert (outcome.reason, outcome.retry_after, len(it.requests)) == ("auth", 1.0, 1)
    task = await it.submitted(it.task(**FIELDS))
    assert isinstance(await it.poll(task), StillRunning)


def test_half_a_pair_is_refused_at_once():
    """An account with half a key cannot sign anything, and says so before any call."""
    it = TestKling.sheet.rehearse()
    for key in (f"{ACCESS}:", f":{SECRET}"):
        with pytest.raises(ConfigError) as refusal:
            make_with(it, key)
        assert ACCESS not in refusal.value.message
        assert SECRET not in refusal.value.message


def test_a_clock_at_the_end_of_time_shows_nothing():
    """A `Date` of the year 9999 in a 1004 must not break the calls that follow."""
    it = TestKling.sheet.rehearse()
    task = replace(it.task(**FIELDS), remote_id="8")
    late = reply({"code": 1004, "message": "expired"}, status=401, headers={"date": "Fri, 31 Dec 9999 23:59:59 GMT"})
    for _ in range(2):
        assert isinstance(converse(it.adapter.poll(task), late, repeat=True)[1], Refused)
    assert isinstance(converse(it.adapter.poll(task), reply(_running("processing")))[1], StillRunning)


async def test_a_token_that_is_refused_however_it_is_made_pauses_the_account():
    """Made anew in vain, it is not made again and again."""
    it = rehearse()
    for _ in range(2):
        it.arm("create-code=1004")
        outcome = await it.run(it.adapter.submit(it.task(**FIELDS)))
    assert isinstance(outcome, Refused)
    assert outcome.retry_after is None


async def test_a_poll_is_asked_once_more_with_a_new_token():
    """An old token that the provider finds too old is replaced within the call; a new one is not."""
    it = rehearse()
    task = await it.submitted(it.task(**FIELDS))
    await it.clock.advance(120)
    it.arm("poll-code=1004")
    before = len(it.requests)
    assert isinstance(await it.poll(task), Ready)
    assert len(it.requests) - before == 2
    it.arm("poll-code=1004")
    assert isinstance(await it.poll(task), Refused)


def test_neither_secret_nor_token_is_told():
    """A provider that repeats them in an error has them blotted out."""
    it = TestKling.sheet.rehearse()
    request = next(it.adapter.submit(it.task(**FIELDS)))
    token = request.headers["Authorization"].removeprefix("Bearer ")
    told = {"code": 1000, "message": f"bad {token}, {SECRET}, {KEY}"}
    outcome = converse(it.adapter.submit(it.task(**FIELDS)), reply(told, status=401))[1]
    assert isinstance(outcome, Refused)
    assert not any(secret in outcome.detail for secret in (token, SECRET))
    data = {"task_id": "8", "task_status": "failed", "task_status_msg": f"bad {token}, {SECRET}"}
    ended = converse(it.adapter.submit(it.task(**FIELDS)), reply({"code": 0, "message": "", "data": data}))[1]
    assert isinstance(ended, Failed)
    assert not any(secret in ended.problem.detail for secret in (token, SECRET))


def test_an_id_that_comes_as_a_number_is_one():
    """It has digits only, and an id that is not read is a clip that was paid and cannot be found."""
    it, data = TestKling.sheet.rehearse(), {**_running("submitted")["data"], "task_id": 867283741759111202}
    task = it.task(**FIELDS)
    made = converse(it.adapter.submit(task), reply({"code": 0, "data": data}))[1]
    assert isinstance(made, Accepted)
    assert made.remote_id == "867283741759111202"
    running = replace(task, remote_id=made.remote_id)
    told = converse(it.adapter.poll_many([running]), reply({"code": 0, "data": [data]}))[1]
    assert set(told) == {task.id}


# Our own id -----------------------------------------------------------------------------------------------------------


async def test_our_own_id_is_sent_and_looked_up():
    """The submission key is the task's name there, whatever its state by then."""
    it = TestKling.sheet.rehearse()
    task = it.task(**FIELDS)
    it.arm("create-drop-after")
    with pytest.raises(Broken):
        await it.run(it.adapter.submit(task))
    await it.clock.advance(300)
    found = await it.find(task)
    assert isinstance(found, Found)
    assert it.requests[-1].url.endswith(f"/v1/videos/text2video/{task.submission_key}")
    assert found.times.completed_at is None


async def test_an_id_of_the_users_own_that_is_null_is_none():
    """SDKs send what was not set as null: our own id takes its place, and settles a lost create."""
    it = TestKling.sheet.rehearse()
    task = it.task(**FIELDS, extra={"external_task_id": None})
    await it.submitted(task)
    assert json.loads(it.requests[0].body)["external_task_id"] == task.submission_key
    assert isinstance(await it.find(task), Found)


async def test_a_create_that_was_made_before_is_taken_for_that():
    """A second try under the same id is refused as a duplicate: the task of the first is this one."""
    it = TestKling.sheet.rehearse()
    task = await it.submitted(it.task(**FIELDS))
    again = await it.run(it.adapter.submit(replace(task, remote_id=None, attempts=2)))
    assert isinstance(again, Accepted)
    assert again.remote_id == task.remote_id
    assert len(it.engine.jobs) == 1


async def test_a_refused_second_try_that_nobody_made_is_refused():
    """1201 for another reason stays final; where the look-up says nothing, nothing is claimed."""
    it = TestKling.sheet.rehearse()
    task = replace(it.task(**FIELDS), attempts=2)
    it.arm("create-code=1201")
    assert isinstance(await it.run(it.adapter.submit(task)), Failed)
    it.arm("create-code=1201", "poll-error=503")
    assert isinstance(await it.run(it.adapter.submit(task)), Unknown)


@pytest.mark.parametrize("code", ["1200", "1201"])
async def test_a_refused_second_try_under_an_id_of_the_users_own_is_not_called_failed(code):
    """The first try may have made it, or an older task has that id: neither can be told, so nothing is claimed."""
    it = TestKling.sheet.rehearse()
    task = await it.submitted(it.task(**FIELDS, extra={"external_task_id": "mine"}))
    it.arm(f"create-code={code}")
    assert isinstance(await it.run(it.adapter.submit(replace(task, remote_id=None, attempts=2))), Unknown)
    other = it.task(**FIELDS, extra={"external_task_id": "nobodys"})
    it.arm(f"create-code={code}")
    assert isinstance(await it.run(it.adapter.submit(replace(other, attempts=2))), Failed)


async def test_an_id_of_the_users_own_may_name_an_older_task():
    """It is taken for the lost one only where it was made in that time."""
    it = TestKling.sheet.rehearse()
    fields = {**FIELDS, "extra": {"external_task_id": "mine"}}
    await it.submitted(it.task(**fields))
    await it.clock.advance(600)
    assert isinstance(await it.find(it.task(**fields)), Undecided)
    it = TestKling.sheet.rehearse()
    task = it.task(**fields)
    made = await it.submitted(task)
    assert isinstance(await it.find(task), Found)
    assert isinstance(await it.find(task, owned=frozenset({made.remote_id})), Undecided)


async def test_a_task_known_by_its_id_alone_is_asked_for_in_each_kind():
    """The kind stands in the address, and one that was taken over does not tell it."""
    it = TestKling.sheet.rehearse()
    task = await it.submitted(it.task(references=(Reference(asset=PICTURE.id),)))
    bare = replace(task, parameters={})
    assert isinstance(await it.poll(bare), StillRunning)
    await it.clock.advance(60)
    assert isinstance(await it.poll(bare), Ready)


async def test_the_lists_of_both_kinds_are_read():
    """One call for each kind, and what has ended well is left to a call of its own that shows the clip."""
    it = TestKling.sheet.rehearse()
    tasks = [
        await it.submitted(it.task("[fail] one", **FIELDS)),
        await it.submitted(it.task(references=(Reference(asset=PICTURE.id),))),
    ]
    await it.clock.advance(10)
    told = await it.run(it.adapter.poll_many(tasks))
    assert {type(one) for one in told.values()} == {StillRunning}
    assert len(told) == 2
    await it.clock.advance(50)
    told = await it.run(it.adapter.poll_many(tasks))
    assert {task_id: type(one) for task_id, one in told.items()} == {tasks[0].id: Failed}


def make_with(it, key, now=None):
    """The adapter of another key, or with another clock."""
    return make(AdapterSettings(now=now or it.clock.now, key=key, base_url=it.adapter.base))


async def dated(it, conversation):
    """Hold the conversation; each answer tells the pretend provider's time, as HTTP does."""
    date = it.clock.now().strftime("%a, %d %b %Y %H:%M:%S GMT")
    request = next(conversation)
    while True:
        answer = await it.send(request)
        try:
            request = conversation.send(replace(answer, headers={**answer.headers, "date": date}))
        except StopIteration as ended:
            return ended.value


def test_a_short_secret_signs_as_it_is_without_a_warning():
    """Warnings are errors here; that it is short is said in words, which do not show it."""
    it = TestKling.sheet.rehearse()
    short = make(AdapterSettings(now=it.clock.now, key="access:short-canary"))
    requests, _ = converse(short.submit(it.task(**FIELDS)), reply({"code": 0, "data": {"task_id": "1"}}))
    assert requests[0].headers["Authorization"].startswith("Bearer ey")
    assert "shorter than 32 bytes" in short.key_note
    assert "canary" not in short.key_note
    assert it.adapter.key_note is None
    assert make(AdapterSettings(now=it.clock.now, key="bearer")).key_note is None
