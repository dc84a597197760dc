"""
Tencent in both dialects, held against its fact sheet and the pretend provider in its words.
"""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from vidrelay.core.adapter import Checked, Dedupe, NotThere, Refused, Trouble, Undecided, Unknown
from vidrelay.core.errors import ConfigError, InvalidRequest
from vidrelay.core.lifecycle import Accepted, Failed, Found, Ready, StillRunning
from vidrelay.core.task import Reference, Request
from vidrelay.providers.credentials import KeyPair
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.registry import make_adapter
from vidrelay.providers.tencent.adapter import make
from vidrelay.providers.tencent.signature import signed_headers
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.rehearsal import PICTURE, Broken
from vidrelay.testing.sheet import Sample, Sheet

ACCESS, SECRET = "AKIDcanary", "secret-canary"
KEY = f"{ACCESS}:{SECRET}"
WORDS = {"WAIT": Standing.WAITING, "RUN": Standing.WORKING, "DONE": Standing.DONE, "FAIL": Standing.FAILED}
CREATE_CODES = {
    "RequestLimitExceeded": Meaning.RATE,
    "RequestLimitExceeded.JobNumExceed": Meaning.WINDOW,
    "FailedOperation.InnerError": Meaning.AGAIN,
    "FailedOperation.RequestTimeout": Meaning.AGAIN,
    "FailedOperation.ServerError": Meaning.AGAIN,
    "FailedOperation.ModerationFailed": Meaning.MODERATED,
    **dict.fromkeys(
        (
            *("InvalidParameter", "InvalidParameter.InvalidParameter", "InvalidParameterValue"),
            *("InvalidParameterValue.UrlIllegal", "InvalidParameterValue.InvalidImageSize"),
        ),
        Meaning.REJECTED,
    ),
    "ResourcesSoldOut.ChargeStatusException": Meaning.BALANCE,
    "ResourceInsufficient": Meaning.BALANCE,
    "AuthFailure": Meaning.AUTH,
    "AuthFailure.SignatureFailure": Meaning.AUTH,
    "AuthFailure.SecretIdNotFound": Meaning.AUTH,
    "AuthFailure.SignatureExpire": Meaning.AUTH,
    "IpNotInWhitelist": Meaning.AUTH,
    **dict.fromkeys(
        (
            *("UnknownParameter", "UnsupportedOperation", "OperationDenied", "InvalidAction", "InvalidRequest"),
            *("ActionOffline", "RequestSizeLimitExceeded", "NoSuchVersion", "UnsupportedRegion", "UnsupportedProtocol"),
        ),
        Meaning.REJECTED,
    ),
    "LimitExceeded": Meaning.BALANCE,
    "ServiceUnavailable": Meaning.AGAIN,
    "NobodyKnows.This": Meaning.AGAIN,
}
JOB_CODES = {
    "FailedOperation.ModerationFailed": Meaning.MODERATED,
    "FailedOperation.InnerError": Meaning.AGAIN,
    "InvalidParameterValue.InvalidImageFormat": Meaning.REJECTED,
    "NobodyKnows.This": Meaning.AGAIN,
}
RUNNING = {"Status": "RUN", "ErrorCode": "", "ErrorMessage": "", "ResultVideoUrl": "", "RequestId": "q2"}
DONE = {**RUNNING, "Status": "DONE", "ResultVideoUrl": "https://bucket.cos.ap-guangzhou.myqcloud.com/o.mp4"}


def _error(code: str) -> dict:
    return {"Response": {"Error": {"Code": code, "Message": "no"}, "RequestId": "q4"}}


SAMPLES = (
    Sample(of="submit", data={"Response": {"JobId": "1397428070633955328", "RequestId": "q1"}}, outcome=Accepted),
    Sample(of="poll", data={"Response": RUNNING}, outcome=StillRunning),
    Sample(of="poll", data={"Response": DONE}, outcome=Ready),
    # An id that comes as a number is one.
    Sample(of="submit", data={"Response": {"JobId": 1397428070633955328, "RequestId": "q1"}}, outcome=Accepted),
    # What is null is not there.
    Sample(of="submit", data={"Response": {"JobId": "13974", "Error": None, "RequestId": "q1"}}, outcome=Accepted),
    Sample(of="submit", data=_error("RequestLimitExceeded.JobNumExceed"), outcome=Refused),
    Sample(of="poll", data=_error("FailedOperation.JobNotExist"), outcome=NotThere),
    Sample(of="poll", data=_error("FailedOperation.JobNotFound"), outcome=NotThere),
    # Asked about by its id alone, it is the job's own content that is refused; other trouble ends nothing.
    Sample(of="poll", data=_error("FailedOperation.ModerationFailed"), outcome=Failed),
    Sample(of="poll", data=_error("FailedOperation.InnerError"), outcome=Trouble),
)


class TestHunyuan(AdapterContract):
    """
    What holds for every provider: its own model.
    """

    sheet = Sheet(
        dialect="tencent",
        make=make,
        key=KEY,
        account_dialect="hunyuan",
        fields={"resolution": "720p"},
        picture={},
        words=WORDS,
        create_codes=CREATE_CODES,
        job_codes=JOB_CODES,
        refused=(
            ({"duration": 5}, "duration"),
            ({"aspect_ratio": "16:9"}, "aspectRatio"),
            ({"seed": 1}, "seed"),
            ({"resolution": "1080p"}, "resolution"),
            ({"model_version": "v2.5"}, "modelVersion"),
            ({"references": (Reference(url="https://x.example/a.png", role="last_frame"),)}, "references[0].role"),
        ),
        samples=SAMPLES,
    )


class TestKling(AdapterContract):
    """
    What holds for every provider: Kling's models there.
    """

    sheet = Sheet(
        dialect="tencent",
        make=make,
        key=KEY,
        account_dialect="kling",
        fields={"duration": 5, "aspect_ratio": "16:9", "negative_prompt": "rain", "model_version": "v2.6"},
        picture={"duration": 10},
        words=WORDS,
        create_codes=CREATE_CODES,
        job_codes=JOB_CODES,
        refused=(
            ({"duration": 7}, "duration"),
            ({"aspect_ratio": "4:3"}, "aspectRatio"),
            ({"seed": 1}, "seed"),
            ({"resolution": "720p"}, "resolution"),
            ({"references": (Reference(url="https://x.example/a.png"),)}, "aspectRatio"),
        ),
        samples=SAMPLES,
    )


@pytest.fixture(params=[TestHunyuan, TestKling])
def sheet(request):
    """Either dialect's."""
    return request.param.sheet


def test_the_signature_is_the_sdks():
    """What tencentcloud-sdk-python-vclm 3.1.127 made of the same call."""
    made = signed_headers(
        KeyPair(access=ACCESS, secret=SECRET),
        url="https://vclm.tencentcloudapi.com/",
        content_type="application/json",
        body_sha256=hashlib.sha256(b'{"Prompt": "a cat \\u732b"}').hexdigest(),
        now=datetime.fromtimestamp(1796040000, UTC),
    )
    assert made == {
        "X-TC-Timestamp": "1796040000",
        "Authorization": f"TC3-HMAC-SHA256 Credential={ACCESS}/2026-11-30/vclm/tc3_request, "
        "SignedHeaders=content-type;host, Signature=069c72e6d2067272ee8fc949cd511b65e838b9ca473fed0e2a0402a3351f1a19",
    }


async def test_a_signed_life_with_a_picture(sheet):
    """The pretend provider checks each call's signature, which covers the picture's bytes."""
    it = sheet.rehearse()
    it.engine.change({"key": KEY})
    task = await it.submitted(it.task(references=(Reference(asset=PICTURE.id),)))
    await it.clock.advance(60)
    assert isinstance(await it.poll(task), Ready)
    assert isinstance(await it.run(it.adapter.check()), Checked)
    assert not any(SECRET in repr(request.signed("0" * 64)) for request in it.requests)
    assert [(one.creates, one.asks) for one in it.requests] == [(True, False), (False, True), (False, True)]


async def test_a_wrong_secret_is_refused(sheet):
    """By the signature, whatever the access key; a call without one, too."""
    it = sheet.rehearse()
    it.engine.change({"key": KEY})
    for key in (f"{ACCESS}:another", f"other:{SECRET}", None):
        settings = AdapterSettings(now=it.clock.now, key=key, base_url=it.adapter.base, dialect=sheet.account_dialect)
        it.adapter = make(settings)
        outcome = await it.run(it.adapter.submit(it.task(**sheet.fields)))
        assert isinstance(outcome, Refused), (key, outcome)
        assert outcome.reason == "auth"
    assert not it.engine.jobs


async def test_a_call_is_signed_as_it_leaves(sheet):
    """One that waited for its turn for long is not too old for that; one by a clock that is wrong is refused."""
    it = sheet.rehearse()
    it.engine.change({"key": KEY})
    task = it.task(**sheet.fields)
    waiting = it.adapter.submit(task)
    built = next(waiting)
    await it.clock.advance(3600)
    with pytest.raises(StopIteration) as answered:
        waiting.send(await it.send(built))
    assert isinstance(answered.value.value, Accepted)
    for minutes, outcome in ((-6, Refused), (-4, StillRunning), (4, StillRunning), (6, Refused)):
        settings = AdapterSettings(
            now=lambda minutes=minutes: it.clock.now() + timedelta(minutes=minutes),
            key=KEY,
            base_url=it.adapter.base,
            dialect=sheet.account_dialect,
        )
        it.adapter = make(settings)
        assert isinstance(await it.poll(replace(task, remote_id=answered.value.value.remote_id)), outcome), minutes


def test_the_dialects_of_an_account():
    """Hunyuan unless told otherwise; an unknown one is refused, and so is half a key."""
    settings = AdapterSettings(now=lambda: datetime.now(UTC), key=KEY)
    assert make_adapter("tencent", settings).traits.dedupe is Dedupe.NONE
    assert make_adapter("tencent", replace(settings, dialect="kling")).traits.dedupe is Dedupe.CLIENT_ID
    for wrong in (replace(settings, dialect="vidu"), replace(settings, key="half")):
        with pytest.raises(ConfigError):
            make_adapter("tencent", wrong)


def test_the_prompt_of_hunyuan_is_counted_without_its_margins():
    """200 characters, and it is sent as it was typed."""
    it = TestHunyuan.sheet.rehearse()
    assert it.task(f"  {'猫' * 200}\n").parameters["Prompt"] == f"  {'猫' * 200}\n"
    assert "Prompt" in it.adapter.traits.prompts


def test_the_words_of_a_request_to_klings_models():
    """The seconds are text, and a last frame may come alone."""
    it = TestKling.sheet.rehearse()
    last = Reference(url="https://x.example/a.png", role="last_frame")
    assert it.task(duration=4, model_version="v3.0", references=(last,)).parameters == {
        "kind": "ImageToVideo",
        "Model": "v3.0",
        "Prompt": "a paper boat",
        "Duration": "4",
        "ImageTail": {"Url": "https://x.example/a.png"},
    }


def test_two_frames_have_room_in_one_call():
    """Of 10 MB; those that have not are refused before anything is sent."""
    adapter = TestKling.sheet.rehearse().adapter
    frames = tuple(Reference(asset=PICTURE.id, role=role) for role in ("first_frame", "last_frame"))
    for size, fits in ((3_750_000, True), (3_750_001, False)):
        assets = {PICTURE.id: replace(PICTURE, size_bytes=size)}
        if fits:
            adapter.prepare(Request(prompt="a boat", references=frames), assets)
            continue
        with pytest.raises(InvalidRequest) as refusal:
            adapter.prepare(Request(prompt="a boat", references=frames), assets)
        assert refusal.value.field == "references"


def test_a_picture_in_extra_chooses_the_kind_too():
    """Sent to the call for text it would be dropped, and a clip without it paid for."""
    it = TestKling.sheet.rehearse()
    task = it.task(extra={"Image": {"Url": "https://x.example/a.png"}})
    assert task.parameters["kind"] == "ImageToVideo"


# Our own id -----------------------------------------------------------------------------------------------------------


async def test_a_job_found_by_our_own_id_is_asked_for_by_it():
    """The answer does not tell the job's id, so ours stands for it."""
    it = TestKling.sheet.rehearse()
    task = it.task(**TestKling.sheet.fields)
    it.arm("create-drop-after")
    with pytest.raises(Broken):
        await it.run(it.adapter.submit(task))
    found = await it.find(task)
    assert isinstance(found, Found)
    assert found.remote_id == f"external:{task.submission_key}"
    await it.clock.advance(60)
    assert isinstance(await it.poll(replace(task, remote_id=found.remote_id)), Ready)
    assert json.loads(it.requests[-1].body) == {"ExternalTaskId": task.submission_key}


async def test_an_id_of_the_users_own_that_is_null_is_none():
    """SDKs send what was not set as null: our own id takes its place, and settles a lost create."""
    it = TestKling.sheet.rehearse()
    task = it.task(**TestKling.sheet.fields, extra={"ExternalTaskId": None})
    await it.submitted(task)
    assert json.loads(it.requests[0].body)["ExternalTaskId"] == task.submission_key
    assert isinstance(await it.find(task), Found)


async def test_a_create_that_was_made_before_is_taken_for_that():
    """A second try under the same id is refused as a duplicate: the job of the first is this one."""
    it = TestKling.sheet.rehearse(window=5)
    task = await it.submitted(it.task(**TestKling.sheet.fields))
    again = replace(task, remote_id=None, attempts=2)
    assert isinstance(await it.run(it.adapter.submit(again)), Accepted)
    assert len(it.engine.jobs) == 1


async def test_a_refused_second_try_that_nobody_made_is_refused():
    """For another reason it stays final; where the look-up says nothing, nothing is claimed."""
    it = TestKling.sheet.rehearse()
    task = replace(it.task(**TestKling.sheet.fields), attempts=2)
    it.arm("create-code=InvalidParameterValue")
    assert isinstance(await it.run(it.adapter.submit(task)), Failed)
    it.arm("create-code=InvalidParameterValue", "poll-error=503")
    assert isinstance(await it.run(it.adapter.submit(task)), Unknown)


async def test_a_refused_second_try_under_an_id_of_the_users_own_is_not_called_failed():
    """The first try may have made it, or an older job has that id: neither can be told, so nothing is claimed."""
    it = TestKling.sheet.rehearse(window=5)
    task = await it.submitted(it.task(**TestKling.sheet.fields, extra={"ExternalTaskId": "mine"}))
    assert isinstance(await it.run(it.adapter.submit(replace(task, remote_id=None, attempts=2))), Unknown)
    other = it.task(**TestKling.sheet.fields, extra={"ExternalTaskId": "nobodys"})
    it.arm("create-code=InvalidParameterValue")
    assert isinstance(await it.run(it.adapter.submit(replace(other, attempts=2))), Failed)


async def test_an_id_of_the_users_own_proves_nothing():
    """It may name an older job, and no answer tells when a job was made."""
    it = TestKling.sheet.rehearse()
    task = it.task(**TestKling.sheet.fields, extra={"ExternalTaskId": "mine"})
    await it.submitted(task)
    assert isinstance(await it.find(task), Undecided)


async def test_a_job_known_by_its_id_alone_is_asked_for_in_each_kind():
    """The kind is part of the action's name, and one that was taken over does not tell it."""
    it = TestKling.sheet.rehearse()
    task = await it.submitted(it.task(references=(Reference(asset=PICTURE.id),)))
    assert isinstance(await it.poll(replace(task, parameters={})), StillRunning)
