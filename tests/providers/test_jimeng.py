"""
Jimeng, held against its fact sheet and the pretend provider in its words.
"""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from vidrelay.core.adapter import Checked, NotThere, Refused, Trouble
from vidrelay.core.errors import ConfigError, InvalidRequest
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Ready, StillRunning
from vidrelay.core.task import CancelOutcome, Reference
from vidrelay.providers.credentials import KeyPair
from vidrelay.providers.jimeng.adapter import make
from vidrelay.providers.jimeng.signature import signed_headers
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE
from vidrelay.testing.sheet import Sample, Sheet

ACCESS, SECRET = "AKLTcanary", "c2VjcmV0LWNhbmFyeQ=="
KEY = f"{ACCESS}:{SECRET}"
FIELDS = {"duration": 5, "aspect_ratio": "21:9", "seed": -1, "resolution": "1080p"}
ADDRESS = "https://visual.volcengineapi.com/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31"
CONTENT = (50411, 50412, 50413, 50511, 50512, 50516, 50517, 50518, 50519, 50520, 50521, 50522)


def _good(data: object) -> dict:
    return {"code": 10000, "message": "Success", "request_id": "q1", "status": 10000, "data": data}


def _bad(code: int, data: object = None) -> dict:
    return {"code": code, "message": "no", "request_id": "q4", "status": code, "data": data}


def _gateway(code: str) -> dict:
    return {"ResponseMetadata": {"RequestId": "q5", "Error": {"CodeN": 100000, "Code": code, "Message": "no"}}}


class TestJimeng(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="jimeng",
        make=make,
        key=KEY,
        fields=FIELDS,
        picture={"duration": 10, "seed": 7},
        words={
            "in_queue": Standing.WAITING,
            "generating": Standing.WORKING,
            "processing": Standing.WORKING,
            "done": Standing.DONE,
            "expired": Standing.EXPIRED,
        },
        create_codes={
            **{str(code): Meaning.MODERATED for code in CONTENT},
            "50429": Meaning.RATE,
            "50430": Meaning.WINDOW,
            "50500": Meaning.AGAIN,
            "50501": Meaning.AGAIN,
            # What stands before the service says it by name, and a clock that is wrong here with 400.
            **dict.fromkeys(("InvalidTimestamp", "InvalidAuthorization", "InvalidCredential"), Meaning.AUTH),
            "MissingRequestInfo": Meaning.AUTH,
            "InvalidActionOrVersion": Meaning.REJECTED,
            "FlowLimitExceeded": Meaning.RATE,
        },
        job_codes={
            **{str(code): Meaning.MODERATED for code in CONTENT},
            "50500": Meaning.AGAIN,
            "50501": Meaning.AGAIN,
        },
        refused=(
            ({"negative_prompt": "x"}, "negativePrompt"),
            ({"duration": 7}, "duration"),
            ({"resolution": "4k"}, "resolution"),
            ({"aspect_ratio": "2:1"}, "aspectRatio"),
            ({"references": (Reference(url="https://x.example/a.png"),)}, "aspectRatio"),
            ({"model_version": "jimeng_t2v_v30"}, "resolution"),
        ),
        samples=(
            Sample(of="submit", data=_good({"task_id": "7418049665255653414"}), outcome=Accepted),
            # An id that comes as a number is one, and a code that comes as text.
            Sample(of="submit", data=_good({"task_id": 7418049665255653414}), outcome=Accepted),
            Sample(of="submit", data=_good({"task_id": "7418"}) | {"code": "10000"}, outcome=Accepted),
            Sample(of="submit", data=_bad(50430) | {"code": "50430"}, outcome=Refused),
            Sample(of="poll", data=_good({"status": "generating"}), outcome=StillRunning),
            Sample(
                of="poll",
                data=_good({"status": "done", "video_url": "https://cdn.example/o.mp4?x-expires=1764483600"}),
                outcome=Ready,
            ),
            Sample(of="submit", data=_bad(50430), outcome=Refused, status=429),
            Sample(of="submit", data=_bad(50430), outcome=Refused),
            Sample(of="poll", data=_good({"status": "not_found"}), outcome=NotThere),
            # A job that failed says so by the code, in whichever of the two forms, and with either status.
            *(Sample(of="poll", data=_bad(50516, data), outcome=Failed) for data in (None, {"status": "done"})),
            Sample(of="poll", data=_bad(50511), outcome=Failed, status=400),
            # Trouble of the service's own ends a job only where it says that the job is done.
            Sample(of="poll", data=_bad(50500), outcome=Trouble, status=500),
            Sample(of="poll", data=_bad(50500, {"status": "done"}), outcome=Failed, status=500),
            # The word counts where there is one, whatever the code beside it.
            Sample(of="poll", data=_bad(50400, {"status": "not_found"}), outcome=NotThere, status=400),
            Sample(of="poll", data=_bad(50400, {"status": "expired"}), outcome=Failed, status=400),
            Sample(of="poll", data=_bad(50429), outcome=Refused, status=429),
            # A way that leads nowhere says nothing of the task.
            Sample(of="poll", data=_gateway("ServiceNotFound"), outcome=Trouble, status=404),
            Sample(of="poll", data=_gateway("InvalidActionOrVersion"), outcome=Trouble, status=404),
            Sample(of="poll", data=_gateway("InvalidTimestamp"), outcome=Refused, status=400),
        ),
    )


def rehearse(**options):
    """An account whose key is known to the pretend provider too."""
    it = TestJimeng.sheet.rehearse(**options)
    it.engine.change({"key": KEY})
    return it


@pytest.mark.parametrize(
    ("address", "body", "signature"),
    [
        (
            ADDRESS,
            '{"req_key": "jimeng_t2v_v30", "prompt": "a cat 猫"}',
            "d1e297c77b73640a2e428ab52957fb310873e8fd2f85f195481fa6c712bfc288",
        ),
        (
            "http://127.0.0.1:8199/x%20y?Version=2022-08-31&Zed=~%C3%A9&Action=A%20b%2Fc",
            '{"req_key": "jimeng_t2v_v30", "prompt": "a cat 猫"}',
            "7af29a1a91423927a16546e9902d71822c9a3ed7cfd5c2e0bba0b15eea3d8c43",
        ),
    ],
)
def test_the_signature_is_the_sdks(address, body, signature):
    """What volcengine 1.0.229 (SignerV4.sign_only) made of the same call."""
    made = signed_headers(
        KeyPair(access=ACCESS, secret=SECRET),
        method="POST",
        url=address,
        content_type="application/json",
        body_sha256=hashlib.sha256(body.encode()).hexdigest(),
        now=datetime(2026, 11, 30, 12, 0, tzinfo=UTC),
    )
    assert made == {
        "X-Date": "20261130T120000Z",
        "X-Content-Sha256": "1721f1f07cf78d94ad68d8bc769d280416e86cd22856cb12bf1e9d20f2318cb5",
        "Authorization": f"HMAC-SHA256 Credential={ACCESS}/20261130/cn-north-1/cv/request, "
        f"SignedHeaders=content-type;host;x-content-sha256;x-date, Signature={signature}",
    }


async def test_a_signed_life_with_a_picture():
    """The pretend provider checks each call's signature, which covers the picture's bytes."""
    it = rehearse()
    task = await it.submitted(it.task(references=(Reference(asset=PICTURE.id),)))
    await it.clock.advance(60)
    assert isinstance(await it.poll(task), Ready)
    assert isinstance(await it.run(it.adapter.check()), Checked)
    assert not any("Authorization" in request.headers for request in it.requests)
    assert not any(SECRET in repr(request.signed("0" * 64)) for request in it.requests)


async def test_a_wrong_secret_is_refused():
    """By the signature, whatever the access key; a call without one, too."""
    it = rehearse()
    for key in (f"{ACCESS}:another", f"other:{SECRET}", None):
        it.adapter = make(AdapterSettings(now=it.clock.now, key=key, base_url=it.adapter.base))
        outcome = await it.run(it.adapter.submit(it.task(**FIELDS)))
        assert isinstance(outcome, Refused), (key, outcome)
        assert outcome.reason == "auth"
    assert not it.engine.jobs


def test_a_key_without_two_parts_is_refused_at_once():
    """An account with half a key cannot sign anything."""
    with pytest.raises(ConfigError):
        make(AdapterSettings(now=lambda: datetime.now(UTC), key="half"))


@pytest.mark.parametrize(
    ("resolution", "roles", "req_key"),
    [
        (None, (), "jimeng_ti2v_v30_pro"),
        ("720p", (), "jimeng_t2v_v30"),
        ("1080p", ("first_frame",), "jimeng_ti2v_v30_pro"),
        ("720p", ("first_frame",), "jimeng_i2v_first_v30"),
        (None, ("first_frame", "last_frame"), "jimeng_i2v_first_tail_v30"),
        ("1080p", ("first_frame", "last_frame"), "jimeng_i2v_first_tail_v30_1080"),
    ],
)
def test_the_model_follows_from_resolution_and_pictures(resolution, roles, req_key):
    """Unless a req_key is named, which goes as it is."""
    it = TestJimeng.sheet.rehearse()
    references = tuple(Reference(url="https://x.example/a.png", role=role) for role in roles)
    assert it.task(resolution=resolution, references=references).model_version == req_key
    assert it.task(model_version="jimeng_of_tomorrow", references=references).model_version == "jimeng_of_tomorrow"


def test_frames_of_two_kinds_do_not_go_together():
    """Addresses and bytes have a field of their own each, and one of them is taken."""
    it = TestJimeng.sheet.rehearse()
    first, last = (
        Reference(asset=PICTURE.id, role="first_frame"),
        Reference(url="https://x.example/a.png", role="last_frame"),
    )
    with pytest.raises(InvalidRequest) as refusal:
        it.task(references=(first, last))
    assert refusal.value.field == "references"
    both = it.task(references=(Reference(url="https://x.example/b.png", role="first_frame"), last))
    assert both.parameters["image_urls"] == ["https://x.example/b.png", "https://x.example/a.png"]


async def test_an_account_rests_where_its_window_is_full():
    """A second job is refused, and its task is tried later."""
    it = TestJimeng.sheet.rehearse()
    await it.submitted(it.task(**FIELDS))
    outcome = await it.run(it.adapter.submit(it.task("another", **FIELDS)))
    assert isinstance(outcome, Refused)
    assert outcome.reason == "window"


async def test_a_cancel_that_is_not_taken_is_no_cancel():
    """Whether a video can be stopped is not documented: a job that still runs is told as such."""
    it = TestJimeng.sheet.rehearse()
    task = await it.submitted(it.task(**FIELDS))
    it.arm("delete-code=50400")
    assert await it.run(it.adapter.cancel(task)) == Cancelled(outcome=CancelOutcome.UNSUPPORTED)
    it.arm("delete-code=50400")
    await it.clock.advance(60)
    assert isinstance(await it.run(it.adapter.cancel(task)), CancelTooLate)


async def test_a_cancel_that_is_taken_and_stops_nothing_is_no_cancel():
    """Whether a video can be stopped is not documented: a job that goes on is told as such, and keeps its place."""
    it = TestJimeng.sheet.rehearse()
    task = replace(it.task(**FIELDS), remote_id="1")
    for seen, outcome in (
        (_good({"status": "generating"}), Cancelled(outcome=CancelOutcome.UNSUPPORTED)),
        (_good({"status": "not_found"}), Cancelled(outcome=CancelOutcome.STOPPED)),
        (_good({"status": "done", "video_url": "https://cdn.example/o.mp4"}), CancelTooLate()),
        (_bad(50500), Cancelled(outcome=CancelOutcome.STOPPED)),
    ):
        assert converse(it.adapter.cancel(task), reply(_good(None)), reply(seen))[1] == outcome


@pytest.mark.parametrize(
    ("req_key", "roles"),
    [
        ("jimeng_t2v_v30_1080p", ("first_frame",)),
        ("jimeng_i2v_first_v30", ()),
        ("jimeng_ti2v_v30_pro", ("first_frame", "last_frame")),
        ("jimeng_i2v_first_tail_v30", ("first_frame",)),
    ],
)
def test_a_model_that_takes_other_pictures_is_refused(req_key, roles):
    """Before it is paid for: a picture that the model does not look at would be dropped in silence."""
    it = TestJimeng.sheet.rehearse()
    references = tuple(Reference(url="https://x.example/a.png", role=role) for role in roles)
    with pytest.raises(InvalidRequest) as refusal:
        it.task(model_version=req_key, references=references)
    assert refusal.value.field == "references"


def test_pictures_in_extra_choose_the_model_too():
    """A model of text would drop them, and a clip without them would be paid for."""
    it = TestJimeng.sheet.rehearse()
    one, two = {"image_urls": ["https://x.example/a.png"]}, {"image_urls": ["https://x.example/a.png"] * 2}
    assert it.task(resolution="720p", extra=one).model_version == "jimeng_i2v_first_v30"
    assert it.task(resolution="720p", extra=two).model_version == "jimeng_i2v_first_tail_v30"
    with pytest.raises(InvalidRequest):
        it.task(model_version="jimeng_t2v_v30", extra=one)


async def test_a_job_known_by_its_id_alone_is_asked_for_under_each_key():
    """The key must be the one that it was made with, and one that was taken over does not tell it."""
    it = TestJimeng.sheet.rehearse()
    task = await it.submitted(it.task(resolution="720p"))
    assert isinstance(await it.poll(replace(task, parameters={}, model_version=None)), StillRunning)


async def test_a_job_is_not_gone_while_one_of_the_keys_could_not_be_asked_for():
    """It may be under just that one; all the others do not know it."""
    it = TestJimeng.sheet.rehearse()
    task = replace(await it.submitted(it.task()), parameters={}, model_version=None)
    it.arm("poll-error=503")
    assert isinstance(await it.poll(task), Trouble)
    assert isinstance(await it.poll(task), StillRunning)
    it.engine.restart(forget=True)
    assert isinstance(await it.poll(task), NotThere)


def test_a_check_that_is_answered_by_the_service_itself_has_a_good_key():
    """An error of its own about the job that cannot be shows that the signature was taken."""
    it = TestJimeng.sheet.rehearse()
    assert isinstance(converse(it.adapter.check(), reply(_bad(50400), status=400))[1], Checked)
    assert isinstance(converse(it.adapter.check(), reply(_bad(50500), status=500))[1], Trouble)
    denied = {"ResponseMetadata": {"Error": {"Code": "InvalidCredential", "Message": "no"}}}
    assert isinstance(converse(it.adapter.check(), reply(denied, status=401))[1], Refused)


async def test_polls_take_their_turn_and_the_create_waits_for_none():
    """Every call is a POST, so the adapter says which of them only ask."""
    it = TestJimeng.sheet.rehearse()
    task = await it.submitted(it.task(**FIELDS))
    await it.poll(task)
    await it.run(it.adapter.cancel(task))
    asked = [(one.creates, one.asks) for one in it.requests]
    assert asked == [(True, False), (False, True), (False, False), (False, True)]
