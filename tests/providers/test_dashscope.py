"""
DashScope, held against its fact sheet and the pretend provider in its words.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vidrelay.core.adapter import Copied, NotThere, Refused, Search, Trouble, Undecided, Unknown
from vidrelay.core.errors import InvalidRequest, OutboundRefused
from vidrelay.core.lifecycle import Absent, Accepted, Cancelled, Failed, Found, Ready, StillRunning
from vidrelay.core.task import CancelOutcome, Reference, Task
from vidrelay.providers.dashscope.adapter import make
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE, Broken, Rehearsal
from vidrelay.testing.sheet import Sample, Sheet
from vidrelay.transport.gate import Gate

NEW = {"duration": 5, "resolution": "720p", "aspect_ratio": "16:9", "seed": 7, "model_version": "wan2.7-t2v"}
SEEDLESS = {name: value for name, value in NEW.items() if name != "seed"}
"""A task shows its prompt in the end, and never its seed."""
SUBMITTED = "2026-11-01 10:00:00.100"
DONE = {
    "request_id": "r-3",
    "output": {
        "task_id": "13b1848b-5493",
        "task_status": "SUCCEEDED",
        "submit_time": SUBMITTED,
        "scheduled_time": "2026-11-01 10:00:04.200",
        "end_time": "2026-11-01 10:02:30.000",
        "orig_prompt": "a cat",
        "video_url": "https://dashscope-result-bj.oss-cn-beijing.aliyuncs.com/o.mp4?Expires=1764566400",
    },
    "usage": {"video_count": 1, "video_duration": 5},
}


class TestDashScope(AdapterContract):
    """
    What holds for every provider.
    """

    sheet = Sheet(
        dialect="dashscope",
        make=make,
        path="/api/v1",
        fields={**NEW, "negative_prompt": "rain"},
        picture={"duration": 5, "model_version": "wan2.7-i2v"},
        words={
            "PENDING": Standing.WAITING,
            "SUSPENDED": Standing.WAITING,
            "RUNNING": Standing.WORKING,
            "SUCCEEDED": Standing.DONE,
            "FAILED": Standing.FAILED,
            "CANCELED": Standing.CANCELLED,
        },
        create_codes={
            "InvalidApiKey": Meaning.AUTH,
            **dict.fromkeys(("AccessDenied", "AccessDenied.Unpurchased", "Model.AccessDenied"), Meaning.REJECTED),
            **dict.fromkeys(("InvalidParameter", "InvalidParameter.DataInspection"), Meaning.REJECTED),
            **dict.fromkeys(("Model.NotExist", "ModelNotFound"), Meaning.REJECTED),
            "DataInspectionFailed": Meaning.MODERATED,
            "Arrearage": Meaning.BALANCE,
            **dict.fromkeys(("Throttling", "Throttling.RateQuota", "Throttling.AllocationQuota"), Meaning.RATE),
            **dict.fromkeys(("InternalError", "ServiceUnavailable", "GatewayTimeout"), Meaning.AGAIN),
        },
        job_codes={
            "DataInspectionFailed": Meaning.MODERATED,
            "InvalidParameter": Meaning.REJECTED,
            "InternalError": Meaning.AGAIN,
        },
        refused=(
            ({"style_preset": "anime"}, "stylePreset"),
            ({"resolution": "2K"}, "resolution"),
            ({"duration": 16}, "duration"),
            ({"duration": 1}, "duration"),
            ({"seed": 2**31}, "seed"),
            ({"model_version": "wan3.0-video"}, "negativePrompt"),
            ({"model_version": "wan2.6-i2v"}, "aspectRatio"),
            ({"model_version": "wan2.6-t2v", "aspect_ratio": "21:9"}, "aspectRatio"),
            ({"model_version": "wan2.6-t2v", "references": (Reference(asset=PICTURE.id),)}, "references[0].role"),
            ({"references": (Reference(asset=PICTURE.id),)}, "references[0].role"),
        ),
        samples=(
            Sample(
                of="submit",
                data={"request_id": "r-1", "output": {"task_id": "13b1848b-5493", "task_status": "PENDING"}},
                outcome=Accepted,
            ),
            Sample(
                of="poll",
                data={"output": {"task_id": "1", "task_status": "RUNNING", "submit_time": SUBMITTED}},
                outcome=StillRunning,
            ),
            Sample(of="poll", data=DONE, outcome=Ready),
            Sample(of="poll", data={"output": {"task_id": "1", "task_status": "UNKNOWN"}}, outcome=NotThere),
            Sample(
                of="submit",
                data={"code": "Throttling.RateQuota", "message": "slow down", "request_id": "r-4"},
                outcome=Refused,
            ),
            Sample(of="submit", data={"code": "Arrearage", "message": "pay", "output": {}}, outcome=Refused),
            Sample(of="submit", data={"code": "Odd", "message": "what", "request_id": "r-4"}, outcome=Unknown),
        ),
    )

    async def test_a_lost_create(self) -> None:
        """A task shows its prompt only when it has ended, so the lost one is a candidate first, and found then."""
        it = self.sheet.rehearse()
        task = it.task(**SEEDLESS)
        it.arm("create-drop-after")
        with pytest.raises(Broken):
            await it.run(it.adapter.submit(task))
        (made,) = it.engine.jobs
        first = await it.find(task)
        assert isinstance(first, Undecided)
        assert first.candidates == (made,)
        await it.clock.advance(60)
        found = await it.find(task, elapsed=60.0)
        assert isinstance(found, Found)
        assert found.remote_id == made
        assert found.times.completed_at is None
        assert not isinstance(await it.find(task, owned=frozenset({made}), elapsed=60.0), Found)

    async def test_two_jobs_that_can_be_it_are_left_to_a_person(self) -> None:
        """Equal prompts of the same model and moment cannot be told apart, ended or not."""
        it = self.sheet.rehearse(window=5)
        task = it.task(**SEEDLESS)
        for _ in range(2):
            await it.submitted(task)
        for elapsed in (0.0, 60.0):
            found = await it.find(task, elapsed=elapsed)
            assert isinstance(found, Undecided)
            assert len(found.candidates) == 2
            await it.clock.advance(60)

    async def test_pictures_are_never_shown(self) -> None:
        """Of two creates of one prompt and two pictures that were lost, the one that arrived is told to a person."""
        it = self.sheet.rehearse()
        one, other = (Reference(url=f"https://x.example/{name}.png", role="first_frame") for name in "ab")
        arrived = await it.submitted(it.task(references=(one,), model_version="wan2.7-i2v"))
        await it.clock.advance(60)
        await self._is_left_to_a_person(it, arrived, it.task(references=(other,), model_version="wan2.7-i2v"))

    async def test_seeds_are_never_shown(self) -> None:
        """Nor which of several seeds of one prompt has arrived."""
        it = self.sheet.rehearse()
        arrived = await it.submitted(it.task(**{**NEW, "seed": 1}))
        await it.clock.advance(60)
        await self._is_left_to_a_person(it, arrived, it.task(**{**NEW, "seed": 2}))

    async def _is_left_to_a_person(self, it: Rehearsal, arrived: Task, other: Task) -> None:
        for task in (other, arrived):
            search = Search(
                sent_at=arrived.created_at,
                lost_at=arrived.created_at,
                elapsed=60.0,
                lost_ago=60.0,
                owned=frozenset(),
            )
            found = await it.run(it.adapter.find(task, search))
            assert isinstance(found, Undecided)
            assert found.candidates == (arrived.remote_id,)

    async def test_a_picture_for_an_older_model_may_not_be_small(self) -> None:
        """360 pixels a side at least; of the newer ones nothing is told."""
        it = self.sheet.rehearse()
        asset = replace(PICTURE, id="sha256:" + "cd" * 32, width=300, height=400)
        references = (Reference(asset=asset.id, role="first_frame"),)
        with pytest.raises(InvalidRequest) as refusal:
            it.task(references=references, assets={asset.id: asset}, model_version="wan2.6-i2v")
        assert refusal.value.field == "references[0]"
        it.task(references=references, assets={asset.id: asset}, model_version="wan3.0-video")

    async def test_the_prompt_that_a_family_takes(self) -> None:
        """20 000 characters in the newest, 5000 in Wan's others; those of other houses judge for themselves."""
        it = self.sheet.rehearse()
        for model in ("wan3.0-video", "MiniMax/MiniMax-H3"):
            it.task("x" * 20_000, model_version=model)
        with pytest.raises(InvalidRequest):
            it.task("x" * 5001, model_version="wan2.7-t2v")

    async def test_a_list_that_lags(self) -> None:
        """What is not listed yet is not absent; later it is found."""
        it = self.sheet.rehearse(list_lag=60.0)
        task = it.task(**SEEDLESS)
        await it.submitted(task)
        assert (await it.find(task)).candidates == ()
        await it.clock.advance(61)
        assert isinstance(await it.find(task, elapsed=61.0), Found)

    async def test_another_prompt_is_not_it(self) -> None:
        """Same model, same moment, another prompt: nobody claims it, and absence is not claimed either."""
        it = self.sheet.rehearse()
        await it.submitted(it.task("a steel ship", **SEEDLESS))
        task = it.task(**SEEDLESS)
        await it.clock.advance(60)
        found = await it.find(task, elapsed=60.0)
        assert isinstance(found, Undecided)
        assert not isinstance(found, Absent)
        assert not found.candidates

    async def test_a_time_of_another_zone_still_names_a_candidate(self) -> None:
        """That times are China's is not documented: a person is told of a job that was made then by world time."""
        it = self.sheet.rehearse()
        task, now = it.task(**SEEDLESS), datetime(2026, 11, 1, 12, tzinfo=UTC)
        search = Search(sent_at=now, lost_at=now, elapsed=60.0, lost_ago=60.0, owned=frozenset())
        row = {"task_id": "1", "task_status": "SUCCEEDED", "submit_time": "2026-11-01 12:00:01.000"}
        listed = reply({"page_no": 1, "page_size": 100, "total": 1, "data": [row]})
        told = {**row, "orig_prompt": task.request.prompt}
        found = converse(it.adapter.find(task, search), listed, reply({"output": told}))[1]
        assert isinstance(found, Undecided)
        assert found.candidates == ("1",)
        late = {**row, "submit_time": "9999-12-31 23:59:59.000"}
        assert not converse(it.adapter.find(task, search), reply({"data": [late]}))[1].candidates

    async def test_a_page_that_is_shorter_than_was_asked_for_is_not_the_last(self) -> None:
        """Where the list tells that there is more of it, a second job of that prompt may stand there."""
        it = self.sheet.rehearse()
        task, now = it.task(**SEEDLESS), datetime(2026, 11, 1, 12, tzinfo=UTC)
        search = Search(sent_at=now, lost_at=now, elapsed=60.0, lost_ago=60.0, owned=frozenset())
        rows = [
            {"task_id": name, "task_status": "SUCCEEDED", "submit_time": "2026-11-01 20:00:01.000"} for name in "12"
        ]
        pages = [reply({"page_size": 1, "total": 2, "data": [row]}) for row in rows]
        told = [reply({"output": {**row, "orig_prompt": task.request.prompt}}) for row in rows]
        found = converse(it.adapter.find(task, search), *pages, *told)[1]
        assert isinstance(found, Undecided)
        assert found.candidates == ("1", "2")

    async def test_a_list_that_is_wrapped_is_read_too(self) -> None:
        """The SDK takes one in `output` as well."""
        it = self.sheet.rehearse()
        task = replace(it.task(**SEEDLESS), remote_id="1")
        listed = reply({"output": {"total": 1, "tasks": [{"task_id": "1", "task_status": "RUNNING"}]}})
        told = converse(it.adapter.poll_many([task]), listed)[1]
        assert isinstance(told[task.id], StillRunning)

    async def test_only_a_handful_is_asked_for(self) -> None:
        """However many jobs there are: the list, and five of them."""
        it = self.sheet.rehearse(window=20)
        task = it.task(**SEEDLESS)
        for _ in range(9):
            await it.submitted(task)
        before = len(it.requests)
        found = await it.find(task)
        assert len(it.requests) - before == 6
        assert len(found.candidates) == 9

    async def test_the_list_is_asked_around_the_loss(self) -> None:
        """Its filter is written in China's time, wide enough should that not be what it means."""
        it = self.sheet.rehearse()
        lost = datetime(2026, 11, 1, 12, tzinfo=UTC)
        search = Search(sent_at=lost, lost_at=lost, elapsed=0.0, lost_ago=0.0, owned=frozenset())
        task = it.task(**SEEDLESS)
        requests, _ = converse(it.adapter.find(task, search), reply({"data": []}))
        assert "start_time=20261101110000" in requests[0].url
        assert "end_time=20261102050000" in requests[0].url
        assert "model_name=wan2.7-t2v" in requests[0].url

    async def test_times_are_of_china(self) -> None:
        """They name no zone; two of them split the wait from the work."""
        it = self.sheet.rehearse()
        task = await it.submitted(it.task(**self.sheet.fields))
        ready = converse(it.adapter.poll(task), reply(DONE))[1]
        assert isinstance(ready, Ready)
        assert ready.times.created_at == datetime(2026, 11, 1, 2, 0, 0, 100_000, tzinfo=UTC)
        assert ready.times.started_at is not None
        assert ready.times.completed_at is not None
        assert ready.times.started_at - ready.times.created_at == timedelta(seconds=4.1)
        assert ready.times.completed_at - ready.times.started_at == timedelta(seconds=145.8)

    async def test_a_create_asks_to_be_asynchronous(self) -> None:
        """And for uploads to be resolved where there is one; frames of kf2v have a service of their own."""
        it = self.sheet.rehearse()
        await it.submitted(it.task(**self.sheet.fields))
        assert it.requests[-1].headers["X-DashScope-Async"] == "enable"
        assert "X-DashScope-OssResourceResolve" not in it.requests[-1].headers
        picture = Reference(url="https://x.example/a.png", role="first_frame")
        await it.submitted(it.task(references=(picture,), model_version="wanx2.1-kf2v-plus"))
        assert it.requests[-1].url.endswith("/services/aigc/image2video/video-synthesis")

    async def test_an_upload_is_for_one_model(self) -> None:
        """The policy is asked for in its name, and the file goes to the host that the policy names, without the key."""
        it = self.sheet.rehearse()
        reference = Reference(asset=PICTURE.id, role="first_frame")
        task = it.task(references=(reference,), model_version="wan2.7-i2v")
        picture = task.parameters["input"]["media"][0]["url"]
        assert isinstance(await it.run(it.adapter.upload(picture)), Copied)
        policy, form = it.requests
        assert policy.url.endswith("/uploads?action=getPolicy&model=wan2.7-i2v")
        assert "Authorization" not in form.headers
        for fault, outcome in (("rate", Refused), ("error=503", Trouble), ("code=InvalidParameter", Failed)):
            it.arm(f"upload-{fault}")
            assert isinstance(await it.run(it.adapter.upload(picture)), outcome), fault

    @pytest.mark.parametrize(
        ("model", "roles", "names"),
        [
            ("wan2.6-i2v", ("first_frame",), {"prompt", "img_url"}),
            ("wanx2.1-kf2v-plus", ("first_frame", "last_frame"), {"prompt", "first_frame_url", "last_frame_url"}),
            ("wan2.6-r2v", ("reference", "reference"), {"prompt", "reference_urls"}),
            ("wan3.0-video", ("first_frame", "last_frame"), {"prompt", "media"}),
            ("wan3.0-video", ("reference",) * 10, {"prompt", "media"}),
        ],
    )
    async def test_pictures_by_the_family(self, model: str, roles: tuple[str, ...], names: set[str]) -> None:
        """Each family has its own names for the same things, and the pretend provider takes them."""
        it = self.sheet.rehearse()
        references = tuple(Reference(asset=PICTURE.id, role=role) for role in roles)
        task = it.task(references=references, model_version=model)
        assert set(task.parameters["input"]) == names
        await it.submitted(task)
        assert next(iter(it.engine.jobs.values())).pictures == len(roles)
        with pytest.raises(InvalidRequest):
            it.task(references=(*references, Reference(asset=PICTURE.id, role="first_frame")), model_version=model)

    async def test_pixels_for_the_older_models(self) -> None:
        """A resolution and a ratio become a size there."""
        it = self.sheet.rehearse()
        sizes: tuple[tuple[dict[str, Any], str], ...] = (
            ({"aspect_ratio": "9:16"}, "720*1280"),
            ({"resolution": "1080p"}, "1920*1080"),
            ({"resolution": "480p", "aspect_ratio": "1:1"}, "624*624"),
        )
        for fields, size in sizes:
            assert it.task(model_version="wan2.5-t2v-preview", **fields).parameters["parameters"] == {"size": size}

    async def test_audio_goes_along_by_extra(self) -> None:
        """What has no field of ours is put beside, and behind, what has."""
        it = self.sheet.rehearse()
        voice = {"type": "driving_audio", "url": "https://x.example/a.mp3"}
        picture = Reference(url="https://x.example/a.png", role="first_frame")
        extra = {"input": {"media": [voice]}, "parameters": {"shot_type": "multi"}}
        task = it.task(references=(picture,), model_version="wan2.7-i2v", duration=4, extra=extra)
        assert task.parameters["input"]["media"] == [{"type": "first_frame", "url": picture.url}, voice]
        assert task.parameters["parameters"] == {"duration": 4, "shot_type": "multi"}
        await it.submitted(task)

    async def test_what_is_at_work_cannot_be_stopped(self) -> None:
        """Only what is PENDING can."""
        it = self.sheet.rehearse()
        task = await it.submitted(it.task(**self.sheet.fields))
        await it.clock.advance(10)
        assert await it.run(it.adapter.cancel(task)) == Cancelled(outcome=CancelOutcome.UNSUPPORTED)
        assert isinstance(await it.poll(task), StillRunning)

    async def test_results_are_fetched_over_tls(self) -> None:
        """Addresses that begin with http:// are dialled as https://, and other clouds are not dialled at all."""
        gate = Gate(self.sheet.rehearse().adapter.traits.hosts)
        for place in ("bj.oss-cn-beijing", "sh.oss-cn-shanghai", "wlcb-acdr-1.oss-cn-wulanchabu-acdr-1"):
            assert gate.admit(f"http://dashscope-result-{place}.aliyuncs.com/o.mp4").scheme == "https"
        with pytest.raises(OutboundRefused):
            gate.admit("https://dashscope-result-bj.oss-cn-beijing.aliyuncs.com.example/o.mp4")
