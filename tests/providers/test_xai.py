"""
xAI's Grok Imagine, held against its fact sheet and the pretend provider in its words.
"""

from dataclasses import replace

import pytest

from vidrelay.core.adapter import Refused, Trouble
from vidrelay.core.lifecycle import Accepted, Failed, Ready, StillRunning
from vidrelay.core.task import Reference
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.providers.xai.adapter import make
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE
from vidrelay.testing.sheet import Sample, Sheet

FIELDS = {"duration": 8, "aspect_ratio": "16:9", "resolution": "720p", "model_version": "grok-imagine-video-1.5"}


class TestXai(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="xai",
        make=make,
        path="/v1",
        fields=FIELDS,
        picture={"duration": 5},
        words={
            # One word for waiting and working.
            "pending": Standing.UNKNOWN,
            "done": Standing.DONE,
            "failed": Standing.FAILED,
            "expired": Standing.EXPIRED,
        },
        create_codes={
            **dict.fromkeys(("400", "404", "422"), Meaning.REJECTED),
            **dict.fromkeys(("401", "403"), Meaning.AUTH),
            "429": Meaning.RATE,
            **dict.fromkeys(("500", "502", "503"), Meaning.AGAIN),
        },
        job_codes={"moderation_blocked": Meaning.MODERATED, "internal_error": Meaning.AGAIN},
        refused=(
            ({"negative_prompt": "x"}, "negativePrompt"),
            ({"seed": 7}, "seed"),
            ({"duration": 16}, "duration"),
            ({"aspect_ratio": "21:9"}, "aspectRatio"),
            ({"resolution": "4k"}, "resolution"),
            ({"resolution": "1080p", "model_version": "grok-imagine-video"}, "resolution"),
        ),
        samples=(
            Sample(of="submit", data={"request_id": "d97415a1-5796-b7ec-379f-4e6819e08fdf"}, outcome=Accepted),
            Sample(of="poll", data=b"", outcome=StillRunning, status=202),
            Sample(of="poll", data={"status": "pending", "progress": 30}, outcome=StillRunning),
            Sample(
                of="poll",
                data={
                    "status": "done",
                    "progress": 100,
                    "model": "grok-imagine-video",
                    "usage": {"cost_in_usd_ticks": 4000000000},
                    "video": {"url": "https://vidgen.x.ai/x/y.mp4", "duration": 8, "respect_moderation": True},
                },
                outcome=Ready,
            ),
            Sample(
                of="poll",
                data={"status": "done", "video": {"url": "", "duration": 8, "respect_moderation": False}},
                outcome=Failed,
            ),
            Sample(of="poll", data={"status": "expired"}, outcome=Failed),
            # An empty answer is a pending job with 202 alone.
            Sample(of="poll", data=b"", outcome=Trouble, status=200),
        ),
    )


def test_what_moderation_keeps_back_needs_no_status():
    """As a clip needs none."""
    it = TestXai.sheet.rehearse()
    told = {"model": "grok-imagine-video", "video": {"url": "", "respect_moderation": False}}
    seen = converse(it.adapter.poll(replace(it.task(), remote_id="1")), reply(told))[1]
    assert isinstance(seen, Failed)
    assert seen.problem.code == "moderated"


async def test_a_clip_that_moderation_keeps_back_is_moderated():
    """It is done, billed, and has no address."""
    it = TestXai.sheet.rehearse()
    task = await it.submitted(it.task("[moderated] a boat"))
    await it.clock.advance(60)
    seen = await it.poll(task)
    assert isinstance(seen, Failed)
    assert (seen.problem.code, "billed" in seen.problem.detail) == ("moderated", True)


async def test_progress_is_told_while_it_is_worked_on():
    """Nothing while it waits (202, no body), then a share."""
    it = TestXai.sheet.rehearse()
    task = await it.submitted(it.task())
    assert await it.poll(task) == StillRunning()
    await it.clock.advance(15)
    assert await it.poll(task) == StillRunning(progress=0.5)


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("form", ["object", "flat"])
def test_an_error_that_names_credits_pauses_creates(status, form):
    """In either of the two forms that errors have."""
    text = "Your team has used all available credits"
    told = {"error": {"message": text, "type": "x", "code": "y"}} if form == "object" else {"code": "y", "error": text}
    it = TestXai.sheet.rehearse()
    outcome = converse(it.adapter.submit(it.task()), reply(told, status=status))[1]
    assert isinstance(outcome, Refused)
    assert (outcome.scope, outcome.reason) == ("creates", "balance")


def test_a_key_that_is_blocked_is_refused_by_the_check():
    """The call answers 200 and says so."""
    adapter = TestXai.sheet.rehearse().adapter
    outcome = converse(adapter.check(), reply({"api_key_blocked": True, "team_blocked": False}))[1]
    assert isinstance(outcome, Refused)
    assert outcome.reason == "auth"


async def test_frames_and_references_each_have_their_field():
    """A first and a last frame, references, by bytes or by address."""
    it = TestXai.sheet.rehearse()
    roles = ("first_frame", "last_frame", "reference", "reference")
    task = it.task(references=tuple(Reference(asset=PICTURE.id, role=role) for role in roles))
    assert {"image", "last_frame", "reference_images"} <= set(task.parameters)
    await it.submitted(task)
    assert next(iter(it.engine.jobs.values())).pictures == 4
    # No document says that a last frame needs a first one.
    alone = it.task(references=(Reference(asset=PICTURE.id, role="last_frame"),))
    assert set(alone.parameters) == {"model", "prompt", "last_frame"}


def test_no_address_and_no_word_of_moderation_is_asked_again():
    """What is not told is not made up."""
    it = TestXai.sheet.rehearse()
    task = replace(it.task(), remote_id="1")
    assert isinstance(converse(it.adapter.poll(task), reply({"status": "done", "video": {}}))[1], Trouble)


@pytest.mark.parametrize(
    "told",
    [
        {"model": "grok-imagine-video", "video": {"url": "https://vidgen.x.ai/x/y.mp4", "duration": 8}},
        {"status": None, "video": {"url": "https://vidgen.x.ai/x/y.mp4"}},
        {"status": "done", "video": {"file_output": {"public_url": "https://vidgen.x.ai/x/y.mp4"}}},
    ],
)
def test_a_clip_that_is_there_is_fetched(told):
    """Without a status, as xAI's clients take it; and where only its copy in xAI's store has an address."""
    it = TestXai.sheet.rehearse()
    seen = converse(it.adapter.poll(replace(it.task(), remote_id="1")), reply(told))[1]
    assert isinstance(seen, Ready)
    assert [one.url for one in seen.outputs] == ["https://vidgen.x.ai/x/y.mp4"]


@pytest.mark.parametrize(
    "text", ["Incorrect API key provided: ba***na.", "Incorrect%20API%20key%20provided:%20ba***na."]
)
def test_a_key_that_is_none_is_the_accounts_matter(text):
    """It has been seen as a 400: the tasks must not end for it."""
    told = {"code": "Client specified an invalid argument", "error": text}
    it = TestXai.sheet.rehearse()
    for conversation in (it.adapter.submit(it.task()), it.adapter.poll(replace(it.task(), remote_id="1"))):
        outcome = converse(conversation, reply(told, status=400))[1]
        assert isinstance(outcome, Refused)
        assert outcome.reason == "auth"


@pytest.mark.parametrize(
    ("status", "told", "outcome"),
    [
        (400, {"code": "Client specified an invalid argument", "error": "Generated video rejected by moderation."}, 0),
        (400, {"error": {"code": "imagine:content-moderated", "message": "Generated video rejected."}}, 0),
        (400, {"code": "Client specified an invalid argument", "error": "not yet"}, 1),
        (500, {"code": "internal", "error": "content moderation is down"}, 1),
        (400, b"<html>moderation</html>", 1),
    ],
)
def test_moderation_ends_a_job_that_is_asked_for(status, told, outcome):
    """Asking again for hours would change nothing, and would hold its place; other errors end no paid job."""
    it = TestXai.sheet.rehearse()
    seen = converse(it.adapter.poll(replace(it.task(), remote_id="1")), reply(told, status=status))[1]
    assert isinstance(seen, (Failed, Trouble)[outcome])
    assert isinstance(seen, Trouble) or seen.problem.code == "moderated"
