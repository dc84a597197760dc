"""
MiniMax in both generations, held against the fact sheet and the pretend providers in their words.
"""

from dataclasses import replace
from typing import Any

import pytest

from vidrelay.core.adapter import NotThere, Refused, Search, Trouble, Undecided, Unknown
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Found, Ready, StillRunning
from vidrelay.core.task import CancelOutcome, Reference
from vidrelay.providers.minimax.adapter import make
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.adapters import AdapterContract
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE, Broken
from vidrelay.testing.sheet import Sample, Sheet

FINE = {"status_code": 0, "status_msg": "success"}


class TestMiniMaxV1(AdapterContract):
    """
    What holds for every provider, of the Hailuo models.
    """

    sheet = Sheet(
        dialect="minimax",
        make=make,
        account_dialect="v1",
        fields={"duration": 6, "resolution": "768p", "model_version": "MiniMax-Hailuo-2.3"},
        picture={"duration": 6, "resolution": "1080P"},
        words={
            "Preparing": Standing.WAITING,
            "Queueing": Standing.WAITING,
            "Processing": Standing.WORKING,
            "Success": Standing.DONE,
            "Fail": Standing.FAILED,
        },
        create_codes={
            **dict.fromkeys(("1000", "1001", "1013", "1024", "1033", "1041"), Meaning.AGAIN),
            **dict.fromkeys(("1002", "1039", "2045"), Meaning.RATE),
            **dict.fromkeys(("1004", "2049", "2038"), Meaning.AUTH),
            **dict.fromkeys(("1008", "2056", "2062"), Meaning.BALANCE),
            **dict.fromkeys(("1026", "1027"), Meaning.MODERATED),
            "2013": Meaning.REJECTED,
        },
        job_codes={"1026": Meaning.MODERATED, "1027": Meaning.MODERATED, "1000": Meaning.AGAIN},
        refused=(
            ({"negative_prompt": "x"}, "negativePrompt"),
            ({"seed": 7}, "seed"),
            ({"aspect_ratio": "16:9"}, "aspectRatio"),
            ({"duration": 7}, "duration"),
            ({"resolution": "720p"}, "resolution"),
            ({"model_version": "MiniMax-H3"}, "modelVersion"),
            (
                {
                    "model_version": "T2V-01-Director",
                    "resolution": "720P",
                    "references": (Reference(url="https://x.example/a.png"),),
                },
                "references[0].role",
            ),
        ),
        samples=(
            Sample(of="submit", data={"task_id": "176844028768320", "base_resp": FINE}, outcome=Accepted),
            Sample(of="submit", data={"data": {"task_id": "1"}, "base_resp": FINE}, outcome=Accepted),
            Sample(
                of="poll",
                data={"task_id": "1", "status": "Processing", "file_id": "", "base_resp": FINE},
                outcome=StillRunning,
            ),
        ),
    )

    async def test_the_file_is_found_by_its_id(self) -> None:
        """A clip that is done names a file, whose id is too long for a float; a second call tells its address."""
        done = {"status": "Success", "file_id": "9223372036854775807", "base_resp": FINE}
        address = "https://public-cdn-video-data-algeng.oss-cn-wulanchabu.aliyuncs.com/o.mp4?Expires=1764501600"
        file = {"file": {"file_id": 9223372036854775807, "download_url": address}, "base_resp": FINE}
        it = self.sheet.rehearse()
        task = await it.submitted(it.task(**self.sheet.fields))
        requests, outcome = converse(it.adapter.poll(task), reply(done), reply(file))
        assert requests[1].url.endswith("/v1/files/retrieve?file_id=9223372036854775807")
        assert isinstance(outcome, Ready)
        assert outcome.outputs[0].url == address
        as_number = {**done, "file_id": 9223372036854775807}
        assert converse(it.adapter.poll(task), reply(as_number), reply(file))[0][1].url == requests[1].url

    @pytest.mark.parametrize(
        ("code", "outcome"), [(2013, NotThere), (1004, Refused), (1002, Refused), (1000, Trouble), (1027, Failed)]
    )
    async def test_an_error_of_the_second_call(self, code: int, outcome: type) -> None:
        """The file is gone, or cannot be asked for now: HTTP 200 all the same."""
        it = self.sheet.rehearse()
        task = await it.submitted(it.task(**self.sheet.fields))
        error = reply({"base_resp": {"status_code": code, "status_msg": "no"}})
        for replies in ([error], [reply({"status": "Success", "file_id": "1", "base_resp": FINE}), error]):
            assert isinstance(converse(it.adapter.poll(task), *replies)[1], outcome)

    async def test_no_balance_comes_as_a_500(self) -> None:
        """The code decides before the status: the create was not carried out."""
        it = self.sheet.rehearse()
        error = reply({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, status=500)
        outcome = converse(it.adapter.submit(it.task(**self.sheet.fields)), error)[1]
        assert isinstance(outcome, Refused)
        assert outcome.reason == "balance"

    async def test_an_answer_that_is_wrapped_in_data(self) -> None:
        """Some regions do so: a refusal inside is one, and a file inside is found."""
        it = self.sheet.rehearse()
        task = it.task(**self.sheet.fields)
        refusal = reply({"data": {"task_id": "", "base_resp": {"status_code": 1008, "status_msg": "no balance"}}})
        outcome = converse(it.adapter.submit(task), refusal)[1]
        assert isinstance(outcome, Refused)
        assert outcome.reason == "balance"
        done = reply({"data": {"status": "Success", "file_id": "1"}, "base_resp": FINE})
        file = reply({"data": {"file": {"download_url": "https://x.example/o.mp4"}}, "base_resp": FINE})
        assert isinstance(converse(it.adapter.poll(await it.submitted(task)), done, file)[1], Ready)

    async def test_a_subject_has_a_model_of_its_own(self) -> None:
        """A reference is the subject of S2V-01; frames are for the others."""
        it = self.sheet.rehearse()
        subject = it.task(references=(Reference(asset=PICTURE.id, role="reference"),))
        assert subject.model_version == "S2V-01"
        assert subject.parameters["subject_reference"][0]["type"] == "character"
        await it.submitted(subject)
        frames = tuple(Reference(asset=PICTURE.id, role=role) for role in ("first_frame", "last_frame"))
        assert {"first_frame_image", "last_frame_image"} <= it.task(references=frames).parameters.keys()
        with pytest.raises(InvalidRequest):
            it.task(references=frames, model_version="S2V-01")
        named = {"subject_reference": [{"type": "character", "image": ["https://x.example/a.png"]}]}
        assert it.task(extra=named).model_version == "S2V-01"


class TestMiniMaxV2(AdapterContract):
    """
    What holds for every provider, of the H3 models.
    """

    sheet = Sheet(
        dialect="minimax-v2",
        make=make,
        fields={"duration": 5, "resolution": "2k", "aspect_ratio": "16:9", "model_version": "MiniMax-H3"},
        picture={"duration": 5},
        words={
            "queued": Standing.WAITING,
            "running": Standing.WORKING,
            "succeeded": Standing.DONE,
            "failed": Standing.FAILED,
            "cancelled": Standing.CANCELLED,
            "expired": Standing.EXPIRED,
        },
        create_codes={
            "400": Meaning.REJECTED,
            "401": Meaning.AUTH,
            "402": Meaning.BALANCE,
            "429": Meaning.RATE,
            "500": Meaning.AGAIN,
        },
        job_codes={"1027": Meaning.MODERATED, "1000": Meaning.AGAIN},
        refused=(
            ({"negative_prompt": "x"}, "negativePrompt"),
            ({"seed": 7}, "seed"),
            ({"duration": 3}, "duration"),
            ({"duration": 16}, "duration"),
            ({"duration": 4, "resolution": "768P", "model_version": "MiniMax-H3-Max"}, "duration"),
            ({"resolution": "2K", "model_version": "MiniMax-H3-Highspeed"}, "resolution"),
            ({"aspect_ratio": "adaptive"}, "aspectRatio"),
            ({"model_version": "MiniMax-Hailuo-2.3"}, "modelVersion"),
        ),
        samples=(
            Sample(of="submit", data={"task_id": "t-9"}, outcome=Accepted),
            Sample(
                of="poll",
                data={
                    "task": {
                        "id": "t-9",
                        "status": "succeeded",
                        "task_type": "text_to_video",
                        "content": {"url": "https://host/o.mp4"},
                        "resolution": "768P",
                        "duration": 5,
                        "ratio": "16:9",
                    }
                },
                outcome=Ready,
            ),
            Sample(
                of="poll",
                data={"error": {"message": "invalid task_id", "type": "x", "http_code": 400}, "request_id": "r"},
                status=400,
                outcome=NotThere,
            ),
        ),
    )

    async def test_a_lost_create(self) -> None:
        """
        The list shows model and time but no prompt, so the job is told to a person and not taken: of two creates that
        were lost together, one may have arrived, and either would take it.
        """
        it = self.sheet.rehearse()
        task = it.task(**self.sheet.fields)
        it.arm("create-drop-after")
        with pytest.raises(Broken):
            await it.run(it.adapter.submit(task))
        found = await it.find(task)
        assert isinstance(found, Undecided)
        (made,) = it.engine.jobs
        assert found.candidates == (made,)
        owned = await it.find(task, owned=frozenset({made}))
        assert isinstance(owned, Undecided)
        assert not owned.candidates

    async def test_a_list_that_lags(self) -> None:
        """What is not listed yet is not absent; later it is among those that may be it."""
        it = self.sheet.rehearse(list_lag=60.0)
        task = it.task(**self.sheet.fields)
        await it.submitted(task)
        assert (await it.find(task)).candidates == ()
        await it.clock.advance(61)
        assert len((await it.find(task, elapsed=61.0)).candidates) == 1

    async def test_a_row_that_shows_the_prompt_settles_it(self) -> None:
        """The prompt, the model and the time agree: that is it."""
        it = self.sheet.rehearse()
        task = it.task(**self.sheet.fields)
        made = int(it.clock.now().timestamp())
        row: dict[str, Any] = {"id": "t-9", "status": "running", "model": "MiniMax-H3", "created_at": made}
        listed = {"items": [{**row, "prompt": task.request.prompt}, {**row, "id": "t-8", "prompt": "another"}]}
        now = it.clock.now()
        search = Search(sent_at=now, lost_at=now, elapsed=0.0, lost_ago=0.0, owned=frozenset())
        outcome = converse(it.adapter.find(task, search), reply(listed))[1]
        assert isinstance(outcome, Found)
        assert outcome.remote_id == "t-9"

    async def test_a_job_at_work_is_not_asked_to_stop(self) -> None:
        """Only what waits can be stopped, and a finished record would be erased: no DELETE is sent."""
        for seconds, outcome in ((0, Cancelled), (10, Cancelled), (60, CancelTooLate)):
            it = self.sheet.rehearse()
            task = await it.submitted(it.task(**self.sheet.fields))
            await it.clock.advance(seconds)
            result = await it.run(it.adapter.cancel(task))
            assert isinstance(result, outcome)
            assert [request.method for request in it.requests].count("DELETE") == (1 if seconds == 0 else 0)
            if seconds == 10:
                assert result == Cancelled(outcome=CancelOutcome.UNSUPPORTED)

    async def test_a_proxys_page_stops_nothing(self) -> None:
        """A task that was only said to be stopped would run on, be paid, and be fetched by nobody."""
        it = self.sheet.rehearse()
        task = replace(it.task(**self.sheet.fields), remote_id="t-9")
        waits = reply({"task": {"id": "t-9", "status": "queued"}})
        page = reply(b"<html>log in to the network</html>")
        assert isinstance(converse(it.adapter.cancel(task), waits, page)[1], Trouble)
        assert isinstance(converse(it.adapter.cancel(task), waits, reply(b""))[1], Cancelled)

    async def test_a_job_that_is_not_known_yet_can_be_cancelled_later(self) -> None:
        """Right after its create it may not be known: that it is too late is not claimed, nor is a DELETE sent."""
        it = self.sheet.rehearse()
        task = await it.submitted(it.task(**self.sheet.fields))
        unknown = reply({"error": {"message": "invalid task_id", "type": "x", "http_code": 400}}, status=400)
        requests, outcome = converse(it.adapter.cancel(task), unknown)
        assert isinstance(outcome, Trouble)
        assert [request.method for request in requests] == ["GET"]

    async def test_pictures_by_their_role(self) -> None:
        """Frames and references are told apart, and exclude each other."""
        it = self.sheet.rehearse()
        roles = {
            ("first_frame", "last_frame"): ["first_frame", "last_frame"],
            ("reference", "reference"): ["reference_image", "reference_image"],
        }
        for given, sent in roles.items():
            task = it.task(references=tuple(Reference(asset=PICTURE.id, role=role) for role in given))
            assert [one["role"] for one in task.parameters["content"][1:]] == sent
            assert "ratio" not in task.parameters
            await it.submitted(task)
        with pytest.raises(InvalidRequest):
            it.task(references=tuple(Reference(asset=PICTURE.id, role=role) for role in ("first_frame", "reference")))

    async def test_audio_goes_along_by_extra(self) -> None:
        """More content is put behind ours."""
        it = self.sheet.rehearse()
        audio = {"type": "audio_url", "audio_url": {"url": "https://x.example/a.mp3"}, "role": "reference_audio"}
        task = it.task(extra={"content": [audio]})
        assert task.parameters["content"] == [{"type": "text", "text": "a paper boat"}, audio]
        with pytest.raises(InvalidRequest):
            it.task(extra={"content": [{"$asset": PICTURE.id}]})

    @pytest.mark.parametrize(("code", "reason"), [(1004, "auth"), (1008, "balance"), (1002, "rate")])
    async def test_a_refusal_in_the_form_of_the_other_generation(self, code: int, reason: str) -> None:
        """Key and balance are judged before either of them: such a create was surely not carried out."""
        it = self.sheet.rehearse()
        error = reply({"base_resp": {"status_code": code, "status_msg": "no"}})
        outcome = converse(it.adapter.submit(it.task(**self.sheet.fields)), error)[1]
        assert isinstance(outcome, Refused)
        assert outcome.reason == reason

    async def test_a_row_that_does_not_show_its_clip(self) -> None:
        """Its task is asked for by itself, where the clip is shown."""
        it = self.sheet.rehearse()
        tasks = [replace(it.task(**self.sheet.fields), id=name, remote_id=name) for name in ("t-1", "t-2")]
        rows = [{"id": "t-1", "status": "succeeded"}, {"id": "t-2", "status": "running"}]
        assert set(converse(it.adapter.poll_many(tasks), reply({"tasks": rows}))[1]) == {"t-2"}

    async def test_a_row_cannot_show_which_picture_was_sent(self) -> None:
        """Of two creates of one prompt and two pictures that were lost, the one that arrived is told to a person."""
        it = self.sheet.rehearse()
        task = it.task(references=(Reference(url="https://x.example/a.png"),))
        now = it.clock.now()
        content = [{"type": "text", "text": task.request.prompt}, {"type": "image_url", "role": "first_frame"}]
        row = {"id": "t-9", "status": "running", "created_at": int(now.timestamp()), "content": content}
        search = Search(sent_at=now, lost_at=now, elapsed=0.0, lost_ago=0.0, owned=frozenset())
        outcome = converse(it.adapter.find(task, search), reply({"tasks": [row]}))[1]
        assert isinstance(outcome, Undecided)
        assert outcome.candidates == ("t-9",)

    async def test_a_model_that_nobody_told_us_of(self) -> None:
        """Its limits are the provider's to judge."""
        it = self.sheet.rehearse()
        body = it.task(duration=30, resolution="4K", model_version="MiniMax-H4").parameters
        assert (body["duration"], body["resolution"]) == (30, "4K")

    async def test_a_status_in_the_body_counts(self) -> None:
        """An error that comes with HTTP 200 is one all the same."""
        it = self.sheet.rehearse()
        error = {"error": {"message": "slow down", "type": "x", "http_code": "429"}, "request_id": "r"}
        outcome = converse(it.adapter.submit(it.task(**self.sheet.fields)), reply(error))[1]
        assert isinstance(outcome, Refused)
        assert outcome.reason == "rate"

    async def test_a_status_in_the_body_does_not_outweigh_a_5xx(self) -> None:
        """A create that came to trouble may have been carried out."""
        it = self.sheet.rehearse()
        error = reply({"error": {"message": "upstream", "type": "x", "http_code": 400}}, status=503)
        assert isinstance(converse(it.adapter.submit(it.task(**self.sheet.fields)), error)[1], Unknown)

    async def test_an_upload_that_is_refused(self) -> None:
        """For good, for now, or by an answer that names no file; errors of both generations are read there."""
        it = self.sheet.rehearse()
        picture = {"$asset": PICTURE.id, "mediaType": "image/png"}
        for fault, outcome in (("rate", Refused), ("auth", Refused), ("error=503", Trouble), ("code=400", Failed)):
            it.arm(f"upload-{fault}")
            assert isinstance(await it.run(it.adapter.upload(picture)), outcome), fault
        for data, outcome in (
            ({"base_resp": {"status_code": 2013, "status_msg": "invalid params"}}, Failed),
            ({"base_resp": {"status_code": 1004, "status_msg": "no"}}, Refused),
            ({"file": {}, "base_resp": FINE}, Trouble),
        ):
            assert isinstance(converse(it.adapter.upload(picture), reply(data))[1], outcome), data

    async def test_a_list_of_several_pages(self) -> None:
        """It is read to its end, or to the fifth page, and then nothing is claimed of what was not seen."""
        it = self.sheet.rehearse()
        task = it.task(**self.sheet.fields)
        now = it.clock.now()
        search = Search(sent_at=now, lost_at=now, elapsed=700.0, lost_ago=700.0, owned=frozenset())
        made = int(now.timestamp())
        row = {"id": "t-9", "status": "running", "created_at": made, "prompt": task.request.prompt}
        others = [{"id": f"o-{number}", "created_at": made - 9000} for number in range(99)]
        requests, outcome = converse(it.adapter.find(task, search), reply({"tasks": [row, *others]}), repeat=True)
        assert [request.url.partition("page_num=")[2][0] for request in requests] == ["1", "2", "3", "4", "5"]
        assert isinstance(outcome, Undecided)
        last = reply({"tasks": others[:3]})
        outcome = converse(it.adapter.find(task, search), reply({"tasks": [row, *others]}), last)[1]
        assert isinstance(outcome, Found)
