"""
Zhipu and Z.ai, held against their fact sheet and the pretend provider in their words.
"""

import json
from dataclasses import replace

import pytest

from vidrelay.core.adapter import Dedupe, NotThere, Refused, Trouble, Undecided, Unknown
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Accepted, Failed, Ready, StillRunning
from vidrelay.core.task import Reference
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.providers.zhipu.adapter import make
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE
from vidrelay.testing.sheet import Sample, Sheet

RUNNING = {"model": "cogvideox-3", "task_status": "PROCESSING", "request_id": "relay-01J9"}
FILE = {"url": "https://sfile.chatglm.cn/o.mp4", "cover_image_url": "https://sfile.chatglm.cn/c.png"}


class TestZhipu(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="zhipu",
        make=make,
        path="/api/paas/v4",
        key="id.key-canary",
        fields={"duration": 5, "resolution": "1080p", "aspect_ratio": "9:16", "model_version": "cogvideox-3"},
        picture={"duration": 10},
        words={"PROCESSING": Standing.UNKNOWN, "SUCCESS": Standing.DONE, "FAIL": Standing.FAILED},
        create_codes={
            **dict.fromkeys(("1000", "1001", "1002", "1003", "1004", "1005"), Meaning.AUTH),
            **dict.fromkeys(("1110", "1111", "1112", "1121"), Meaning.AUTH),
            **dict.fromkeys(("1113", "1304", "1308", "1310"), Meaning.BALANCE),
            **dict.fromkeys(("1210", "1211", "1212", "1213", "1214", "1215", "1261"), Meaning.REJECTED),
            **dict.fromkeys(("1220", "1221", "1222"), Meaning.REJECTED),
            **dict.fromkeys(("1200", "1230", "1234", "1231"), Meaning.AGAIN),
            **dict.fromkeys(("1300", "1301"), Meaning.MODERATED),
            "1302": Meaning.WINDOW,
            **dict.fromkeys(("1303", "1305", "1312"), Meaning.RATE),
        },
        refused=(
            ({"seed": 7}, "seed"),
            ({"negative_prompt": "rain"}, "negativePrompt"),
            ({"style_preset": "anime"}, "stylePreset"),
            ({"duration": 7}, "duration"),
            ({"resolution": "480p"}, "resolution"),
            ({"aspect_ratio": "21:9"}, "aspectRatio"),
            ({"model_version": "viduq1-text"}, "resolution"),
        ),
        samples=(
            Sample(
                of="submit",
                data={"id": "8868902201637896192", **RUNNING},
                outcome=Accepted,
            ),
            # An id that comes as a number is one.
            Sample(of="submit", data={"id": 8868902201637896192, **RUNNING}, outcome=Accepted),
            Sample(of="poll", data=RUNNING, outcome=StillRunning),
            Sample(of="poll", data={**RUNNING, "task_status": "SUCCESS", "video_result": [FILE]}, outcome=Ready),
            Sample(
                of="submit",
                data={"error": {"code": "1302", "message": "rate limit reached"}},
                status=429,
                outcome=Refused,
            ),
            # Asked about by its id alone, it is the job's own content that is refused.
            Sample(of="poll", data={"error": {"code": "1301", "message": "unsafe"}}, status=400, outcome=Failed),
            Sample(
                of="poll",
                data={**RUNNING, "error": {"code": "1301", "message": "unsafe"}},
                outcome=Trouble,
            ),
            Sample(of="poll", data={"error": {"code": "1214", "message": "no"}}, status=400, outcome=NotThere),
        ),
    )

    async def test_every_create_has_an_id_of_ours(self) -> None:
        """A repeat of it is told, and says that the job exists: nobody is told that nothing was made."""
        it = self.sheet.rehearse()
        task = it.task(**self.sheet.fields)
        await it.submitted(task)
        sent = it.requests[0].body
        assert isinstance(sent, bytes)
        assert json.loads(sent)["request_id"] == task.submission_key
        assert isinstance(await it.run(it.adapter.submit(task)), Unknown)
        assert len(it.engine.jobs) == 1
        await it.submitted(replace(task, submission_key="another"))

    async def test_an_id_that_is_null_is_none(self) -> None:
        """SDKs send what was not set as null: our own id takes its place."""
        it = self.sheet.rehearse()
        task = it.task(**self.sheet.fields, extra={"request_id": None})
        await it.submitted(task)
        sent = it.requests[0].body
        assert isinstance(sent, bytes)
        assert json.loads(sent)["request_id"] == task.submission_key

    async def test_an_id_of_the_users_own_that_was_used_before_is_refused(self) -> None:
        """An older request had it, and this one was never tried before; tried again, it may be its own first try."""
        it = self.sheet.rehearse(window=5)
        await it.submitted(it.task(**self.sheet.fields, extra={"request_id": "mine"}))
        other = it.task("another", **self.sheet.fields, extra={"request_id": "mine"})
        refused = await it.run(it.adapter.submit(replace(other, attempts=1)))
        assert isinstance(refused, Failed)
        assert refused.problem.code == "rejected"
        assert "1231" in refused.problem.detail
        assert isinstance(await it.run(it.adapter.submit(replace(other, attempts=2))), Unknown)
        ours = replace(it.task(**self.sheet.fields), attempts=1)
        await it.submitted(ours)
        assert isinstance(await it.run(it.adapter.submit(ours)), Unknown)

    async def test_a_lost_create_is_left_to_a_person(self) -> None:
        """Nothing is asked, for nothing could be learnt, and why is said."""
        it = self.sheet.rehearse()
        assert it.adapter.traits.dedupe is Dedupe.NONE
        found = await it.find(it.task(**self.sheet.fields))
        assert isinstance(found, Undecided)
        assert "request_id" in found.detail
        assert not it.requests

    async def test_waiting_and_work_are_one_word(self) -> None:
        """So neither is claimed."""
        it = self.sheet.rehearse()
        task = await it.submitted(it.task(**self.sheet.fields))
        for _ in range(2):
            assert await it.poll(task) == StillRunning()
            await it.clock.advance(10)

    async def test_a_failure_may_say_why(self) -> None:
        """Where a code comes along, it counts."""
        it = self.sheet.rehearse()
        task = await it.submitted(it.task(**self.sheet.fields))
        told = {**RUNNING, "task_status": "FAIL", "error": {"code": 1301, "message": "unsafe"}}
        seen = converse(it.adapter.poll(task), reply(told))[1]
        assert isinstance(seen, Failed)
        assert seen.problem.code == "moderated"

    async def test_arrears_are_no_rate_limit(self) -> None:
        """Both come with 429; the code tells them apart."""
        it = self.sheet.rehearse()
        for code, reason in (("1113", "balance"), ("1302", "window"), ("1305", "rate")):
            error = reply({"error": {"code": code, "message": "no"}}, status=429)
            outcome = converse(it.adapter.submit(it.task(**self.sheet.fields)), error)[1]
            assert isinstance(outcome, Refused)
            assert outcome.reason == reason

    async def test_the_seconds_of_a_model_that_nobody_told_us_of(self) -> None:
        """5 or 10 are CogVideoX's; of others the provider judges."""
        it = self.sheet.rehearse()
        assert it.task(model_version="newvideo-1", duration=8).parameters["duration"] == 8

    async def test_two_frames_are_a_list(self) -> None:
        """One picture is the first frame, two are both ends; Vidu's models say in their names what they take."""
        it = self.sheet.rehearse()
        frames = tuple(Reference(asset=PICTURE.id, role=role) for role in ("first_frame", "last_frame"))
        assert isinstance(it.task(references=frames[:1]).parameters["image_url"], dict)
        both = it.task(references=frames)
        assert len(both.parameters["image_url"]) == 2
        await it.submitted(both)
        assert next(iter(it.engine.jobs.values())).pictures == 2
        vidu = it.task(references=frames[:1], model_version="viduq1-image", style_preset="anime", aspect_ratio="1:1")
        assert (vidu.parameters["style"], vidu.parameters["aspect_ratio"]) == ("anime", "1:1")
        for model, given in (("viduq1-text", frames[:1]), ("viduq1-image", frames), ("cogvideox-3", frames[1:])):
            with pytest.raises(InvalidRequest):
                it.task(references=given, model_version=model)


@pytest.mark.parametrize(
    ("dialect", "host"), [(None, "open.bigmodel.cn"), ("zhipu", "open.bigmodel.cn"), ("zai", "api.z.ai")]
)
def test_the_house_is_a_dialect(dialect: str | None, host: str) -> None:
    """Zhipu and Z.ai differ in their host alone."""
    adapter = make(AdapterSettings(now=FakeClock().now, dialect=dialect))
    assert adapter.base == f"https://{host}/api/paas/v4"
