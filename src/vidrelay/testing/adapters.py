"""
The contract suite of adapters: what holds for every provider, held against the pretend provider in its words.

A provider's test file says what is its own in a `Sheet` (`sheet.py`), and inherits the rest:

    class TestVidu(AdapterContract):
        sheet = Sheet(dialect="vidu", make=make, ...)

"How to add a provider" (docs/howto/add-a-provider.md) walks through it.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from vidrelay.core.adapter import Checked, Copied, Dedupe, NotThere, Refused, Trouble, Undecided, Unknown
from vidrelay.core.errors import InvalidRequest
from vidrelay.core.lifecycle import (
    Absent,
    Cancelled,
    CancelTooLate,
    Failed,
    Found,
    Ready,
    StillRunning,
)
from vidrelay.core.task import CancelOutcome, Reference, Task
from vidrelay.providers.verdicts import Meaning, Standing
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.rehearsal import PICTURE, Broken, Rehearsal
from vidrelay.testing.sheet import Sheet

OUTCOMES: Mapping[Standing, type] = {
    Standing.WAITING: StillRunning,
    Standing.WORKING: StillRunning,
    Standing.UNKNOWN: StillRunning,
    Standing.FAILED: Failed,
    Standing.CANCELLED: Failed,
    Standing.EXPIRED: Failed,
}
PROBLEMS: Mapping[Meaning, str] = {
    Meaning.REJECTED: "rejected",
    Meaning.MODERATED: "moderated",
    Meaning.CANCELLED: "remote_cancelled",
    Meaning.EXPIRED: "remote_expired",
    Meaning.AGAIN: "remote_failed",
}


class AdapterContract:
    """
    Inherit it as `class TestX(AdapterContract)` and give `sheet`.
    """

    sheet: ClassVar[Sheet]

    # Life

    async def test_a_clip_from_prompt_to_file(self) -> None:
        """It waits, is worked on, is ready, and its file is a film; nothing else is asked than what a life takes."""
        it = self.sheet.rehearse()
        task = await it.submitted(it.task(**self.sheet.fields))
        assert isinstance(await it.poll(task), StillRunning)
        await it.clock.advance(10)
        assert isinstance(await it.poll(task), StillRunning)
        ready = await self._ready(it, task)
        file = await it.send(it.adapter.download(task, ready.outputs[0]))
        assert (file.status, file.body[4:8]) == (200, b"ftyp")
        assert sum(request.creates for request in it.requests) == 1
        assert len(it.engine.jobs) == 1

    async def test_the_least_request_is_taken(self) -> None:
        """A prompt alone is enough, or the refusal names the field that is needed too."""
        it = self.sheet.rehearse()
        task = None
        try:
            task = it.task()
        except InvalidRequest as refusal:
            named = refusal.field
        assert task is not None or named is not None
        if task is not None:
            await it.submitted(task)

    async def test_a_picture_goes_along(self) -> None:
        """The pretend provider gets the very bytes, inline or by an upload before."""
        if self.sheet.picture is None:
            with pytest.raises(InvalidRequest):
                self.sheet.rehearse().task(**self.sheet.fields, references=(Reference(asset=PICTURE.id),))
            return
        it = self.sheet.rehearse()
        reference = Reference(asset=PICTURE.id, role="first_frame")
        task = it.task(**self.sheet.picture, references=(reference,))
        assert PICTURE.id in json.dumps(task.parameters)
        if it.adapter.traits.copies is not None:
            copied = await it.run(it.adapter.upload({"$asset": PICTURE.id, "mediaType": PICTURE.media_type}))
            assert isinstance(copied, Copied)
            task = replace(task, parameters=_copied(task.parameters, copied.reference))
        task = await it.submitted(task)
        job = next(iter(it.engine.jobs.values()))
        assert job.pictures == 1
        await self._ready(it, task)

    async def test_what_it_cannot_do_is_refused_by_name(self) -> None:
        """Before anything is sent, naming the field."""
        for fields, name in self.sheet.refused:
            it = self.sheet.rehearse()
            with pytest.raises(InvalidRequest) as refusal:
                it.task(**{**self.sheet.fields, **fields})
            assert refusal.value.field == name, (fields, refusal.value.message)

    async def test_extra_goes_through_untouched(self) -> None:
        """What only the provider knows is sent as it is."""
        it = self.sheet.rehearse()
        extra = {**self.sheet.fields.get("extra", {}), "zz_new": {"deep": [1, "ü", None]}}
        task = it.task(**{**self.sheet.fields, "extra": extra})
        assert '"zz_new": {"deep": [1, "\\u00fc", null]}' in json.dumps(task.parameters)

    # Words

    async def test_every_status_word(self) -> None:
        """Each word of the sheet, and one that nobody knows: that is still running."""
        for word, standing in {**self.sheet.words, "pondering": Standing.UNKNOWN}.items():
            if standing is Standing.DONE:
                continue
            it = self.sheet.rehearse()
            task = await it.submitted(it.task(**self.sheet.fields))
            it.arm(f"poll-word={word}")
            seen = await it.poll(task)
            assert isinstance(seen, OUTCOMES[standing]), (word, seen)
            if isinstance(seen, StillRunning) and standing is not Standing.UNKNOWN:
                assert seen.remote_state == standing.remote_state, word
            if isinstance(seen, Failed) and standing is not Standing.FAILED:
                assert seen.problem.code == PROBLEMS[standing.meaning], word

    async def test_every_code_of_a_refused_create(self) -> None:
        """Taken for what it is: final, the account's, or not known to have been carried out."""
        for code, meaning in self.sheet.create_codes.items():
            it = self.sheet.rehearse()
            it.arm(f"create-code={code}")
            outcome = await it.run(it.adapter.submit(it.task(**self.sheet.fields)))
            match meaning:
                case Meaning.AGAIN:
                    assert isinstance(outcome, Unknown), (code, outcome)
                case Meaning.AUTH | Meaning.BALANCE | Meaning.RATE | Meaning.WINDOW:
                    assert isinstance(outcome, Refused), (code, outcome)
                    assert outcome.reason == meaning.value, (code, outcome)
                case _:
                    assert isinstance(outcome, Failed), (code, outcome)
                    assert outcome.problem.code == PROBLEMS[meaning], (code, outcome)

    async def test_every_code_of_a_failed_job(self) -> None:
        """The task ends, and its problem says why."""
        for code, meaning in self.sheet.job_codes.items():
            it = self.sheet.rehearse()
            task = await it.submitted(it.task(f"[fail={code}] a boat", **self.sheet.fields))
            await it.clock.advance(60)
            seen = await it.poll(task)
            assert isinstance(seen, Failed), (code, seen)
            assert seen.problem.code == PROBLEMS[meaning], (code, seen.problem)

    async def test_a_failed_and_a_moderated_job(self) -> None:
        """The two usual ways in which a job ends without a clip."""
        for prompt, codes in (("[fail]", {"remote_failed"}), ("[moderated]", {"moderated", "remote_failed"})):
            it = self.sheet.rehearse()
            task = await it.submitted(it.task(f"{prompt} a boat", **self.sheet.fields))
            await it.clock.advance(60)
            seen = await it.poll(task)
            assert isinstance(seen, Failed), seen
            assert seen.problem.code in codes, seen

    async def test_the_recorded_replies(self) -> None:
        """Each sample of the sheet is read as what it is."""
        for sample in self.sheet.samples:
            adapter = self.sheet.rehearse().adapter
            task = replace(self.sheet.rehearse().task(**self.sheet.fields), remote_id="1")
            begin = adapter.submit if sample.of == "submit" else adapter.poll
            outcome: Any = converse(begin(task), reply(sample.data, status=sample.status), repeat=True)[1]
            assert isinstance(outcome, sample.outcome), (sample, outcome)

    # Trouble

    async def test_the_usual_refusals(self) -> None:
        """A bad key, too many calls, too many jobs, no money, policy: on a create, and what may be on a poll."""
        for fault, reasons in {
            "auth": {"auth"},
            "rate": {"rate"},
            "busy": {"window", "rate"},
            "balance": {"balance"},
        }.items():
            it = self.sheet.rehearse()
            it.arm(f"create-{fault}")
            outcome = await it.run(it.adapter.submit(it.task(**self.sheet.fields)))
            assert isinstance(outcome, Refused), (fault, outcome)
            assert outcome.reason in reasons, (fault, outcome)
        it = self.sheet.rehearse()
        it.arm("create-moderation")
        outcome = await it.run(it.adapter.submit(it.task(**self.sheet.fields)))
        assert isinstance(outcome, Failed), outcome
        task = await it.submitted(it.task(**self.sheet.fields))
        for fault in ("auth", "rate"):
            it.arm(f"poll-{fault}")
            assert isinstance(await it.poll(task), Refused), fault

    async def test_a_create_whose_answer_says_nothing_is_unknown(self) -> None:
        """A 5xx, a page, broken JSON, other types, no id, an id that is none: the job may have been made."""
        for fault in ("error-after=500", "error=503", "html", "truncated", "types", "no-id", "bad-id", "redirect"):
            it = self.sheet.rehearse()
            it.arm(f"create-{fault}")
            outcome = await it.run(it.adapter.submit(it.task(**self.sheet.fields)))
            assert isinstance(outcome, Unknown), (fault, outcome)

    async def test_a_poll_that_went_wrong_ends_nothing(self) -> None:
        """Whatever comes instead of an answer, the task goes on."""
        for fault in ("error=500", "error=503", "html", "truncated", "types", "redirect"):
            it = self.sheet.rehearse()
            task = await it.submitted(it.task(**self.sheet.fields))
            it.arm(f"poll-{fault}")
            seen = await it.poll(task)
            assert isinstance(seen, Trouble | StillRunning | Refused), (fault, seen)

    async def test_a_job_that_is_gone(self) -> None:
        """The provider forgot it, and says so; an id that could be no id of its is not even asked for."""
        it = self.sheet.rehearse()
        task = await it.submitted(it.task(**self.sheet.fields))
        it.engine.restart(forget=True)
        seen = await it.poll(task)
        assert isinstance(seen, NotThere) or (isinstance(seen, Failed) and "expired" in seen.problem.code), seen
        asked = len(it.requests)
        assert isinstance(await it.poll(replace(task, remote_id="../../x")), NotThere)
        assert len(it.requests) == asked

    async def test_a_dead_address_is_told_anew(self) -> None:
        """Asked again, the provider gives one that works, where it gives addresses that die."""
        it = self.sheet.rehearse(url_seconds=30.0)
        task = await it.submitted(it.task(**self.sheet.fields))
        ready = await self._ready(it, task)
        await it.clock.advance(31)
        old = await it.send(it.adapter.download(task, ready.outputs[0]))
        fresh = await self._ready(it, task)
        assert (await it.send(it.adapter.download(task, fresh.outputs[0]))).status == 200
        if fresh.outputs[0].url != ready.outputs[0].url:
            assert old.status == 403

    async def test_the_key_goes_to_the_provider_alone(self) -> None:
        """No address that a reply names gets it, unless it is the API's own."""
        it = self.sheet.rehearse()
        task = await it.submitted(it.task(**self.sheet.fields))
        ready = await self._ready(it, task)
        away = replace(ready.outputs[0], url="https://elsewhere.example/x.mp4", needs_key=True)
        told = repr(dict(it.adapter.download(task, away).headers))
        for part in self.sheet.key.split(":"):
            assert part not in told
        assert "key-canary" not in repr(it.adapter.__dict__.get("traits"))

    # A lost create

    async def test_a_lost_create(self) -> None:
        """Found where it can be, never guessed where it cannot."""
        it = self.sheet.rehearse()
        task = it.task(**self.sheet.fields)
        it.arm("create-drop-after")
        with pytest.raises(Broken):
            await it.run(it.adapter.submit(task))
        found = await it.find(task)
        if it.adapter.traits.dedupe in (Dedupe.CLIENT_ID, Dedupe.LIST):
            assert isinstance(found, Found), found
            assert it.adapter.valid_id(found.remote_id)
            await self._ready(it, replace(task, remote_id=found.remote_id))
            if it.adapter.traits.dedupe is Dedupe.LIST:
                assert not isinstance(await it.find(task, owned=frozenset({found.remote_id})), Found)
        else:
            assert isinstance(found, Undecided), found

    async def test_a_create_that_never_arrived(self) -> None:
        """Nothing is found; absence is claimed by none at once."""
        it = self.sheet.rehearse()
        task = it.task(**self.sheet.fields)
        assert isinstance(await it.find(task), Undecided)
        later = await it.find(task, elapsed=700.0)
        assert isinstance(later, Undecided | Absent), later

    async def test_an_equal_job_of_before_is_not_the_lost_one(self) -> None:
        """Somebody made the same clip before; the lost create made none."""
        it = self.sheet.rehearse()
        await it.submitted(it.task(**self.sheet.fields))
        await it.clock.advance(300)
        task = replace(it.task(**self.sheet.fields), submission_key="another")
        assert not isinstance(await it.find(task), Found)

    async def test_two_jobs_that_can_be_it_are_left_to_a_person(self) -> None:
        """Unless our own id tells them apart."""
        it = self.sheet.rehearse(window=5)
        if it.adapter.traits.dedupe is not Dedupe.LIST:
            await self._guesses_nothing(it)
            return
        task = it.task(**self.sheet.fields)
        for _ in range(2):
            await it.submitted(task)
        found = await it.find(task)
        assert isinstance(found, Undecided), found
        assert len(found.candidates) == 2

    async def test_a_list_that_lags(self) -> None:
        """What is not listed yet is not absent; later it is found."""
        it = self.sheet.rehearse(list_lag=60.0)
        if it.adapter.traits.dedupe is not Dedupe.LIST:
            await self._guesses_nothing(it)
            return
        task = it.task(**self.sheet.fields)
        await it.submitted(task)
        assert isinstance(await it.find(task), Undecided)
        await it.clock.advance(61)
        assert isinstance(await it.find(task, elapsed=61.0), Found)

    async def test_a_list_that_cannot_be_read(self) -> None:
        """It is asked again later."""
        for fault in ("error=503", "html", "truncated", "types", "rate"):
            it = self.sheet.rehearse()
            if it.adapter.traits.dedupe is not Dedupe.LIST:
                await self._guesses_nothing(it)
                return
            task = it.task(**self.sheet.fields)
            it.arm(f"list-{fault}")
            found = await it.find(task)
            assert isinstance(found, Trouble | Refused | Undecided), (fault, found)

    # Cancel

    async def test_cancel_at_each_stage(self) -> None:
        """Waiting, at work, done: what is claimed to be stopped is stopped, and no record of a clip is lost."""
        for seconds in (0, 10, 60):
            it = self.sheet.rehearse()
            if not it.adapter.traits.can_cancel:
                await self._stops_nothing(it)
                return
            task = await it.submitted(it.task(**self.sheet.fields))
            await it.clock.advance(seconds)
            outcome = await it.run(it.adapter.cancel(task))
            assert isinstance(outcome, Cancelled | CancelTooLate), (seconds, outcome)
            job = next(iter(it.engine.ledger.jobs.values()))
            if isinstance(outcome, Cancelled) and outcome.outcome is CancelOutcome.STOPPED:
                assert job.state == "stopped", seconds
            if seconds == 60:
                assert isinstance(outcome, CancelTooLate), outcome
                await self._ready(it, task)

    async def test_a_cancel_that_went_wrong(self) -> None:
        """It is tried again, or the account rests."""
        for fault in ("error=500", "html", "auth", "rate"):
            it = self.sheet.rehearse()
            if not it.adapter.traits.can_cancel:
                await self._stops_nothing(it)
                return
            task = await it.submitted(it.task(**self.sheet.fields))
            it.arm(f"delete-{fault}")
            outcome = await it.run(it.adapter.cancel(task))
            assert isinstance(outcome, Trouble | Refused | Cancelled | CancelTooLate), (fault, outcome)
            if fault in ("auth", "rate"):
                assert isinstance(outcome, Refused), (fault, outcome)

    # Many at once, limits, a check

    async def test_one_list_tells_of_all(self) -> None:
        """What it says of each task is what a poll of it says."""
        it = self.sheet.rehearse(window=10, workers=1, run_seconds=20.0, queue_seconds=0.0)
        if not it.adapter.traits.lists:
            assert await it.run(it.adapter.poll_many([it.task(**self.sheet.fields)])) == {}
            assert it.requests == []
            return
        prompts = ("one", "[fail] two", "three", "four")
        tasks = [await it.submitted(it.task(prompt, **self.sheet.fields)) for prompt in prompts]
        await it.clock.advance(50)
        before = len(it.requests)
        told = await it.run(it.adapter.poll_many(tasks))
        assert isinstance(told, Mapping), told
        assert len(it.requests) - before < len(tasks)
        assert told, "it tells of none"
        for task in tasks:
            if task.id in told:
                assert type(told[task.id]) is type(await it.poll(task)), task.request.prompt
        for fault in ("error=503", "html", "types", "rate"):
            it.arm(f"list-{fault}")
            outcome = await it.run(it.adapter.poll_many(tasks))
            assert isinstance(outcome, Trouble | Refused | Mapping), (fault, outcome)

    async def test_a_call_lasts_until_there_is_news(self) -> None:
        """It says what a poll would say, at the moment when that changes, and not before."""
        it = self.sheet.rehearse(queue_seconds=8.0, run_seconds=20.0)
        if not it.adapter.traits.follows:
            assert await it.run(it.adapter.follow([it.task(**self.sheet.fields)], {})) == {}
            assert it.requests == []
            return
        task = await it.submitted(it.task(**self.sheet.fields))
        began, changes = it.clock.monotonic(), []
        seen = await it.poll(task)
        while isinstance(seen, StillRunning):
            told = await it.run(it.adapter.follow([task], {task.id: seen}))
            assert isinstance(told, Mapping), told
            seen = told[task.id]
            changes.append(it.clock.monotonic() - began)
        assert isinstance(seen, Ready), seen
        assert 8 <= changes[0] < 9, "it is worked on"
        assert 28 <= changes[-1] < 29, "it is done"
        assert len(changes) <= 3

    async def test_a_call_without_news_ends_by_itself(self) -> None:
        """What is known by then is told, and the call is over within two minutes."""
        it = self.sheet.rehearse(queue_seconds=0.0)
        if it.adapter.traits.follows:
            task = await it.submitted(it.task("[forever]", **self.sheet.fields))
            seen, began = await it.poll(task), it.clock.monotonic()
            told = await it.run(it.adapter.follow([task], {task.id: seen}))
            assert isinstance(told, Mapping), told
            assert isinstance(told[task.id], StillRunning)
            assert 10 <= it.clock.monotonic() - began <= 120

    async def test_a_call_that_lasts_and_went_wrong_ends_nothing(self) -> None:
        """A stream that is refused, empty, odd or broken off says nothing of the job, or what is true."""
        for fault in ("error=503", "html", "truncated", "types", "redirect", "rate"):
            it = self.sheet.rehearse(queue_seconds=0.0)
            if not it.adapter.traits.follows:
                return
            # The stream is not the first call of some: each before it went right.
            for before in range(2):
                task = await it.submitted(it.task("[forever]", **self.sheet.fields))
                seen = await it.poll(task)
                it.arm(*["poll-slow=0"] * before, f"poll-{fault}")
                told = await it.run(it.adapter.follow([task], {task.id: seen}))
                it.engine.faults.clear()
                one = told.get(task.id) if isinstance(told, Mapping) else told
                assert one is None or isinstance(one, Trouble | StillRunning | Refused), (fault, one)

    async def test_limits_are_read_or_not_told(self) -> None:
        """A mapping of windows, or None; never an exception."""
        it = self.sheet.rehearse()
        limits = await it.run(it.adapter.limits())
        assert limits is None or all(isinstance(places, int) and places >= 1 for places in limits.values())
        for fault in ("error=503", "html", "types"):
            it.arm(f"account-{fault}", f"list-{fault}")
            await it.run(it.adapter.limits())
            it.engine.faults.clear()

    async def test_a_check_pays_nothing(self) -> None:
        """It says whether the key is taken, and makes no job."""
        it = self.sheet.rehearse()
        if not it.adapter.traits.can_check:
            with pytest.raises(NotImplementedError):
                await it.run(it.adapter.check())
            return
        checked = await it.run(it.adapter.check())
        assert isinstance(checked, Checked)
        assert (checked.quota is not None) == it.adapter.traits.tells_quota
        it.arm("any-auth")
        refused = await it.run(it.adapter.check())
        assert isinstance(refused, Refused), refused
        assert not it.engine.jobs
        assert not any(request.creates for request in it.requests)

    async def _guesses_nothing(self, it: Rehearsal) -> None:
        """
        Without a list, an equal job of somebody else is never taken for the lost one.
        """
        await it.submitted(it.task(**self.sheet.fields))
        found = await it.find(it.task(**self.sheet.fields))
        assert isinstance(found, Undecided), found

    async def _stops_nothing(self, it: Rehearsal) -> None:
        """
        Without a way to stop a job, none is claimed to be stopped, and none is.
        """
        task = await it.submitted(it.task(**self.sheet.fields))
        outcome = await it.run(it.adapter.cancel(task))
        assert isinstance(outcome, Cancelled), outcome
        assert outcome.outcome is CancelOutcome.UNSUPPORTED
        assert next(iter(it.engine.jobs.values())).unended

    async def _ready(self, it: Rehearsal, task: Task) -> Ready:
        for _ in range(10):
            seen = await it.poll(task)
            if isinstance(seen, Ready):
                assert seen.outputs
                return seen
            assert isinstance(seen, StillRunning), seen
            await it.clock.advance(20)
        raise AssertionError("it is never ready")


def _copied(parameters: Any, reference: str) -> Any:
    if isinstance(parameters, Mapping):
        if "$asset" in parameters:
            return {**parameters, "$copy": reference}
        return {name: _copied(value, reference) for name, value in parameters.items()}
    return [_copied(one, reference) for one in parameters] if isinstance(parameters, list | tuple) else parameters
