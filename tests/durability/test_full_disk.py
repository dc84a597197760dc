"""
The disk is full, or fails, under a whole relay: nothing that is paid for is forgotten, nothing is paid twice.
"""

import json
import stat
from pathlib import Path

import pytest

from vidrelay import assemble
from vidrelay.core.adapter import Refused, Scope
from vidrelay.core.errors import DatabaseUnusable, DiskFull
from vidrelay.core.lifecycle import Answered, Failed
from vidrelay.core.plan import AccountPlan
from vidrelay.core.task import RemoteFile, State
from vidrelay.scheduler.account import Account
from vidrelay.store import emergency
from vidrelay.testing.clock import START
from vidrelay.testing.records import PROBLEM
from vidrelay.testing.toy.adapter import ToyAdapter
from vidrelay.testing.toy.provider import BASE

from .each_write import WAYS, count_work, survive
from .faulty_sqlite import FULL, IOERR_FSYNC, disk
from .lives import BALLAST_BYTES, Ground

CASES = [(kind, way, share) for kind, ways in WAYS.items() for way in ways for share in (0.35, 0.6, 0.85)]


@pytest.mark.parametrize(("kind", "way", "share"), CASES)
async def test_a_disk_that_fails_at_its_nth_work_loses_nothing(tmp_path, kind, way, share):
    """Refused means not there; accepted means done in the end; one create a task; `proof.py` tries every n."""
    (tmp_path / "counted").mkdir()
    (tmp_path / "state").mkdir()
    works = await count_work(tmp_path / "counted", kind)
    told = await survive(tmp_path / "state", kind=kind, way=way, nth=int(works * share))
    assert told["met"] == 1


class Switch:
    """
    A disk that takes no write of the database while it is `on`.
    """

    def __init__(self, folder):
        self.ballast = folder / "ballast"
        self.on = False
        self.until_room = False
        self.syncs_fail = False

    def judge(self, op):
        if self.syncs_fail and op.kind == "sync":
            return IOERR_FSYNC
        full = self.on and op.kind == "write" and (self.ballast.exists() or not self.until_room)
        return FULL if full else None


@pytest.fixture
def ground(tmp_path):
    (tmp_path / "state").mkdir()
    ground = Ground(tmp_path / "state", window=1)
    ground.provider.create_seconds = 5.0
    return ground


@pytest.fixture
def switch(ground):
    switch = Switch(ground.folder)
    with disk(switch.judge):
        yield switch


async def accepted_on_a_full_disk(life, switch, ground):
    """
    A task whose create call is answered when the disk is full, with another one behind it in line.
    """
    task = await life.submit("a boat")
    await life.submit("a kite")
    switch.on = True
    await ground.clock.advance(6)
    return task


def journal(ground):
    path = ground.folder / "emergency.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


async def test_an_answer_that_the_database_does_not_take_is_written_down(ground, switch):
    """The remote id is in the journal at once, nobody else may read it, and it goes when the database has it."""
    async with ground.life() as life:
        task = await accepted_on_a_full_disk(life, switch, ground)
        (written,) = journal(ground)
        assert (written["task"], written["remote_id"]) == (task.id, "job-1")
        assert stat.S_IMODE((ground.folder / "emergency.jsonl").stat().st_mode) == 0o600
        await ground.clock.advance(120)
        assert len(journal(ground)) == 1
        switch.on = False
        await life.until(State.DONE, prompts=2)
        assert (await life.relay.get(task.id)).remote_id == "job-1"
        assert not (ground.folder / "emergency.jsonl").exists()
    assert len(ground.provider.creates) == 2


async def test_nothing_paid_for_is_begun_while_an_answer_is_not_saved(ground, switch):
    """The account rests because of the disk, though its window had room, and goes on by itself."""
    ground.window = 2
    async with ground.life() as life:
        await life.submit("a boat")
        switch.on = True
        await ground.clock.advance(6)
        switch.on = False
        ground.provider.create_seconds = 0.0
        await life.submit("a kite")
        assert len(ground.provider.creates) == 1
        assert life.relay.accounts()[0].pause.reason == "disk"
        await life.until(State.DONE, prompts=2)
        assert (ground.folder / "ballast").stat().st_size == BALLAST_BYTES


async def test_the_ballast_is_given_up_for_an_answer(ground, switch):
    """Where that makes room enough the answer is saved at once, nothing is written down, and the ballast comes back."""
    switch.until_room = True
    async with ground.life() as life:
        await life.submit("a boat")
        switch.on = True
        await ground.clock.advance(5)
        assert not (ground.folder / "ballast").exists()
        assert not journal(ground)
        assert [task.state for task in await life.tasks()] == [State.RUNNING]
        switch.on = False
        await life.submit("a kite")
        await life.until(State.DONE, prompts=2)
        assert (ground.folder / "ballast").stat().st_size == BALLAST_BYTES


async def test_a_relay_that_is_killed_on_a_full_disk_knows_the_answer_afterwards(ground, switch):
    """The next life takes the journal over before it looks at the task: it is running under its id, made once."""
    async with ground.life() as life:
        task = await accepted_on_a_full_disk(life, switch, ground)
        ground.kill()
    switch.on = False
    async with ground.life() as life:
        assert (await life.relay.get(task.id)).remote_id == "job-1"
        assert not (ground.folder / "emergency.jsonl").exists()
        await life.until(State.DONE, prompts=2)
    assert len(ground.provider.creates) == 2


async def test_an_end_on_a_full_disk_waits_for_nobody(ground, switch):
    """A relay that is asked to stop does so, and the answer is there at the next start."""
    async with ground.life() as life:
        task = await accepted_on_a_full_disk(life, switch, ground)
    switch.on = False
    async with ground.life() as life:
        assert (await life.relay.get(task.id)).remote_id == "job-1"


async def test_a_start_on_a_full_disk_keeps_what_is_written_down(ground, switch):
    """If the database still does not take it the relay does not start, and the journal stays as it is."""
    async with ground.life() as life:
        await accepted_on_a_full_disk(life, switch, ground)
        ground.kill()
    before = (ground.folder / "emergency.jsonl").read_bytes()
    with pytest.raises(DiskFull):
        async with ground.life():
            pass
    assert (ground.folder / "emergency.jsonl").read_bytes() == before


async def test_a_torn_line_of_the_journal_hides_no_other(ground, switch):
    """What was being written when the power went is passed over; whole answers before and after it count."""
    async with ground.life() as life:
        task = await accepted_on_a_full_disk(life, switch, ground)
        ground.kill()
    path = ground.folder / "emergency.jsonl"
    path.write_bytes(b'\n{"task": "id-9", "at"' + path.read_bytes() + b'\n{"task": "id-8", "at": 1, "event": "Acc')
    switch.on = False
    async with ground.life() as life:
        assert (await life.relay.get(task.id)).remote_id == "job-1"


async def test_what_the_database_does_not_know_stays_written_down(ground, switch, capsys):
    """Somebody moved relay.db away: its answers wait in the journal, told at each start, and are taken over later."""
    async with ground.life() as life:
        task = await accepted_on_a_full_disk(life, switch, ground)
        ground.kill()
    switch.on = False
    path = ground.folder / "emergency.jsonl"
    lines = path.read_bytes().split()
    (ground.folder / "away").mkdir()
    for file in ground.folder.glob("relay.db*"):
        file.rename(ground.folder / "away" / file.name)
    for _ in range(2):
        async with ground.life():
            assert f"task {task.id} was accepted by its provider as job-1" in capsys.readouterr().err
            assert path.read_bytes().split() == lines
    for file in ground.folder.glob("relay.db*"):
        file.unlink()
    for file in (ground.folder / "away").iterdir():
        file.rename(ground.folder / file.name)
    async with ground.life() as life:
        assert (await life.relay.get(task.id)).remote_id == "job-1"
        assert not path.exists()
        assert "emergency" not in capsys.readouterr().err
        await life.until(State.DONE, prompts=2)
    assert len(ground.provider.creates) == 2


async def test_only_what_was_taken_over_goes_from_the_journal(ground, switch, capsys):
    """Lines of unknown tasks and torn ones stay, byte for byte, also when a later answer is written down and saved."""
    async with ground.life() as life:
        task = await accepted_on_a_full_disk(life, switch, ground)
        ground.kill()
    path = ground.folder / "emergency.jsonl"
    whole = path.read_bytes().strip()
    foreign = whole.replace(task.id.encode(), b"id-of-another").replace(b"job-1", b"job-9")
    torn = [whole.replace(task.id.encode(), b"id-of-a-third")[:-9], b'{"ta']
    of_ours = whole[:-9]
    path.write_bytes(b"\n".join([torn[0], b"", of_ours, foreign, whole, torn[1]]))
    switch.on = False
    async with ground.life() as life:
        assert path.read_bytes().splitlines() == [torn[0], foreign, torn[1]]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        told = capsys.readouterr().err
        assert "task id-of-another was accepted by its provider as job-9" in told
        assert "cut short, of task id-of-a-third" in told
        assert "cut short, of task unknown" in told
        assert task.id not in told
        await life.until(State.DONE, prompts=1)
        switch.on = True
        await ground.clock.advance(6)
        assert len(path.read_bytes().split(b"\n\n")) == 2
        switch.on = False
        await life.until(State.DONE, prompts=2)
        assert path.read_bytes().splitlines() == [torn[0], foreign, torn[1]]
    assert len(ground.provider.creates) == 2


async def test_an_answer_that_came_through_is_not_taken_over_again(ground, switch):
    """A journal that was left behind although its answer was saved changes nothing."""
    async with ground.life() as life:
        task = await accepted_on_a_full_disk(life, switch, ground)
        left = (ground.folder / "emergency.jsonl").read_bytes()
        switch.on = False
        await life.until(State.DONE, prompts=2)
    (ground.folder / "emergency.jsonl").write_bytes(left)
    async with ground.life() as life:
        assert (await life.relay.get(task.id)).state is State.DONE


async def test_where_nothing_can_be_written_standard_error_is_told(ground, switch, capsys):
    """The last resort names the task, the remote id, and the command that puts it right; once."""
    async with ground.life() as life:
        task = await life.submit("a boat")
        (ground.folder / "emergency.jsonl").mkdir()
        switch.on = True
        await ground.clock.advance(120)
        told = capsys.readouterr().err
        assert told.count(f"vidrelay resolve {task.id} --adopt job-1") == 1
        switch.on = False
        (ground.folder / "emergency.jsonl").rmdir()
        await life.until(State.DONE, prompts=1)
    assert len(ground.provider.creates) == 1


async def test_a_failed_sync_ends_the_relay_with_every_answer_written_down(ground, switch):
    """The relay stops by itself, makes no further create, and its next life has the id."""

    async def life_that_ends():
        async with ground.life() as life:
            await life.submit("a boat")
            await life.submit("a kite")
            switch.syncs_fail = True
            await ground.clock.advance(60)
            assert life.ended_by is not None

    with pytest.raises(DatabaseUnusable, match="durable"):
        await life_that_ends()
    (written,) = journal(ground)
    assert written["remote_id"] == "job-1"
    assert len(ground.provider.creates) == 1
    switch.syncs_fail = False
    async with ground.life() as life:
        assert (await life.relay.get(written["task"])).remote_id == "job-1"
        await life.until(State.DONE, prompts=2)


async def test_a_wish_is_refused_and_not_waited_for(ground, switch):
    """Cancelling on a full disk says so at once; the task stays as it is."""
    async with ground.life() as life:
        await life.submit("a boat")
        behind = await life.submit("a kite")
        switch.on = True
        with pytest.raises(DiskFull):
            await life.relay.cancel(behind.id)
        assert (await life.relay.get(behind.id)).state is State.QUEUED


async def test_a_refused_create_goes_back_in_line_though_its_pause_cannot_be_kept(ground, switch):
    """The provider surely made nothing, so the task is queued when the disk works again, and never uncertain."""
    async with ground.life() as life:
        ground.provider.arm("create", 429)
        ground.provider.retry_after = "5"
        task = await life.submit("a boat")
        switch.on = True
        await ground.clock.advance(20)
        switch.on = False
        await life.until(State.DONE, prompts=1)
        assert (await life.relay.get(task.id)).attempts == 2
        assert (await life.store.counters()).get("uncertain", 0) == 0


def test_a_full_disk_does_not_shorten_a_providers_pause():
    """A provider that asked for an hour gets it, whatever our own disk does meanwhile."""
    account = Account(AccountPlan(name="a", provider="toy", adapter=ToyAdapter(), transport=None, downloader=None))
    asked = Refused(scope=Scope.CREATES, reason="balance", detail="402", retry_after=3600.0)
    own = Refused(scope=Scope.CREATES, reason="disk", detail="full", retry_after=30.0)
    account.refused(asked, now=START, monotonic=0.0, chance=0.5)
    account.refused(own, now=START, monotonic=60.0, chance=0.5)
    assert account.rest(creates=True, monotonic=61.0) == 3539.0


@pytest.mark.parametrize("kind", ["answered", "failed"])
async def test_any_answer_that_names_a_job_outlives_a_full_disk(ground, switch, kind):
    """A create that is answered with the finished result, or with a job that has failed already, is kept as well."""
    ground.adapter = Eager(kind)
    async with ground.life() as life:
        task = await life.submit("a boat")
        switch.on = True
        await ground.clock.advance(6)
        assert journal(ground)[0]["event"] == kind.capitalize()
        ground.kill()
    switch.on = False
    async with ground.life() as life:
        await life.until(State.DONE if kind == "answered" else State.FAILED, prompts=1)
        ended = await life.relay.get(task.id)
        assert ended.remote_id == "job-1"
        assert ended.error == (None if kind == "answered" else PROBLEM)
    assert len(ground.provider.creates) == 1


class Eager(ToyAdapter):
    """
    A provider whose answer to a create call tells how the job ended.
    """

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def submit(self, task):
        accepted = yield from super().submit(task)
        if self.kind == "failed":
            return Failed(problem=PROBLEM, remote_id=accepted.remote_id)
        return Answered(remote_id=accepted.remote_id, outputs=(RemoteFile(url=f"{BASE}/files/{accepted.remote_id}/1"),))


def test_the_page_tells_the_numbers_and_names_of_the_code():
    """What docs/reference/database.md says of ballast, journal and backup is what the code does."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "database.md").read_text()
    assert f"a file of {emergency.BALLAST_BYTES // 2**20} MiB" in page
    assert assemble.BACKUP_SECONDS == 3600.0
    for name in ("`ballast`", "`emergency.jsonl`", "`relay.db.bak`"):
        assert name in page
