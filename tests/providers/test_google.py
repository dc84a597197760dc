"""
Google's Gemini API, Veo and Omni, held against its fact sheet and the pretend provider in its words.
"""

import base64
import json
from dataclasses import replace

import pytest

from vidrelay.core.adapter import Refused, Trouble, Unknown
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.fingerprint import fingerprint
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Ready, StillRunning
from vidrelay.core.messages import CLIP_REPLY_BYTES
from vidrelay.core.task import CancelOutcome, Reference
from vidrelay.providers.google.adapter import make
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE, PICTURE_BYTES, written
from vidrelay.testing.sheet import Sample, Sheet

HOST = "https://generativelanguage.googleapis.com"
OPERATION = "models/veo-3.1-generate-preview/operations/abc123"
VEO = {
    "duration": 8,
    "aspect_ratio": "16:9",
    "resolution": "720p",
    "negative_prompt": "rain",
    "model_version": "veo-3.1-generate-preview",
}
OMNI = {"duration": 3, "aspect_ratio": "9:16", "resolution": "360p", "model_version": "gemini-omni-1.2-flash"}
INTERACTION = {
    "id": "v1_abc",
    "model": "gemini-omni-1.2-flash",
    "created": "2026-11-30T10:00:00Z",
    "updated": "2026-11-30T10:00:50Z",
}
CREATE_CODES = {
    **dict.fromkeys(("INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND"), Meaning.REJECTED),
    **dict.fromkeys(("PERMISSION_DENIED", "UNAUTHENTICATED"), Meaning.AUTH),
    "RESOURCE_EXHAUSTED": Meaning.RATE,
    **dict.fromkeys(("INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED"), Meaning.AGAIN),
}
JOB_CODES = {
    "moderation_blocked": Meaning.MODERATED,
    "INVALID_ARGUMENT": Meaning.REJECTED,
    "CANCELLED": Meaning.CANCELLED,
    **dict.fromkeys(("INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"), Meaning.AGAIN),
}
REFUSED = (
    ({"style_preset": "anime"}, "stylePreset"),
    ({"aspect_ratio": "1:1"}, "aspectRatio"),
    ({"resolution": "480p"}, "resolution"),
    ({"duration": 4.5}, "duration"),
)


class TestVeo(AdapterContract):
    """
    What holds for every provider, of operations.
    """

    sheet = Sheet(
        dialect="google",
        make=make,
        path="/v1beta",
        fields=VEO,
        picture={"duration": 8},
        create_codes=CREATE_CODES,
        job_codes=JOB_CODES,
        refused=(*REFUSED, ({"duration": 5}, "duration"), ({"seed": 7}, "seed")),
        samples=(
            Sample(of="submit", data={"name": OPERATION}, outcome=Accepted),
            Sample(
                of="poll",
                data={"name": OPERATION, "metadata": {"@type": "type.googleapis.com/x"}},
                outcome=StillRunning,
            ),
            Sample(
                of="poll",
                data={
                    "name": OPERATION,
                    "done": True,
                    "response": {
                        "@type": "type.googleapis.com/x",
                        "generateVideoResponse": {
                            "generatedSamples": [{"video": {"uri": f"{HOST}/v1beta/files/f1:download?alt=media"}}]
                        },
                    },
                },
                outcome=Ready,
            ),
            Sample(
                of="poll",
                data={
                    "name": OPERATION,
                    "done": True,
                    "response": {
                        "generateVideoResponse": {"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": ["text"]}
                    },
                },
                outcome=Failed,
            ),
        ),
    )

    async def test_the_recorded_replies(self) -> None:
        """Each sample of the sheet is read as what it is; the id that is asked for is an operation's."""
        for sample in self.sheet.samples:
            it = self.sheet.rehearse()
            task = replace(it.task(**self.sheet.fields), remote_id=OPERATION)
            begin = it.adapter.submit if sample.of == "submit" else it.adapter.poll
            outcome = converse(begin(task), reply(sample.data, status=sample.status))[1]
            assert isinstance(outcome, sample.outcome), (sample, outcome)

    async def test_a_cancel_that_went_wrong(self) -> None:
        """There is no call that cancels an operation (fact sheet 6.3): what can go wrong is the poll in its place."""
        for fault in ("error=500", "html", "auth", "rate"):
            it = self.sheet.rehearse()
            task = await it.submitted(it.task(**self.sheet.fields))
            it.arm(f"poll-{fault}")
            outcome = await it.run(it.adapter.cancel(task))
            assert isinstance(outcome, Refused if fault in ("auth", "rate") else Trouble), (fault, outcome)


class TestOmni(AdapterContract):
    """
    What holds for every provider, of interactions.
    """

    sheet = Sheet(
        dialect="google",
        make=make,
        path="/v1beta",
        fields=OMNI,
        picture={"duration": 3, "model_version": "gemini-omni-1.2-flash"},
        words={
            "queued": Standing.WAITING,
            "in_progress": Standing.WORKING,
            "completed": Standing.DONE,
            **dict.fromkeys(("failed", "incomplete", "budget_exceeded"), Standing.FAILED),
            "cancelled": Standing.CANCELLED,
            **dict.fromkeys(("requires_action", "requires_continuation", "idle"), Standing.UNKNOWN),
        },
        create_codes=CREATE_CODES,
        job_codes=JOB_CODES,
        refused=(*REFUSED, ({"negative_prompt": "x"}, "negativePrompt"), ({"seed": 7}, "seed")),
        samples=(
            Sample(of="submit", data={**INTERACTION, "status": "in_progress"}, outcome=Accepted),
            Sample(of="poll", data={**INTERACTION, "status": "in_progress"}, outcome=StillRunning),
            Sample(
                of="poll",
                data={
                    **INTERACTION,
                    "status": "completed",
                    "steps": [
                        {
                            "type": "model_output",
                            "content": [
                                {
                                    "type": "video",
                                    "mime_type": "video/mp4",
                                    "uri": f"{HOST}/v1beta/files/f2:download?alt=media",
                                }
                            ],
                        }
                    ],
                },
                outcome=Ready,
            ),
        ),
    )


def _done(uri: str) -> dict[str, object]:
    samples = [{"video": {"uri": uri}}]
    return {"name": OPERATION, "done": True, "response": {"generateVideoResponse": {"generatedSamples": samples}}}


@pytest.mark.parametrize(
    ("uri", "asked", "with_key"),
    [
        (f"{HOST}/v1beta/files/f1:download?alt=media", f"{HOST}/v1beta/files/f1:download?alt=media", True),
        (f"{HOST}/v1/files/f1", f"{HOST}/v1beta/files/f1:download?alt=media", True),
        (f"{HOST}/v1alpha/files/f1", f"{HOST}/v1beta/files/f1:download?alt=media", True),
        ("https://storage.googleapis.com/b/o.mp4", "https://storage.googleapis.com/b/o.mp4", False),
        (f"{HOST}.evil.example/v1beta/files/f1", f"{HOST}.evil.example/v1beta/files/f1", False),
        (f"{HOST}/v1beta/files/../models", f"{HOST}/v1beta/files/../models", False),
    ],
)
def test_the_key_goes_with_googles_own_files_alone(uri, asked, with_key):
    """Any other address is fetched as it is."""
    adapter = make(AdapterSettings(now=FakeClock().now, key="key-canary"))
    task = replace(TestVeo.sheet.rehearse().task(), remote_id=OPERATION)
    ready = converse(adapter.poll(task), reply(_done(uri)))[1]
    assert isinstance(ready, Ready)
    request = adapter.download(task, ready.outputs[0])
    assert (request.url, dict(request.headers)) == (asked, {"x-goog-api-key": "key-canary"} if with_key else {})


def test_the_key_is_sent_as_google_wants_it():
    """In `x-goog-api-key`, never as a bearer; the version may be left out of the base address."""
    adapter = make(AdapterSettings(now=FakeClock().now, key="key-canary", base_url=f"{HOST}/"))
    requests, _ = converse(adapter.check(), reply({"models": []}))
    assert requests[0].url == f"{HOST}/v1beta/models?pageSize=1"
    assert requests[0].headers["x-goog-api-key"] == "key-canary"
    assert "Authorization" not in requests[0].headers


async def test_veo_pictures_stand_in_the_instance():
    """A first and a last frame, or references, as bytes beside their type; addresses are refused."""
    image = {"bytesBase64Encoded": base64.b64encode(PICTURE_BYTES).decode(), "mimeType": "image/png"}
    for roles, shown in (
        (("first_frame", "last_frame"), {"image": image, "lastFrame": image}),
        (("reference",), {"referenceImages": [{"image": image, "referenceType": "asset"}]}),
    ):
        it = TestVeo.sheet.rehearse()
        await it.submitted(it.task(references=tuple(Reference(asset=PICTURE.id, role=role) for role in roles)))
        body = json.loads(written(it.requests[0])[1])
        assert body == {"instances": [{"prompt": "a paper boat", **shown}], "parameters": {}}
    with pytest.raises(InvalidRequest, match="fetches none"):
        it.task(references=(Reference(url="https://x.example/a.png"),))


def test_extra_reaches_the_instance_and_the_parameters():
    """An earlier clip to go on with, and who may be shown; what is said already is refused."""
    it = TestVeo.sheet.rehearse()
    extra = {"instances": [{"video": {"uri": "files/f1"}}], "parameters": {"personGeneration": "allow_all"}}
    parameters = it.task(duration=8, extra=extra).parameters
    assert parameters["instances"] == [{"prompt": "a paper boat", "video": {"uri": "files/f1"}}]
    assert parameters["parameters"] == {"durationSeconds": 8, "personGeneration": "allow_all"}
    with pytest.raises(InvalidRequest):
        it.task(extra={"instances": [{"prompt": "another"}]})


@pytest.mark.parametrize("sheet", [TestVeo.sheet, TestOmni.sheet], ids=["veo", "omni"])
def test_two_spellings_of_a_prompt_are_one_request(sheet):
    """The prompt counts as typed text deep in the parameters too; another model is another request."""

    def counted(prompt, **fields):
        it = sheet.rehearse()
        traits, task = it.adapter.traits, it.task(prompt, **{**sheet.fields, **fields})
        return fingerprint(
            account="a",
            provider="google",
            parameters=task.parameters,
            pictures={},
            irrelevant=traits.irrelevant,
            prompts=traits.prompts,
        )

    assert counted(" a  paper boat ") == counted("a paper boat")
    assert counted("a paper boat") != counted("a paper ship")
    assert counted("a boat") != counted("a boat", model_version=f"{sheet.fields['model_version']}-b")
    assert counted("a boat", extra={"labels": {"a": "b"}}) == counted("a boat")


@pytest.mark.parametrize(
    ("roles", "task"),
    [
        ((), "text_to_video"),
        (("first_frame",), "image_to_video"),
        (("reference", "reference"), "reference_to_video"),
        (("first_frame", "reference"), None),
    ],
)
async def test_the_kind_of_an_interaction_follows_from_its_pictures(roles, task):
    """Where both kinds are given, the model is left to find out."""
    it = TestOmni.sheet.rehearse()
    references = tuple(Reference(asset=PICTURE.id, role=role) for role in roles)
    await it.submitted(it.task(model_version="gemini-omni-1.2-flash", references=references))
    body = json.loads(written(it.requests[0])[1])
    assert body.get("generation_config", {}).get("video_config", {}).get("task") == task
    (step,) = body["input"]
    assert step["type"] == "user_input"
    assert [one["type"] for one in step["content"]] == ["text", *["image"] * len(roles)]
    assert body["response_format"] == {"type": "video", "delivery": "uri"}
    assert body["background"] is True


def test_a_clip_inside_the_answer_is_taken_from_there():
    """It was paid for: the answer is asked for again, with the key, and the clip is taken from its place in it."""
    it = TestOmni.sheet.rehearse()
    film = {"type": "video", "mime_type": "video/mp4"}
    content = [
        "a remark",
        {"type": "text", "text": "here"},
        {**film, "uri": "https://storage.googleapis.com/b/o.mp4"},
        {**film, "data": "AAEC"},
        film,
    ]
    steps = [{"type": "thought", "content": [{**film, "data": "no"}]}, {"type": "model_output", "content": content}]
    told = {**INTERACTION, "status": "completed", "steps": steps}
    task = replace(it.task(**OMNI), remote_id="v1_abc")
    requests, ready = converse(it.adapter.poll(task), reply(told))
    assert requests[0].max_reply_bytes == CLIP_REPLY_BYTES
    assert isinstance(ready, Ready)
    away, inside = ready.outputs
    assert (away.url, away.inside) == ("https://storage.googleapis.com/b/o.mp4", None)
    assert inside.inside == "/steps/1/content/3/data"
    request = it.adapter.download(task, inside)
    assert request.url.endswith("/v1beta/interactions/v1_abc")
    assert request.headers["x-goog-api-key"]
    assert request.unwrap is not None
    assert request.unwrap(reply(told).body) == b"\x00\x01\x02"
    assert request.unwrap(reply({**told, "steps": steps[:1]}).body) is None
    assert it.adapter.download(task, away).unwrap is None


def test_a_clip_inside_an_operation_is_taken_from_there():
    """Veo's answers name an address, but their type knows the clip itself too."""
    it = TestVeo.sheet.rehearse()
    samples = ["a remark", {"video": {"uri": "https://storage.googleapis.com/b/o.mp4", "encodedVideo": "no"}}]
    samples += [{"video": {"encodedVideo": "AAEC", "encoding": "video/mp4"}}, {"video": {}}]
    name = "models/veo-3.1-generate-preview/operations/abc"
    told = {"name": name, "done": True, "response": {"generateVideoResponse": {"generatedSamples": samples}}}
    task = replace(it.task(**VEO), remote_id=name)
    requests, ready = converse(it.adapter.poll(task), reply(told))
    assert requests[0].max_reply_bytes == CLIP_REPLY_BYTES
    assert isinstance(ready, Ready)
    away, inside = ready.outputs
    assert (away.url, away.inside) == ("https://storage.googleapis.com/b/o.mp4", None)
    request = it.adapter.download(task, inside)
    assert request.url.endswith(f"/v1beta/{name}")
    assert request.headers["x-goog-api-key"]
    assert request.unwrap is not None
    assert request.unwrap(reply(told).body) == b"\x00\x01\x02"


@pytest.mark.parametrize(("sheet", "fields"), [(TestOmni.sheet, OMNI), (TestVeo.sheet, VEO)])
async def test_a_clip_that_comes_inside_a_later_answer_is_whole(sheet, fields):
    """The pretend provider sends it so, although its address was asked for."""
    it = sheet.rehearse()
    task = await it.submitted(it.task(**fields))
    await it.clock.advance(60)
    it.arm("poll-inline:2")
    ready = await it.poll(task)
    (output,) = ready.outputs
    request = it.adapter.download(task, output)
    film = request.unwrap((await it.send(request)).body)
    assert film is not None
    assert film[4:8] == b"ftyp"
    assert request.unwrap((await it.send(request)).body) is None


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ([{"type": "model_output", "content": [{"type": "text", "text": "I would rather not."}]}], Failed),
        ([{"type": "thought", "content": [{"type": "text", "text": "a boat"}]}], Trouble),
        ([], Trouble),
        (None, Trouble),
    ],
)
def test_words_in_place_of_a_clip_end_the_task(steps, outcome):
    """The model may answer without a film; an answer that shows no output at all is asked for again."""
    it = TestOmni.sheet.rehearse()
    told = {**INTERACTION, "status": "completed", "steps": steps}
    seen = converse(it.adapter.poll(replace(it.task(**OMNI), remote_id="v1_abc")), reply(told))[1]
    assert isinstance(seen, outcome)
    if isinstance(seen, Failed):
        assert "I would rather not." in seen.problem.detail


def _refusal(*details: dict[str, object], message: str = "You exceeded your current quota") -> dict[str, object]:
    return {"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": list(details)}}


@pytest.mark.parametrize(
    ("told", "headers", "scope", "reason", "wait"),
    [
        (_refusal(), {}, "calls", "rate", None),
        (_refusal({"retryDelay": "34.07s"}), {}, "calls", "rate", 34.07),
        (_refusal({"retryDelay": "34s"}), {"retry-after": "50"}, "calls", "rate", 50.0),
        (_refusal({"retryDelay": "soon"}), {}, "calls", "rate", None),
        (_refusal({"violations": [{"quotaId": "RequestsPerDayPerProject"}]}), {}, "creates", "balance", None),
        (_refusal(message="Your project has exceeded its spend limit"), {}, "creates", "balance", None),
    ],
)
def test_a_limit_is_of_calls_or_of_money(told, headers, scope, reason, wait):
    """A limit of a day or of money stops creates alone; the delay that is told is kept."""
    it = TestVeo.sheet.rehearse()
    outcome = converse(it.adapter.submit(it.task()), reply(told, status=429, headers=headers))[1]
    assert isinstance(outcome, Refused)
    assert (outcome.scope, outcome.reason, outcome.retry_after) == (scope, reason, wait)


async def test_a_key_that_is_none_is_the_accounts_matter():
    """Google answers 400 INVALID_ARGUMENT to it, and says in the details what it means."""
    it = TestVeo.sheet.rehearse()
    it.arm("create-auth")
    outcome = await it.run(it.adapter.submit(it.task()))
    assert isinstance(outcome, Refused)
    assert outcome.reason == "auth"


async def test_veo_runs_on_and_an_interaction_is_stopped():
    """What can be cancelled is, and nothing is claimed of what cannot."""
    for sheet, outcome, state in (
        (TestVeo.sheet, CancelOutcome.UNSUPPORTED, "working"),
        (TestOmni.sheet, CancelOutcome.STOPPED, "stopped"),
    ):
        it = sheet.rehearse()
        task = await it.submitted(it.task(**sheet.fields))
        await it.clock.advance(10)
        assert await it.run(it.adapter.cancel(task)) == Cancelled(outcome=outcome)
        assert next(iter(it.engine.ledger.jobs.values())).state == state


async def test_a_cancel_that_is_only_taken_is_asked_again():
    """Until the interaction says that it is cancelled, nothing is claimed."""
    it = TestOmni.sheet.rehearse()
    task = replace(it.task(**OMNI), remote_id="v1_abc")
    for status, outcome in (("in_progress", Trouble), ("completed", CancelTooLate), ("cancelled", Cancelled)):
        seen = converse(it.adapter.cancel(task), reply({**INTERACTION, "status": status}))[1]
        assert isinstance(seen, outcome), status


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("code", ["RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "PERMISSION_DENIED"])
def test_a_5xx_never_proves_that_nothing_was_made(status, code):
    """Whatever word comes with it: a create that is sent again could be paid twice."""
    it = TestVeo.sheet.rehearse()
    told = {"error": {"code": status, "status": code, "message": "no"}}
    assert isinstance(converse(it.adapter.submit(it.task()), reply(told, status=status))[1], Unknown)


@pytest.mark.parametrize("model", ["veo 3", "veo/../../files", "veo?x=1", "veo:x", "../v1", "", "models/"])
def test_a_model_that_is_none_is_refused(model):
    """It stands in the address, which nothing else must come into."""
    it = TestVeo.sheet.rehearse()
    if model:
        with pytest.raises(InvalidRequest) as refused:
            it.task(model_version=model)
        assert refused.value.field == "modelVersion"
    named = it.task(model_version="models/veo-3.1-fast-generate-preview").parameters
    assert named == it.task(model_version="veo-3.1-fast-generate-preview").parameters


@pytest.mark.parametrize(
    ("sheet", "told"),
    [(TestVeo.sheet, {"name": "v1_abc"}), (TestOmni.sheet, {"id": OPERATION, "status": "queued"})],
    ids=["veo", "omni"],
)
def test_an_id_of_the_other_kind_is_none(sheet, told):
    """It would be asked for at the wrong place, and then be taken for gone."""
    it = sheet.rehearse()
    assert isinstance(converse(it.adapter.submit(it.task(**sheet.fields)), reply(told))[1], Unknown)


def test_no_word_of_an_answer_is_shown_as_it_is():
    """Neither the key nor what steers a terminal, in whatever field of it they stand."""
    it = TestOmni.sheet.rehearse()
    content = [{"type": "text", "text": "key-canary\u001b[2J"}]
    told = {"id": "key-canary\u001b[2J", "status": "completed", "steps": [{"type": "model_output", "content": content}]}
    seen = converse(it.adapter.poll(replace(it.task(**OMNI), remote_id="v1_abc")), reply(told))[1]
    assert isinstance(seen, Failed)
    error = {"error": {"code": 400, "status": "key-canary\u001b[2J", "message": "no"}}
    refused = converse(it.adapter.submit(it.task(**OMNI)), reply(error, status=400))[1]
    assert isinstance(refused, Failed)
    for detail in (seen.problem.detail, refused.problem.detail):
        assert "key-canary" not in detail
        assert "\u001b" not in detail


@pytest.mark.parametrize("extra", [{"store": False}, {"stream": True}])
def test_a_clip_that_could_not_be_asked_for_again_is_not_paid(extra):
    """What Google does not keep, or tells in a stream alone, would be lost."""
    with pytest.raises(InvalidRequest) as refused:
        TestOmni.sheet.rehearse().task(**OMNI, extra=extra)
    assert refused.value.field in extra
    assert TestOmni.sheet.rehearse().task(**OMNI, extra={"store": True}).parameters["store"] is True


@pytest.mark.parametrize("message", ["API key not valid. Please pass a valid API key.", "API key expired."])
def test_interactions_tell_a_wrong_key_by_words_alone(message):
    """Their errors have no details; the key is the account's matter all the same."""
    it = TestOmni.sheet.rehearse()
    told = {"error": {"code": "invalid_argument", "message": message}}
    outcome = converse(it.adapter.submit(it.task(**OMNI)), reply(told, status=400))[1]
    assert isinstance(outcome, Refused)
    assert outcome.reason == "auth"
