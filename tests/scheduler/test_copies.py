"""
Pictures are uploaded to a provider once, and used again until its copy is too old.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from vidrelay.core.adapter import Dedupe
from vidrelay.core.errors import StoreError
from vidrelay.core.task import Asset, BlockReason, CancelOutcome, Reference, State
from vidrelay.testing.toy.adapter import ToyAdapter

PICTURE = Asset(id="sha256:1", pixels="p1:1", width=8, height=8, size_bytes=99, media_type="image/png")
OTHER = replace(PICTURE, id="sha256:2", pixels="p1:2")


@pytest.fixture
def bench(bench):
    """A provider that keeps what is uploaded to it for ten hours."""
    bench.adapter = ToyAdapter(copies=timedelta(hours=10))
    bench.window = 5
    return bench


async def submit(bench, prompt="a boat", *pictures):
    """Submit a request with pictures."""
    for picture in pictures or (PICTURE,):
        await bench.store.add_asset(picture)
    references = tuple(Reference(asset=picture.id) for picture in pictures or (PICTURE,))
    return await bench.submit(prompt, references=references)


def named(bench):
    """The references that each create named."""
    return [[picture["$copy"] for picture in create.get("pictures", ())] for create in bench.provider.creates]


async def test_a_picture_is_uploaded_once_for_many_tasks_and_lives(bench):
    """Two requests and a restart later the provider still has it; the task as it is kept says nothing of it."""
    async with bench.running():
        task = await submit(bench)
        await submit(bench, "a fox")
        await bench.until(task.id, State.DONE)
    async with bench.running():
        await submit(bench, "a tree")
    assert bench.provider.uploads == [PICTURE.id]
    assert named(bench) == [["copy-1"]] * 3
    assert task.parameters["pictures"] == [{"$asset": PICTURE.id, "mediaType": "image/png"}]


async def test_each_account_has_its_own_copy(bench):
    """What was given to one provider's account, another cannot name."""
    other = bench.others["other"] = type(bench.provider)(bench.clock)
    async with bench.running():
        await submit(bench)
        await bench.submit("a boat", account="other", references=(Reference(asset=PICTURE.id),))
    assert bench.provider.uploads == other.uploads == [PICTURE.id]


async def test_several_pictures_are_uploaded_each(bench):
    """One that is there already is not sent again."""
    async with bench.running():
        await submit(bench)
        await submit(bench, "both", OTHER, PICTURE)
    assert bench.provider.uploads == [PICTURE.id, OTHER.id]
    assert named(bench) == [["copy-1"], ["copy-2", "copy-1"]]


async def test_pictures_that_go_along_with_the_create_are_not_uploaded(bench):
    """An adapter without uploads is given the task as it is."""
    bench.adapter = ToyAdapter()
    async with bench.running():
        await submit(bench)
    assert bench.provider.uploads == []
    assert bench.provider.creates[0]["pictures"] == [{"$asset": PICTURE.id, "mediaType": "image/png"}]


@pytest.mark.parametrize(("hours", "uploads"), [(8.9, 1), (9.1, 2)])
async def test_a_copy_is_used_until_shortly_before_its_end(bench, hours, uploads):
    """The last tenth of its life is the margin."""
    async with bench.running():
        await submit(bench)
        await bench.clock.advance(hours * 3600)
        await submit(bench, "a fox")
    assert len(bench.provider.uploads) == uploads


async def test_two_tasks_share_one_upload(bench):
    """The second waits for the upload that is under way."""
    bench.provider.upload_seconds = 30.0
    async with bench.running():
        first = await submit(bench)
        await bench.clock.advance(5)
        second = await submit(bench, "a fox")
        await bench.clock.advance(10)
        assert bench.provider.creates == []
        await bench.until(first.id, State.DONE)
        await bench.until(second.id, State.DONE)
    assert bench.provider.uploads == [PICTURE.id]
    assert named(bench) == [["copy-1"]] * 2


async def test_who_waited_for_an_upload_that_was_broken_off_does_it_anew(bench):
    """A sleep of the machine ends it; the next in line that needs it begins again."""
    bench.provider.upload_seconds = 400.0
    async with bench.running():
        first = await submit(bench)
        await bench.clock.advance(2)
        second = await submit(bench, "a fox")
        bench.clock.jump(3600)
        await bench.clock.advance(20)
        bench.provider.upload_seconds = 0.0
        await bench.until(first.id, State.DONE)
        await bench.until(second.id, State.DONE)
    assert len(bench.provider.creates) == 2


@pytest.mark.parametrize(
    ("hours", "uploads"),
    [(-5, 1), (-48, 2), (2, 1), (20, 2), (87_600, 2)],
    ids=["a little back", "days back", "some hours on", "a day on", "ten years on"],
)
async def test_a_clock_that_is_set_between_two_lives_costs_an_upload_at_the_most(bench, hours, uploads):
    """A copy of the future is of no known age; one that seems old is made again, and both are made once."""
    async with bench.running():
        await submit(bench)
    await bench.clock.advance(6 * 3600)
    bench.clock.jump(hours * 3600)
    async with bench.running():
        await submit(bench, "a fox")
        await submit(bench, "a tree")
    assert len(bench.provider.uploads) == uploads
    assert len(bench.provider.creates) == 3


@pytest.mark.parametrize("jump", [-48, -1, 48], ids=lambda hours: f"{hours} h")
async def test_a_clock_that_is_set_meanwhile_makes_no_copy_younger(bench, jump):
    """Nine hours and more of this life count, whatever the wall clock says."""
    async with bench.running():
        await submit(bench)
        bench.clock.jump(jump * 3600)
        await bench.clock.advance(9.5 * 3600)
        await submit(bench, "a fox")
        assert len(bench.provider.uploads) == 2
        await submit(bench, "a tree")
    assert len(bench.provider.uploads) == 2


async def test_a_machine_that_slept_ages_its_copies(bench):
    """The monotonic clock stood still meanwhile, the wall clock did not."""
    async with bench.running():
        await submit(bench)
        bench.clock.jump(9.5 * 3600)
        await bench.clock.advance(5)
        await submit(bench, "a fox")
    assert len(bench.provider.uploads) == 2


async def test_a_refused_create_with_a_kept_copy_is_sent_once_more_with_a_new_one(bench):
    """The provider has lost the copy: that costs a refused create, and the task is done by its second."""
    async with bench.running():
        await submit(bench)
        bench.provider.copies.clear()
        task = await submit(bench, "a fox")
        assert (await bench.until(task.id, State.DONE)).attempts == 2
        await submit(bench, "a tree")
        counters = await bench.store.counters()
    assert named(bench) == [["copy-1"], ["copy-1"], ["copy-2"], ["copy-2"]]
    assert counters["createAttempts"] == 4
    assert counters["remoteCreates"] == 3


async def test_a_create_that_is_wrong_in_itself_is_refused_twice_and_no_more(bench):
    """The second refusal was not the copy's fault."""
    async with bench.running():
        await submit(bench)
        bench.provider.arm("create", 422, 422)
        task = await submit(bench, "a fox")
        failed = await bench.relay.get(task.id)
    assert (failed.state, failed.error.code) == (State.FAILED, "rejected")
    assert len(bench.provider.creates) == 3


async def test_a_create_with_a_new_copy_that_is_refused_is_not_sent_again(bench):
    """What was uploaded a moment ago is there."""
    async with bench.running():
        bench.provider.arm("create", 422)
        task = await submit(bench)
        assert (await bench.relay.get(task.id)).state is State.FAILED
    assert len(bench.provider.creates) == 1


async def test_many_requests_that_are_wrong_in_the_same_way_are_no_uploads(bench):
    """Once a new copy was refused too, the next refusals are not put down to it; after a while they may be."""
    async with bench.running():
        await submit(bench)
        bench.provider.arm("create", *[422] * 6)
        for number in range(5):
            await submit(bench, f"wrong {number}")
        assert (len(bench.provider.uploads), len(bench.provider.creates)) == (2, 7)
        bench.provider.copies.clear()
        await bench.clock.advance(601)
        task = await submit(bench, "a fox")
        await bench.until(task.id, State.DONE)
    assert len(bench.provider.uploads) == 3


async def test_a_copy_that_the_database_cannot_forget_is_not_used_again(bench):
    """It stays in the file for now, and out of every create."""
    bench.wrap = lambda port: Clinging(port) if hasattr(port, "keep_copy") else port
    async with bench.running():
        await submit(bench)
    bench.provider.copies.clear()
    async with bench.running():
        task = await submit(bench, "a fox")
        await bench.until(task.id, State.DONE)
    assert named(bench) == [["copy-1"], ["copy-1"], ["copy-2"]]


@pytest.mark.parametrize("trouble", ["unsent", "lost_before", "lost_after", "html", 500, 429])
async def test_trouble_with_an_upload_is_never_uncertain(bench, trouble):
    """Nothing paid was sent, so the task waits in line and the upload is tried again; its create is the first."""
    async with bench.running():
        bench.provider.arm("upload", trouble)
        task = await submit(bench)
        assert (await bench.relay.get(task.id)).state is State.QUEUED
        assert bench.provider.creates == []
        done = await bench.until(task.id, State.DONE)
        counters = await bench.store.counters()
    assert done.attempts == counters["createAttempts"] == 1
    assert len(bench.provider.creates) == 1
    assert counters.get("uncertain", 0) == 0


async def test_a_provider_that_will_not_have_the_picture_ends_the_task(bench):
    """It says so for good, and nothing was paid."""
    async with bench.running():
        bench.provider.arm("upload", 415)
        task = await submit(bench)
        failed = await bench.relay.get(task.id)
    assert (failed.state, failed.error.detail) == (State.FAILED, "no such pictures")
    assert bench.provider.creates == []


async def test_a_task_that_is_cancelled_during_its_upload_is_never_made(bench):
    """The wish comes before anything is paid, and is heard at once; the next in line is not held up by it."""
    bench.provider.upload_seconds, bench.window = 300.0, 1
    async with bench.running():
        task = await submit(bench)
        await bench.clock.advance(1)
        other = await bench.submit("a fox")
        cancelled, outcome = await bench.relay.cancel(task.id)
        assert (cancelled.state, outcome) == (State.CANCELLED, CancelOutcome.LOCAL)
        await bench.until(other.id, State.DONE, within=30)
    assert [create["prompt"] for create in bench.provider.creates] == ["a fox"]


async def test_a_relay_that_is_ended_during_an_upload_leaves_its_task_in_line(bench):
    """The next life makes it."""
    bench.provider.upload_seconds = 50.0
    async with bench.running():
        task = await submit(bench)
        await bench.clock.advance(1)
    bench.provider.upload_seconds = 0.0
    async with bench.running():
        await bench.until(task.id, State.DONE)
    assert len(bench.provider.creates) == 1


async def test_a_relay_that_is_killed_during_an_upload_leaves_nothing_uncertain(bench):
    """No create was sent, so there is nothing that a person would have to settle."""
    bench.provider.upload_seconds = 50.0
    async with bench.running(kill=True):
        task = await submit(bench)
        await bench.clock.advance(1)
    bench.provider.upload_seconds = 0.0
    async with bench.running():
        assert (await bench.until(task.id, State.DONE)).attempts == 1
        counters = await bench.store.counters()
    assert counters.get("uncertain", 0) == 0
    assert len(bench.provider.creates) == 1


async def test_a_relay_that_is_killed_while_a_refused_copy_is_made_anew_leaves_nothing_uncertain(bench):
    """The refused create is over, and the next one has not been sent."""
    async with bench.running(kill=True):
        await submit(bench)
        bench.provider.copies.clear()
        bench.provider.upload_seconds = 50.0
        task = await submit(bench, "a fox")
        await bench.clock.advance(1)
        assert (await bench.relay.get(task.id)).state is State.QUEUED
    bench.provider.upload_seconds = 0.0
    async with bench.running():
        await bench.until(task.id, State.DONE)
        counters = await bench.store.counters()
    assert counters.get("uncertain", 0) == 0


async def test_an_upload_holds_no_place_and_keeps_the_order(bench):
    """The first in line waits for it without being blocked, and nobody behind it goes first."""
    bench.provider.upload_seconds = 20.0
    async with bench.running():
        first = await submit(bench)
        second = await bench.submit("a fox")
        await bench.clock.advance(10)
        uploading, waits = bench.relay.standing(first), bench.relay.standing(second)
        assert [window.running for window in bench.relay.accounts()[0].windows] == [0]
        await bench.until(second.id, State.DONE)
    assert (uploading.ahead, uploading.blocked) == (0, None)
    assert (waits.ahead, waits.blocked.reason) == (1, BlockReason.WINDOW)
    assert [create["prompt"] for create in bench.provider.creates] == ["a boat", "a fox"]


async def test_the_first_in_line_has_its_picture_there_before_a_place_is_free(bench):
    """While another runs in the only place it is uploaded, for that one alone; then the create goes at once."""
    bench.window, bench.provider.upload_seconds = 1, 5.0
    async with bench.running():
        running = await bench.submit("a boat")
        await submit(bench, "a fox")
        await submit(bench, "a tree", OTHER)
        await bench.clock.advance(8)
        assert bench.provider.uploads == [PICTURE.id]
        assert len(bench.provider.creates) == 1
        await bench.until(running.id, State.DONE)
        assert len(bench.provider.creates) == 2


async def test_nothing_is_uploaded_for_a_place_that_time_alone_holds(bench):
    """A lost create holds the only place for half an hour, and the copy would only grow old."""
    bench.window, bench.adapter = 1, ToyAdapter(copies=timedelta(hours=10), dedupe=Dedupe.NONE)
    bench.provider.arm("create", "lost_before")
    async with bench.running():
        await bench.submit("a boat")
        task = await submit(bench, "a fox")
        await bench.clock.advance(60)
        assert bench.provider.uploads == []
        await bench.until(task.id, State.DONE, within=2000)
    assert bench.provider.uploads == [PICTURE.id]


async def test_many_in_line_are_uploaded_together_as_there_is_room(bench):
    """Three free places, three uploads; the fourth waits for a place to be near."""
    bench.window, bench.provider.upload_seconds = 3, 10.0
    async with bench.running():
        for number in range(4):
            await submit(bench, f"clip {number}", replace(PICTURE, id=f"sha256:{number}", pixels=f"p1:{number}"))
        await bench.clock.advance(1)
        assert bench.provider.uploads == ["sha256:0", "sha256:1", "sha256:2"]
        await bench.clock.advance(15)
    assert [create["prompt"] for create in bench.provider.creates] == ["clip 0", "clip 1", "clip 2"]


async def test_a_copy_that_grew_too_old_in_line_is_made_anew(bench):
    """It was there before the place was, and is not named when it may be gone by then."""
    bench.window, bench.adapter, bench.provider.run_seconds = 1, ToyAdapter(copies=timedelta(seconds=50)), 60.0
    async with bench.running():
        await bench.submit("a boat")
        task = await submit(bench, "a fox")
        assert bench.provider.uploads == [PICTURE.id]
        await bench.until(task.id, State.RUNNING)
    assert len(bench.provider.uploads) == 2
    assert named(bench) == [[], ["copy-2"]]


@pytest.mark.parametrize("status", [401, 402], ids=["calls", "creates"])
async def test_nothing_is_uploaded_while_the_account_rests(bench, status):
    """Neither where it may call nobody, nor where it may make nothing."""
    bench.provider.arm("create", status)
    async with bench.running():
        await bench.submit("a boat")
        task = await submit(bench, "a fox", PICTURE)
        await bench.clock.advance(200)
        assert bench.provider.uploads == []
        await bench.until(task.id, State.DONE)
    assert bench.provider.uploads == [PICTURE.id]


async def test_one_trouble_of_many_uploads_is_one_pause(bench):
    """When the rest is over one goes first, and the others wait for what becomes of it."""
    bench.provider.arm("upload", 500, 500)
    async with bench.running():
        tasks = []
        for number in range(4):
            picture = replace(PICTURE, id=f"sha256:{number}", pixels=f"p1:{number}")
            tasks.append(await submit(bench, f"clip {number}", picture))
        await bench.clock.advance(1.4)
        assert len(bench.provider.uploads) == 1
        await bench.clock.advance(0.2)
        assert len(bench.provider.uploads) == 2
        for task in tasks:
            await bench.until(task.id, State.DONE, within=60)


@pytest.mark.parametrize("life", [0, 5], ids=["none", "shorter than its upload"])
async def test_copies_that_are_never_fresh_are_no_storm(bench, life):
    """An adapter that says so of its provider gets an upload now and then, and no create."""
    bench.adapter = ToyAdapter(copies=timedelta(seconds=life))
    bench.provider.upload_seconds = 10.0 if life else 0.0
    async with bench.running():
        await submit(bench)
        await bench.clock.advance(60)
    assert 1 < len(bench.provider.uploads) <= 61


class Clinging:
    """
    A database that cannot forget copies just now.
    """

    def __init__(self, port):
        object.__setattr__(self, "_port", port)

    def __getattr__(self, name):
        return getattr(self._port, name)

    def __setattr__(self, name, value):
        setattr(self._port, name, value)

    async def drop_copy(self, copy):
        raise StoreError("busy")


class Forgetful(Clinging):
    """
    A database that can neither keep nor tell copies just now.
    """

    async def keep_copy(self, copy):
        raise StoreError("busy")

    async def copy(self, account, asset_id):
        raise StoreError("busy")


async def test_a_copy_that_cannot_be_stored_is_used_all_the_same(bench):
    """It is known in memory, and dropped there too; only the next life uploads it again."""
    bench.wrap = lambda port: Forgetful(port) if hasattr(port, "keep_copy") else port
    async with bench.running():
        await submit(bench)
        await submit(bench, "a fox")
        bench.provider.copies.clear()
        await submit(bench, "a tree")
    assert named(bench) == [["copy-1"], ["copy-1"], ["copy-1"], ["copy-2"]]


class ForOneModel(ToyAdapter):
    """
    A provider that keeps a copy for the model alone that it was uploaded for; what it is asked to find is noted.
    """

    def __init__(self, **words):
        super().__init__(**words)
        self.found = []

    def prepare(self, request, assets):
        """Each picture says its model."""
        prepared = super().prepare(request, assets)
        pictures = [{**one, "model": request.model_version} for one in prepared.parameters["pictures"]]
        return replace(prepared, parameters={**prepared.parameters, "pictures": pictures})

    def find(self, task, search):
        """As ever."""
        self.found.append([picture.get("$copy") for picture in task.parameters["pictures"]])
        return super().find(task, search)


async def test_a_copy_for_one_model_is_not_another_models(bench):
    """What an adapter says of a picture beside its asset is part of what its copy is kept under."""
    bench.adapter = ForOneModel(copies=timedelta(hours=10))
    references = (Reference(asset=PICTURE.id),)
    async with bench.running():
        await bench.store.add_asset(PICTURE)
        for prompt, model in (("a boat", "a"), ("a boat", "b"), ("a fox", "a")):
            task = await bench.submit(prompt, model_version=model, references=references)
            await bench.until(task.id, State.DONE)
    assert named(bench) == [["copy-1"], ["copy-2"], ["copy-1"]]


async def test_a_lost_create_is_looked_for_with_the_copies_that_it_named(bench):
    """A list shows the provider's own references, so the adapter needs them to know its job again."""
    bench.adapter = ForOneModel(copies=timedelta(hours=10), dedupe=Dedupe.LIST)
    bench.provider.arm("create", "lost_after")
    async with bench.running(kill=True):
        await submit(bench)
    async with bench.running():
        await bench.clock.advance(1)
    assert bench.adapter.found[0] == ["copy-1"]


async def test_a_task_whose_upload_keeps_failing_tells_why_it_waits(bench):
    """The line stands still for it: the first and who is behind it say what was answered, and till when it rests."""
    bench.provider.arm("upload", *["html"] * 50)
    async with bench.running():
        first = await submit(bench)
        second = await bench.submit("a fox")
        await bench.clock.advance(600)
        told = [bench.relay.standing(await bench.relay.get(task.id)) for task in (first, second)]
        assert [(one.blocked and one.blocked.reason, one.waiting_for.reason) for one in told] == [
            (None, BlockReason.NETWORK),
            (BlockReason.WINDOW, BlockReason.NETWORK),
        ]
        assert "a picture could not be uploaded" in told[0].waiting_for.detail
        bench.provider.faults.clear()
        await bench.until(second.id, State.DONE)


async def test_who_watches_is_told_that_an_upload_failed(bench):
    """Nothing about the task is stored then, and its listeners hear all the same why it stays where it is."""
    bench.provider.arm("upload", "html")
    async with bench.running():
        with bench.relay.watch() as heard:
            task = await submit(bench)
            await bench.clock.advance(1)
        told = [heard.get_nowait() for _ in range(heard.qsize())]
    assert task.id in [one.task.id for one in told if one is not None and one.event_id is None]
